"""The store's clock: wall time at start plus monotonic time since, so that a step of the wall clock is not seen."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], int]
"""Nanoseconds since the epoch."""


def steady() -> Clock:
    """A clock that starts at wall time and then only rises (seed section 5).

    Where the system suspends the process between the two looks, the clock would lag by that for good: the best of some.
    """
    ahead = max(time.time_ns() - time.monotonic_ns() for _ in range(5))
    return lambda: time.monotonic_ns() + ahead
