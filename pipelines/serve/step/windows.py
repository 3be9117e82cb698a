"""Where a job's closed windows are: in memory here, in a store on the fast path; a model is started on them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from typing import Protocol

from configs.bounds import DAY_S, WEEK_S

FEWEST, MOST = 2_880, 26_000
"""Windows of a job that a champion is warmed on, at least and at most."""
Rates = list[tuple[int, float]]
"""(window, records/s), rising."""


def warmed_steps(step_s: float) -> int:
    """Return how many windows of `step_s` seconds a champion is warmed on, bounded whatever the uptime.

    They hold a week and two days where that is no more than 26,000 (`MOST`): a model that reads last week needs a week
    and a day, and has then some errors of its own to go by. Else two days where that is no more; 2,880 at least.
    """
    day = round(DAY_S / step_s)
    lengths = (length for length in (round(WEEK_S / step_s) + 2 * day, 2 * day) if length <= MOST)
    return max(FEWEST, next(lengths, 0))


class Windows(Protocol):
    """Closed windows of `step_s` seconds; read by the thread that serves and by the one that makes models ready."""

    @property
    def step_s(self) -> float:
        """Seconds per window."""

    def newest(self, job: str) -> int | None:
        """Return the index of the job's newest window; None without one."""

    def rates(self, job: str, first: int, last: int) -> Rates:
        """Return (window index, records/s) of windows `first` to `last` (included), rising; missing ones skipped."""


class RecentWindows:
    """The newest `warmed_steps` windows of every job, in memory; safe to use from several threads."""

    def __init__(self, step_s: float) -> None:
        self.step_s = step_s
        self._jobs: dict[str, deque[tuple[int, float]]] = {}
        self._lock = threading.Lock()

    def add(self, job: str, windows: Iterable[tuple[int, float]]) -> None:
        """Append (window index, records/s) of a job, rising and newer than all before; drop the oldest if full."""
        with self._lock:
            self._jobs.setdefault(job, deque(maxlen=warmed_steps(self.step_s))).extend(windows)

    def newest(self, job: str) -> int | None:
        """Return the index of the job's newest window; None without one."""
        with self._lock:
            return self._jobs[job][-1][0] if self._jobs.get(job) else None

    def rates(self, job: str, first: int, last: int) -> Rates:
        """Return (window index, records/s) of the windows `first` to `last` that are kept, both included, rising."""
        with self._lock:
            return [(window, rate) for window, rate in self._jobs.get(job, ()) if first <= window <= last]
