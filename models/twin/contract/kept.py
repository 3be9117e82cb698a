"""How late each second of a job's production came out, and the latency target that the job kept with it."""

from __future__ import annotations

import math

import numpy as np

from models.policy.core.budget import FIRST_S
from models.policy.core.capacity import Floats

LEAST_TARGET_S = 0.1
"""No shorter target is proposed; the twin simulates none."""


def latency_by_second(committed: Floats, latency_s: Floats) -> tuple[Floats, Floats]:
    """Return how long after each second of production its last record was committed, as the promise counts it.

    A batch covers the seconds from its oldest record to the oldest of the next batch; a second that two of them share
    has the longer latency. So the seconds over a target are those that `Account` (models/policy/core/budget.py) counts
    as late, which follows one batch behind, too.

    Args:
        committed: (B,) epoch seconds at which batches were committed, never falling.
        latency_s: (B,) of each one's oldest record.

    Returns:
        (S,) rising whole epoch seconds, and (S,) seconds from their oldest record to the commit; empty for one batch.
    """
    began = committed - np.maximum(latency_s, 0.0)
    began[:1] = np.maximum(began[:1], committed[:1] - FIRST_S)  # the first one may tell of what an outage left
    began = np.maximum.accumulate(began)
    ended = np.minimum(np.maximum(began[1:], began[:-1]), np.maximum(committed[:-1], began[:-1]))
    first, last = np.floor(began[:-1]), np.ceil(ended)
    many = np.where(ended > began[:-1], last - first, 0.0).astype(np.int64)
    batch = np.repeat(np.arange(len(many)), many)
    second = first[batch] + np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)
    seconds, place = np.unique(second, return_inverse=True)
    longest = np.zeros(len(seconds))
    np.maximum.at(longest, place, committed[batch] - np.maximum(second, began[batch]))
    return seconds, longest


def target_kept(latency_s: Floats, budget: float) -> float:
    """Return the shortest latency target, of two digits, over which at most a share of the seconds came out.

    Args:
        latency_s: (S,) of seconds of production, at least one.
        budget: share of them that may be over it, 0 to 1.
    """
    allowed = math.floor(budget * len(latency_s) * (1 + 1e-12))
    least = float(np.sort(latency_s)[len(latency_s) - 1 - min(allowed, len(latency_s) - 1)])
    return max(round_up(least), LEAST_TARGET_S)


def round_up(value: float, digits: int = 2) -> float:
    """Return the least number of so many significant digits that is not below a value above 0; 0 for 0."""
    if value <= 0:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    return float(f"{math.ceil(value / unit - 1e-9) * unit:.{digits}g}")
