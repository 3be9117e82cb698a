"""Keeps a Python process with PySpark and Arrow imported, of which executors of this computer get their worker daemons.

`python -m pipelines.spark.fork_server SOCKET` serves until its standard input ends, which is when the driver does.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from pipelines.spark.worker_daemon import import_all

_PATIENCE_S = 5.0  # for a client that connects and says nothing


def start(folder: Path) -> tuple[str, subprocess.Popen[bytes]]:
    """Start a fork server that ends with this process; it answers after a second or two.

    Args:
        folder: existing, for its socket; the path of a Unix socket has at most 107 bytes.

    Returns:
        The socket's path, and the process; while that is referred to its standard input stays open.

    Raises:
        OSError: no process can be started.
    """
    address = str(folder / f"fork-{os.getpid()}")
    server = subprocess.Popen([sys.executable, "-m", "pipelines.spark.fork_server", address], stdin=subprocess.PIPE)
    return address, server


def serve(address: str) -> None:
    """Fork a worker daemon for everyone who connects to a Unix socket, until the standard input ends; then remove it.

    Raises:
        OSError: the socket cannot be made, as where the path is too long or taken.
    """
    with socket.socket(socket.AF_UNIX) as listener:
        before = os.umask(0o177)  # whoever may connect runs code as this user
        listener.bind(address)
        os.umask(before)
        listener.listen(64)
        try:
            import_all()  # who connects meanwhile waits: to import all, too, takes as long
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how daemons ended
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # ctrl-C is for the driver, which ends this one
            while True:
                ready, _, _ = select.select([0, listener.fileno()], [], [])
                if 0 in ready and not os.read(0, 1):
                    return
                if listener.fileno() in ready:
                    client, _ = listener.accept()
                    with client, suppress(OSError, ValueError):
                        client.settimeout(_PATIENCE_S)
                        _answer(client, listener)
        finally:
            Path(address).unlink(missing_ok=True)


def _answer(client: socket.socket, listener: socket.socket) -> None:
    _, streams, _, _ = socket.recv_fds(client, 1, 3)
    try:
        parts = []
        while part := client.recv(65536):
            parts.append(part)
        asked = json.loads(b"".join(parts))
        if len(streams) == 3 and os.fork() == 0:
            listener.close()
            _become_daemon(streams, *asked)
    finally:
        for stream in streams:
            os.close(stream)


def _become_daemon(streams: list[int], environment: dict[str, str], folder: str, arguments: list[Any]) -> NoReturn:
    """In the child: take the place of the process that asked, whose end it holds open by the socket."""
    status = 1
    try:
        from pyspark.daemon import manager

        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)
        sys.argv = arguments
        manager()
        status = 0
    finally:
        os._exit(status)


if __name__ == "__main__":
    try:
        serve(sys.argv[1])
    except OSError as error:  # a path of over 107 bytes: nothing depends on it
        print(f"{sys.argv[1]}: {error}; each executor imports for itself, which takes it a second", file=sys.stderr)
