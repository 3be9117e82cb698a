"""What arrived in the last quarter of an hour: running totals, thin enough to be carried in a keyed state."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace

GRAIN_S = 5.0
"""Seconds between two totals that are kept."""
BACK_S = 60.0
"""Seconds; where time goes back by more, the clock was set and the totals begin anew."""
KEPT_S = 960.0
"""Seconds of totals that are kept: 15 minutes for `peaks.TRENDS_S`, and some to average over."""


@dataclass(frozen=True)
class Past:
    """Running total of arrived records at rising wall times.

    Attributes:
        at: epoch seconds; all but the newest at least `GRAIN_S` apart.
        total: records until then, since the first.
    """

    at: tuple[float, ...] = ()
    total: tuple[float, ...] = ()

    def rate(self, now: float, seconds: float) -> float:
        """Return the mean records/s in the `seconds` before `now` (epoch seconds); NaN with fewer than two totals.

        Before the oldest total it is the mean of the first `seconds`; after the newest total nothing counts as arrived.
        """
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


def add_interval(past: Past, at: float, rps: float, seconds: float) -> Past:
    """Return the running total with one more interval; what is older than 960 s (`KEPT_S`) is dropped.

    One that ends no later than the newest is ignored; one more than 60 s (`BACK_S`) before it means that the clock was
    set, and begins anew. A gap before it is filled with its rate. Totals are rounded to a thousandth of a record.

    Args:
        past: so far; not changed.
        at: epoch seconds at which the interval ended.
        rps: its records/s.
        seconds: its length; used where it is the first one.
    """
    if not past.at:
        return Past((at - seconds, at), (0.0, round(rps * seconds, 3)))
    if at < past.at[-1] - BACK_S:
        return add_interval(Past(), at, rps, seconds)
    if at <= past.at[-1]:
        return past
    # A gap without metrics is filled with the present rate, not with silence.
    total = round(past.total[-1] + rps * (at - past.at[-1]), 3)
    crowded = len(past.at) > 1 and past.at[-1] - past.at[-2] < GRAIN_S
    kept = replace(past, at=past.at[:-1], total=past.total[:-1]) if crowded else past
    first = max(bisect_left(kept.at, at - KEPT_S) - 1, 0)
    return Past((*kept.at[first:], at), (*kept.total[first:], total))
