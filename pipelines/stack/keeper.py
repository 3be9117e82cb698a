"""Ends a stack when its parent dies: `python -m pipelines.stack.keeper ID`, which is told on stdin what to watch."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO

import psutil

from pipelines.stack import processes

_GRACE_S = 4.0  # shorter than at an orderly stop: nobody is left who would use what a service still writes


class Keeper:
    """A process that ends the children of this one if it dies, however it dies.

    It reads a pipe whose writing end is in this process alone; the end of this process is the end of the pipe.
    """

    def __init__(self, stack_id: str, log: Path) -> None:
        """Start the keeper.

        Args:
            stack_id: value of the environment variable `MARKER` in the processes that it ends besides those watched.
            log: file to which its output is appended.

        Raises:
            OSError: it cannot be started, or the log cannot be written.
        """
        with log.open("ab") as sink:
            self._popen = subprocess.Popen(
                [sys.executable, "-m", "pipelines.stack.keeper", stack_id],
                stdin=subprocess.PIPE, stdout=sink, stderr=sink, start_new_session=True,
                env={**os.environ, processes.MARKER: stack_id},
            )  # fmt: skip

    def watch(self, pid: int) -> None:
        """Have the keeper also end the session of this child.

        Raises:
            ProcessError: the keeper was ended from outside: nobody would end the child if this process died.
        """
        if not self._say(f"watch {pid}"):
            raise processes.ProcessError(
                f"the keeper of the stack (process {self._popen.pid}) was ended from outside. Stop the stack and start "
                "it again."
            )

    def forget(self, pid: int) -> None:
        """Take a child that has ended off the keeper's list: its pid may be given to another process.

        A keeper that was ended from outside keeps no list; nothing is done then.
        """
        self._say(f"forget {pid}")

    def release(self) -> None:
        """End the keeper, if it still runs, and let the processes live on.

        Raises:
            subprocess.TimeoutExpired: it does not end within 30 s.
        """
        self._say("release")
        self.end()

    def end(self) -> None:
        """Close the keeper's pipe, on which it ends what it watches and then itself; wait for that.

        It ends the sessions it watches (SIGTERM to their leaders) and every process with the stack's marker (SIGKILL,
        to all that is left after 4 s), unless it was released. Where it has ended already nothing is ended.

        Raises:
            subprocess.TimeoutExpired: the keeper does not end within 30 s.
        """
        if self._popen.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._popen.stdin.close()
        self._popen.wait(30)

    def _say(self, line: str) -> bool:
        """Write a line to the keeper; returns False where it was ended from outside."""
        pipe: IO[bytes] | None = self._popen.stdin
        if pipe is None or pipe.closed:  # after `end`
            return True
        try:
            pipe.write(line.encode() + b"\n")
            pipe.flush()
        except BrokenPipeError:
            return False
        return True


def run_keeper(lines: Iterable[str], stack_id: str) -> None:
    """Read the keeper's pipe to its end, then end the watched sessions and the stack's other processes.

    Leaders of sessions get SIGTERM, all that is left after 4 s SIGKILL; blocks until then, at most some 9 s.

    Args:
        lines: `watch PID`, `forget PID` or `release`, which returns at once and ends nothing; others are passed over.
        stack_id: value of the environment variable `MARKER` in the stack's processes.

    Raises:
        ValueError: a pid that is no number.
        PermissionError: a process belongs to another user.
    """
    watched: dict[int, psutil.Process] = {}
    for line in lines:
        word, _, pid = line.strip().partition(" ")
        if word == "watch":
            with contextlib.suppress(psutil.NoSuchProcess):  # it has ended already
                watched[int(pid)] = psutil.Process(int(pid))
        elif word == "forget":
            watched.pop(int(pid), None)
        elif word == "release":
            return
    processes.end_processes(
        lambda: [p for p in processes.find_processes(_sessions(watched), stack_id) if p.pid != os.getpid()],
        grace_s=_GRACE_S,
        leaders=[pid for pid, leader in watched.items() if leader.is_running()],
    )


def _sessions(watched: Mapping[int, psutil.Process]) -> list[int]:
    """Those of which somebody may be left: no other process has begun one of that number since its leader ended."""
    return [pid for pid, leader in watched.items() if leader.is_running() or not psutil.pid_exists(pid)]


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    run_keeper(sys.stdin, sys.argv[1])
