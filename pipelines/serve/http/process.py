"""The HTTP endpoint as a process: started beside the serving loop, again where it dies, and gone when that is."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import threading
import time
from collections import Counter

from configs.settings import Settings, load
from pipelines.serve.contracted import ContractedJobs
from pipelines.stack.ports import HOST
from pipelines.stack.private import write_private
from pipelines.store import Reader

ADDRESS, TOKEN = "http", "token"
"""Files in the store's folder: the endpoint's URL, and the bearer token."""
FIRST_S, LONGEST_S = 1.0, 60.0
"""Wall seconds between its end and its next start, least and most."""
CLOSE_S = 10.0


class HttpEndpoint:
    """The HTTP endpoint's child process, and the thread that starts it again when it ends by itself."""

    def __init__(self, settings: Settings, counts: Counter[str]) -> None:
        """Write the token file, remove an old address file, and start the process.

        Args:
            settings: `serving.token` is the token; a random one if empty. The child reads the other settings itself.
            counts: its "http restarts" counts up.

        Raises:
            OSError: a file in the store's folder cannot be written, or the process cannot be started.
        """
        self._folder, self._counts = settings.store_dir, counts
        self._stop, self._starting = threading.Event(), threading.Lock()
        write_private(self._folder / TOKEN, settings.serving.token or secrets.token_urlsafe(32))
        (self._folder / ADDRESS).unlink(missing_ok=True)  # of one that may have been killed with its server
        self._start()
        self._thread = threading.Thread(target=self._watch, name="http", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the child process (SIGTERM, after 10 s SIGKILL), wait until it is gone, and start no other."""
        with self._starting:
            self._stop.set()
        self.process.terminate()
        self._thread.join(CLOSE_S)
        self.process.kill()  # one that waits for a client that does not leave
        self._thread.join()

    def _start(self) -> None:
        with self._starting:
            if not self._stop.is_set():
                # A ctrl-C is the server's alone, which ends the child; its session stays, by which a stack ends both.
                self.process, self._began = subprocess.Popen(child_command(), process_group=0), time.monotonic()

    def _watch(self) -> None:
        pause = 0.0
        while True:
            status = self.process.wait()
            (self._folder / ADDRESS).unlink(missing_ok=True)  # nobody answers there
            if self._stop.is_set():
                return
            pause = pause_s(time.monotonic() - self._began, pause)
            self._counts["http restarts"] += 1
            print(
                f"serving: the HTTP endpoint, process {self.process.pid}, ended with status {status}; forecasts go on, "
                f"it is started again in {pause:g} s. Where that goes on, look whether serving.http_port is free.",
                flush=True,
            )
            pause = self._start_again(pause)

    def _start_again(self, pause: float) -> float:
        """Start the process after a pause, after ever longer ones where the system refuses; return the last pause."""
        while True:
            self._stop.wait(pause)
            try:
                self._start()
                return pause
            except OSError as error:  # no memory, no descriptor
                pause = pause_s(0.0, pause)
                why = f"the HTTP endpoint cannot be started ({error})"
                print(f"serving: {why}; forecasts go on, trying again in {pause:g} s", flush=True)


def pause_s(lived_s: float, before_s: float) -> float:
    """Return the seconds to wait before the next start: double the last pause, from 1 s to 60 s.

    Args:
        lived_s: how long the process ran; 60 s or more begin again at 1 s.
        before_s: the last pause; 0 before the first.
    """
    return FIRST_S if lived_s >= LONGEST_S or not before_s else min(2 * before_s, LONGEST_S)


def child_command() -> list[str]:
    """Return the command line of the endpoint's process; its argument is this process' id."""
    return [sys.executable, "-m", "pipelines.serve.http.process", str(os.getpid())]


def main() -> None:
    """Run the HTTP endpoint until SIGTERM, or until the parent process is gone (checked every 0.5 s); blocks.

    The parent's process id is the first argument of the command line. It listens on 127.0.0.1, port `serving.http_port`
    (0: any free). The token is read from the file `token` in the store's folder, and the endpoint's URL written to the
    file `http` there, unless the parent is gone by then: the address is its successor's to write.

    Raises:
        IndexError, ValueError: the first argument is missing or no process id.
        SettingsError: the settings are not valid.
        OSError: there is no token file, the port is taken, or the file `http` cannot be written.
        StoreError: the store cannot be opened.
    """
    import uvicorn

    from pipelines.serve.http.app import HEAD_BYTES, LimitedConnection, build_app

    settings, parent = load(), int(sys.argv[1])
    folder = settings.store_dir
    token = (folder / TOKEN).read_text()
    if os.getppid() != parent:  # killed while this was being imported
        return
    listening = socket.create_server((HOST, settings.serving.http_port))
    write_private(folder / ADDRESS, f"http://{HOST}:{listening.getsockname()[1]}")
    with Reader.open(folder) as reader:
        jobs = ContractedJobs(settings.contracts_dir, settings.serving.alias_poll_s)
        app = build_app(reader, settings.training.step_s, jobs, token)
        config = uvicorn.Config(
            app, http=LimitedConnection, h11_max_incomplete_event_size=HEAD_BYTES, log_level="error", access_log=False
        )
        server = uvicorn.Server(config)

        def end_with_parent() -> None:
            while os.getppid() == parent:
                time.sleep(0.5)
            server.should_exit = True

        threading.Thread(target=end_with_parent, daemon=True).start()
        server.run([listening])


if __name__ == "__main__":
    main()
