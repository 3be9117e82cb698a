"""Ends a stack when its parent dies: `python -m pipelines.stack.keeper ID`, which is told on stdin what to watch."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable

from pipelines.stack import processes

_GRACE_S = 4.0  # shorter than at an orderly stop: nobody is left who would use what a service still writes


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
