"""From a promise of seconds to a limit of records (unified batch-stream runtime paper, eq. 3.3), and back.

A contract promises that of the seconds of production at most a share b is late; a second is late if one of its records
is. A path limits a quantile of the latency of records. What lies between:

- Batches take records in their order, so what is late are stretches of production time. One of ℓ seconds that begins
  anywhere touches ℓ + 1 seconds of the clock in the mean. With stretches of E seconds, a share p of late seconds is a
  share p·E/(E + 1) of late time.
- Late time with w times the mean load holds w times its share of the records.

So a share p of late seconds is a share r = p·w·E/(E + 1) of late records, and the path's level is 1 − b·w·E/(E + 1).

**Which way it is safe.** Who keeps the level keeps the promise where late time is at least as loaded, and its stretches
at least as long, as assumed. Overload makes late time the loaded one (w ≥ 1, and the default of 1 is strict). Where it
may fall into valleys, as when a replay fills them, `valley_weight` is the least w that any late seconds can have:
with it the promise holds wherever they fall. The other way, a kept promise says of the records only that at most
`peak_weight`·b of them are late.

A share of late records in every batch would be late seconds in every batch, which no level below 1 forbids. So the
limit itself leaves room for the oldest records of a batch: `path_limit_ms`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def records_level(budget: float, stretch_s: float, weight: float = 1.0) -> float:
    """Return the quantile of records that a promise of seconds comes to: 1 − b·w·E/(E + 1).

    Args:
        budget: b, share of seconds that may be late, in (0, 1).
        stretch_s: E, mean length of what is late at a stretch, seconds, above 0.
        weight: w, load of late seconds over the mean load; such that b·w stays below 1.

    Raises:
        ValueError: the level is not in (0, 1).
    """
    level = 1 - budget * weight * stretch_s / (stretch_s + 1)
    if not 0 < level < 1:
        raise ValueError(f"budget={budget}, weight={weight}, stretch_s={stretch_s}: they come to the level {level}")
    return level


def seconds_share(late_records: float, stretch_s: float, weight: float = 1.0) -> float:
    """Return the share of late seconds that a share of late records comes to; the inverse of `records_level`."""
    return late_records * (stretch_s + 1) / (weight * stretch_s)


def path_limit_ms(target_s: float, level: float, interval_s: float) -> float:
    """Return the limit of a quantile, ms, under which the oldest record of a batch is in time: L − (1 − q)·I.

    In equilibrium latencies are uniform over a batch's interval, so its quantile lies (1 − q)·I under the longest.

    Args:
        target_s: L, seconds.
        level: q.
        interval_s: I, from batch to batch, seconds, less than `target_s`.
    """
    return 1000 * (target_s - (1 - level) * interval_s)


def valley_weight(load: Sequence[float], budget: float) -> float:
    """Return the least load that a share of the seconds can have, over the mean load: Lorenz(b)/b.

    Any set of seconds that holds at most Lorenz(b) of the records is at most a share b of the seconds.

    Args:
        load: (seconds,) records/s, not negative, not all 0; equal parts of any length do.
        budget: b, in (0, 1].
    """
    return _lightest(load, budget) / budget


def peak_weight(load: Sequence[float], budget: float) -> float:
    """Return the most load that a share of the seconds can have, over the mean load: (1 − Lorenz(1 − b))/b."""
    return (1 - _lightest(load, 1 - budget)) / budget


def _lightest(load: Sequence[float], share: float) -> float:
    """Lorenz curve: share of the records in the least loaded seconds, between whole seconds by a line."""
    ordered, at = sorted(load), share * len(load)
    whole = min(int(at), len(ordered))
    part = (at - whole) * ordered[whole] if whole < len(ordered) else 0.0
    return (math.fsum(ordered[:whole]) + part) / math.fsum(ordered)
