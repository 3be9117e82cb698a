"""How sure the learned batch time is: quantiles of the service rate and of a batch's time, calibrated on recorded runs.

The spread is that of the newest batches' surprises, as logarithms; what it says of the next 20 batches was measured
(`tidecast bench capacity`). The constant above is the larger and the less certain one, because batches of few records
hardly tell what the work of one takes.
"""

from __future__ import annotations

import math
from statistics import NormalDist

from models.policy.core.batch_time import KEPT, MOST_SURPRISE, BatchTime

FIRST_SCATTER = 0.09
"""Mean square of the surprises that is assumed before there was one: factors of 1.35."""
BELOW, ABOVE = 2.45, 4.5
"""Spreads from the learned service rate down to the 5 % quantile of what the next 20 batches show, and up to 95 %."""
TIME = 1.23
"""The same of the time of the next 20 batches, either way."""
_AT_5 = NormalDist().inv_cdf(0.95)


def add_surprise(scatter: float, known: BatchTime, rows: float, slots: float, duration_s: float) -> float:
    """Return the mean square of the logarithms by which batches surprised, after one more; unchanged without rows.

    Args:
        scatter: so far.
        known: what was believed before the batch.
        rows: records of the batch.
        slots: parallel slots that it ran on.
        duration_s: its duration.
    """
    if rows <= 0 or slots <= 0 or duration_s <= 0:
        return scatter
    surprise = math.log(duration_s / (known.overhead_s + known.per_record_s * rows / slots))
    return KEPT * scatter + (1 - KEPT) * min(abs(surprise), MOST_SURPRISE) ** 2


def slot_quantile(known: BatchTime, scatter: float, level: float) -> float:
    """Return a quantile of the records/s that a slot serves while it works, as the next 20 batches will show it.

    Args:
        known: of the batch time; its service rate is 1/`per_record_s`.
        scatter: of `add_surprise`.
        level: in (0, 1); calibrated at 0.05 and 0.95, by normal quantiles between and beyond.
    """
    spreads = NormalDist().inv_cdf(level) / _AT_5
    return math.exp(math.sqrt(scatter) * spreads * (BELOW if spreads < 0 else ABOVE)) / known.per_record_s


def rate_deviation(scatter: float) -> float:
    """Return the standard deviation of the logarithm of the rate that the next 20 batches will show, by its low side.

    Args:
        scatter: of `add_surprise`.
    """
    return math.sqrt(scatter) * BELOW / _AT_5


def time_factor(scatter: float, level: float) -> float:
    """Return by what the time of the next 20 batches is above the predicted, as a quantile; level in (0, 1)."""
    return math.exp(math.sqrt(scatter) * TIME * NormalDist().inv_cdf(level) / _AT_5)
