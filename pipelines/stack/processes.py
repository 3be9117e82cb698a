"""Long-lived child processes: each in a session of its own, found again by an environment marker, ended as a whole.

A session and not only a process group, because Airflow's tasks and PySpark's workers move to groups of their own; the
marker besides, because a child may leave the session; not the marker alone, because setting a title overwrites it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from configs.errors import CorrectableError
from pipelines.stack.began import began_s
from pipelines.stack.kept_log import open_log

MARKER = "TIDECAST_STACK"  # environment variable of every process of a stack; its value is the stack's id
GRACE_S = 8.0  # from SIGTERM to SIGKILL
ASK_S = 0.1  # between two looks whether a process is ready


class ProcessError(CorrectableError, RuntimeError):
    """A child process failed; the message holds the last lines of its log."""


@dataclass(frozen=True)
class Process:
    """A started child process.

    Attributes:
        name: what error messages call it.
        log: file with its stdout and stderr.
        popen: its handle.
        created: when it began, see `began_s`; tells it from a later process with the same pid.
    """

    name: str
    log: Path
    popen: subprocess.Popen[bytes]
    created: float

    @property
    def pid(self) -> int:
        """Process id, and id of its session."""
        return self.popen.pid

    def session(self) -> list[int]:
        """Return its session; none once another process has the number, which is free when nobody of it is left."""
        return [] if not self.running() and psutil.pid_exists(self.pid) else [self.pid]

    def running(self) -> bool:
        """Return whether the process itself (not its children) is alive; reaps it when it has ended."""
        return self.popen.poll() is None

    def wait(self, timeout_s: float | None = None) -> int:
        """Wait for the process to end; returns its exit status, negative for the signal that ended it.

        Raises:
            subprocess.TimeoutExpired: it still runs after `timeout_s`; None waits for ever.
        """
        return self.popen.wait(timeout_s)

    def wait_until(self, ready: Callable[[], bool], what: str, patience_s: float) -> None:
        """Wait until `ready` answers true, asking ten times a second.

        Args:
            ready: asked again and again.
            what: of the process that is waited for, in words after "could", as in "write down where it begins".
            patience_s: seconds after which it is given up.

        Raises:
            ProcessError: the process ended before, or it was not so in time.
        """
        deadline = time.monotonic() + patience_s
        while not ready():
            if not self.running():
                raise ProcessError(f"{self.name} ended before it could {what}.\n{self.last_lines()}")
            if time.monotonic() > deadline:
                raise ProcessError(f"{self.name} did not {what} within {patience_s:.0f} s.\n{self.last_lines()}")
            time.sleep(ASK_S)

    def kill(self) -> None:
        """Kill (SIGKILL) the process and everything in its session, and reap it.

        Raises:
            subprocess.TimeoutExpired: it still runs 10 s later.
        """
        end_processes(lambda: find_processes(self.session()), grace_s=0)
        self.popen.wait(10)

    def stop(self, grace_s: float = GRACE_S) -> int:
        """Send SIGTERM to the process, then SIGKILL to what is left of its session, and wait for its end.

        Args:
            grace_s: seconds to wait for its end before SIGKILL; over as soon as it has ended.

        Returns:
            Its exit status, negative for the signal that ended it; that of an earlier end if it had ended already.

        Raises:
            subprocess.TimeoutExpired: it still runs 10 s after SIGKILL.
        """
        if self.running():
            _signal(self.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.popen.wait(grace_s)
        self.kill()
        return self.popen.returncode

    def last_lines(self, count: int = 15) -> str:
        """Read the last `count` lines of the log's last 64 KiB, for an error message.

        Returns:
            A heading with the log's path, then the lines, indented; "(empty)" where there is no log or nothing in it.

        Raises:
            OSError: the log is there and cannot be read.
        """
        try:
            with self.log.open("rb") as file:
                file.seek(max(0, self.log.stat().st_size - 65_536))
                lines = file.read().decode("utf-8", "replace").splitlines()[-count:]
        except FileNotFoundError:
            lines = []
        return f"Last lines of {self.log}:\n" + ("\n".join("  " + line for line in lines) or "  (empty)")


def spawn(name: str, argv: list[str], env: Mapping[str, str], log: Path, append: bool = False) -> Process:
    """Start a child process in a session of its own, without waiting for it; its stdin is empty.

    Args:
        name: what error messages call it.
        argv: the program and its arguments.
        env: the whole environment, marker included; nothing of this process's is added.
        log: file for stdout and stderr; its folder is created.
        append: keep what the log already holds instead of truncating it; 64 MiB are set aside as `NAME.old.log`.

    Raises:
        ProcessError: the program cannot be executed.
        OSError: the log cannot be written.
    """
    with open_log(log, append) as sink:
        try:
            popen = subprocess.Popen(
                argv, env=dict(env), stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, start_new_session=True
            )
        except OSError as error:
            raise ProcessError(f"{name} does not start: {error}") from None
    created = 0.0  # it has ended, and no other one began then
    with contextlib.suppress(psutil.Error):
        created = began_s(popen.pid)
    return Process(name, log, popen, created)


def find_processes(sessions: Iterable[int], stack_id: str | None = None) -> list[psutil.Process]:
    """List the living processes of some sessions, and those marked as belonging to a stack.

    Args:
        sessions: session ids, each the pid of the process that began it.
        stack_id: also those with this value in the environment variable `MARKER`; None: sessions only.

    Returns:
        In the order of their pids, without zombies and without processes that this user may not inspect.
    """
    wanted = set(sessions)
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):  # gone meanwhile, or another user's
            mine = os.getsid(process.pid) in wanted or (
                stack_id is not None and process.environ().get(MARKER) == stack_id
            )
            if mine and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def environments_of(variables: Mapping[str, str]) -> Iterator[Mapping[str, str]]:
    """Yield the environment of each process that `spawn` has begun, here or elsewhere, with these variables in it.

    What such a process has started itself does not count, nor what this user may not inspect.
    """
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            known = process.environ() if os.getsid(process.pid) == process.pid else {}
            if variables.items() <= known.items() and process.status() != psutil.STATUS_ZOMBIE:
                yield known


def end_processes(
    find: Callable[[], list[psutil.Process]], grace_s: float = GRACE_S, leaders: Iterable[int] = ()
) -> list[psutil.Process]:
    """End processes: SIGTERM to the leaders, SIGKILL after the grace time to everything found.

    Blocks for at most `grace_s` plus about 5 s, in which SIGKILL is sent every 0.1 s to what is left.

    Args:
        find: lists what is still to end; asked again every 0.1 s, so that children born meanwhile are found.
        grace_s: seconds from SIGTERM to SIGKILL; over as soon as nothing is found.
        leaders: pids that get SIGTERM; those that are gone are passed over.

    Returns:
        Those that are still alive, e.g. in a system call that cannot be interrupted; usually [].

    Raises:
        PermissionError: one of the processes belongs to another user.
    """
    for pid in leaders:
        _signal(pid, signal.SIGTERM)
    deadline = time.monotonic() + grace_s
    while time.monotonic() < deadline and find():
        time.sleep(0.1)
    for _ in range(50):  # again and again, because a child can be born between the look and the kill
        left = find()
        if not left:
            return []
        for process in left:
            _signal(process.pid, signal.SIGKILL)
        time.sleep(0.1)
    return find()


def describe(found: Iterable[psutil.Process]) -> list[str]:
    """Return "PID NAME" of every process, in the given order; those that have ended meanwhile are left out."""
    texts = []
    for process in found:
        with contextlib.suppress(psutil.NoSuchProcess):
            texts.append(f"{process.pid} {process.name()}")
    return texts


def name_process(pid: int) -> str:
    """Return "process PID (COMMAND LINE)", the latter cut at 120 characters; without it where it cannot be seen."""
    try:
        return f"process {pid} ({' '.join(psutil.Process(pid).cmdline())[:120]})"
    except psutil.Error:
        return f"process {pid}"


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
