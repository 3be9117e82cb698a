"""What arrived in the last quarter of an hour: running totals, thin enough to be carried in a keyed state."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace

GRAIN_S = 5.0
"""Seconds between two totals that are kept."""
BACK_S = 60.0
"""A clock that goes back by more was set; what came before is then of no known time."""
KEPT_S = 960.0
"""The oldest rate that is asked for is that of 15 minutes ago, a mean over some seconds."""


@dataclass(frozen=True)
class Past:
    """Records that had arrived, at rising wall times.

    Attributes:
        at: seconds on the wall; all but the newest at least `GRAIN_S` apart.
        total: records until then, since the first.
    """

    at: tuple[float, ...] = ()
    total: tuple[float, ...] = ()

    def rate(self, now: float, seconds: float) -> float:
        """Records/s in the `seconds` before `now`; before the first ones came, what these were; NaN without any."""
        if len(self.at) < 2:
            return float("nan")
        end = max(now, min(self.at[0] + seconds, self.at[-1]))
        start = max(end - seconds, self.at[0])
        return (self._until(end) - self._until(start)) / max(end - start, 1e-9)

    def _until(self, moment: float) -> float:
        right = min(max(bisect_left(self.at, moment), 1), len(self.at) - 1)
        begin, end = self.at[right - 1], self.at[right]
        share = min(max((moment - begin) / max(end - begin, 1e-9), 0.0), 1.0)
        return self.total[right - 1] + share * (self.total[right] - self.total[right - 1])


def saw(past: Past, at: float, rps: float, seconds: float) -> Past:
    """The past after so many seconds at a rate, which ended at a wall time; a second that comes late is left out."""
    if not past.at:
        return Past((at - seconds, at), (0.0, round(rps * seconds, 3)))
    if at < past.at[-1] - BACK_S:
        return saw(Past(), at, rps, seconds)
    if at <= past.at[-1]:
        return past
    # What came while nobody looked is taken for what comes now: a gap is no silence.
    total = round(past.total[-1] + rps * (at - past.at[-1]), 3)
    crowded = len(past.at) > 1 and past.at[-1] - past.at[-2] < GRAIN_S
    kept = replace(past, at=past.at[:-1], total=past.total[:-1]) if crowded else past
    first = max(bisect_left(kept.at, at - KEPT_S) - 1, 0)
    return Past((*kept.at[first:], at), (*kept.total[first:], total))
