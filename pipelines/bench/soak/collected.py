"""Have a JVM collect its garbage: what it holds after that is what it needs, and grows only where something leaks."""

from __future__ import annotations

import os
import signal
import socket
import time
from pathlib import Path

import psutil

PATIENCE_S = 10.0
"""Seconds in which a JVM begins to listen, and in which it answers."""
_FOLDER = Path("/tmp")  # on Linux, whatever TMPDIR says
_PROTOCOL, _ARGUMENTS = "1", 3
"""Of HotSpot's attach listener: its version, and how many arguments follow a command, empty ones included."""


class CollectionError(RuntimeError):
    """A JVM did not collect its garbage; the message names the process and what it said."""


def is_java(process: psutil.Process) -> bool:
    """Whether a process is a JVM.

    Raises:
        psutil.Error: it has ended.
    """
    return Path(process.exe()).name == "java"


def collect_garbage(pid: int) -> None:
    """Have a JVM of the same user collect the garbage of its whole heap, as `jcmd PID GC.run` would; blocks until then.

    A JRE has no jcmd; the protocol is that of HotSpot's attach listener (attachListener_posix.cpp).

    Raises:
        CollectionError: it did not listen or answer in time, or refused.
        OSError: it has ended, or is another user's.
    """
    where = _FOLDER / f".java_pid{pid}"
    if not where.exists():
        _wake(pid, where)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.settimeout(PATIENCE_S)
        try:
            listener.connect(str(where))
            words = [_PROTOCOL, "jcmd", *["GC.run", *[""] * (_ARGUMENTS - 1)]]
            listener.sendall(b"".join(word.encode() + b"\0" for word in words))
            answer = b"".join(iter(lambda: listener.recv(4096), b"")).decode(errors="replace")
        except TimeoutError as error:
            raise CollectionError(f"process {pid} did not answer within {PATIENCE_S:.0f} s") from error
    if not answer.startswith("0\n"):
        raise CollectionError(f"process {pid} did not collect its garbage: {answer.strip()}")


def _wake(pid: int, where: Path) -> None:
    """Have a JVM listen: it looks for a file of this name when it is sent SIGQUIT."""
    request = Path(f"/proc/{pid}/cwd/.attach_pid{pid}")
    request.touch(mode=0o600)
    try:
        os.kill(pid, signal.SIGQUIT)
        deadline = time.monotonic() + PATIENCE_S
        while not where.exists():
            if time.monotonic() > deadline:
                raise CollectionError(f"process {pid} does not listen within {PATIENCE_S:.0f} s")
            time.sleep(0.05)
    finally:
        request.unlink(missing_ok=True)
