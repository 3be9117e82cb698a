"""Ends a stack when its parent dies: `python -m pipelines.stack.keeper ID`, which is told on stdin what to watch."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from pipelines.stack import processes

_GRACE_S = 4.0  # shorter than at an orderly stop: nobody is left who would use what a service still writes


class Keeper:
    """A process that outlives this one and ends its children if it dies, however it dies.

    It holds the reading end of a pipe whose writing end is here alone; the end of this process is the end of the pipe.
    """

    def __init__(self, stack_id: str, log: Path) -> None:
        with log.open("ab") as sink:
            self._popen = subprocess.Popen(
                [sys.executable, "-m", "pipelines.stack.keeper", stack_id],
                stdin=subprocess.PIPE, stdout=sink, stderr=sink, start_new_session=True,
                env={**os.environ, processes.MARKER: stack_id},
            )  # fmt: skip

    def watch(self, pid: int) -> None:
        """End the session of this child, too."""
        self._say(f"watch {pid}")

    def forget(self, pid: int) -> None:
        """The child has ended; its number may be given to another process."""
        self._say(f"forget {pid}")

    def release(self) -> None:
        """End the keeper and let its children live on."""
        self._say("release")
        self.end()

    def end(self) -> None:
        """End everything that is left, and the keeper."""
        if self._popen.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._popen.stdin.close()
        self._popen.wait(30)

    def _say(self, line: str) -> None:
        pipe: IO[bytes] | None = self._popen.stdin
        if pipe is None or pipe.closed:
            return
        try:
            pipe.write(line.encode() + b"\n")
            pipe.flush()
        except BrokenPipeError:
            raise processes.ProcessError(
                f"the keeper of the stack (process {self._popen.pid}) was ended from outside. Stop and start again."
            ) from None


def keep(lines: Iterable[str], stack_id: str) -> None:
    """Follow the pipe to its end, then end what was watched and what carries the marker, unless told `release`."""
    sessions: set[int] = set()
    for line in lines:
        word, _, pid = line.strip().partition(" ")
        if word == "watch":
            sessions.add(int(pid))
        elif word == "forget":
            sessions.discard(int(pid))
        elif word == "release":
            return
    processes.end(
        lambda: [p for p in processes.members(sessions, stack_id) if p.pid != os.getpid()],
        grace_s=_GRACE_S,
        leaders=sorted(sessions),
    )


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    keep(sys.stdin, sys.argv[1])
