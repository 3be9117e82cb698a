"""A wall clock against the steady one: by the wall clock Spark begins a query's next micro-batch, also if it is set."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

SET_BACK_S, PROMPT_S = 5.0, 1.0
"""Seconds by which a clock that is set counts; and within which it has to say what it shows."""


class WatchedClock:
    """Says by how much a wall clock was set since it was asked last.

    Attributes:
        now_s: returns what it shows, epoch seconds.
    """

    def __init__(self, now_s: Callable[[], float] = time.time) -> None:
        """Look at it for the first time."""
        self.now_s = now_s
        self._ahead_s = -math.inf
        self.set_by_s()

    def set_back_s(self) -> float:
        """Return seconds by which it was set back since the last look; 0: by less than SET_BACK_S, or not at all."""
        return max(-self.set_by_s(), 0.0)

    def set_by_s(self) -> float:
        """Return seconds by which it was set since the last look, below 0: back; 0: by less than SET_BACK_S."""
        began_s = time.monotonic()
        shown_s = self.now_s()
        if time.monotonic() - began_s > PROMPT_S:  # of a JVM that stood still it is not known when it was
            return 0.0
        before_s, self._ahead_s = self._ahead_s, shown_s - began_s
        by_s = self._ahead_s - before_s
        return by_s if SET_BACK_S < abs(by_s) < math.inf else 0.0
