"""The follower's own clock: what passes by it is not changed by whoever sets the computer's."""

from __future__ import annotations

import time


class SteadyClock:
    """Epoch seconds as they were when it was made, and what has passed since."""

    def __init__(self) -> None:
        self._began, self._at = time.time(), time.monotonic()

    def now(self) -> float:
        """Return its time; differences of two are seconds that have passed."""
        return self._began + self.passed_s

    @property
    def passed_s(self) -> float:
        """Seconds since it was made."""
        return time.monotonic() - self._at

    @property
    def ahead_s(self) -> float:
        """Seconds by which wall time is ahead of it, as it was set since."""
        return time.time() - self.now()
