"""Division of one capacity: a floor for maintenance, credits of the origins, whole records; all by weighted max-min.

Remainders as in deficit round robin (Shreedhar and Varghese 1996). The unified batch-stream runtime paper asks for fair
shares, and names no method.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from configs.bounds import Declared, NotNegative
from configs.limits import Priorities
from tidecast.spark.shares import water_fill

QUANTUM_UNDER_PRESSURE = 0.25
"""Share of its usual rows that a channel takes per turn while the relief ladder stands above its foot."""


@dataclass(frozen=True)
class Credits(Declared):
    """Parts of one capacity by origin, in its unit."""

    live: NotNegative = 0.0
    maintenance: NotNegative = 0.0
    replay: NotNegative = 0.0


def divide_credits(capacity: float, demands: Credits, priorities: Priorities, floor: float) -> Credits:
    """Divide a capacity between live records, maintenance and the replay by their priorities.

    Maintenance (checkpoints, compaction) has its floor, if it asks for it, before the others divide the rest.

    Args:
        capacity: at least 0.
        demands: what each asks for, in the capacity's unit.
        priorities: weights.
        floor: share of the capacity, 0 to 1.

    Raises:
        ValueError: a demand or the capacity is negative or NaN.
    """
    asked = (demands.live, demands.maintenance, demands.replay)
    weights = (priorities.live, priorities.maintenance, priorities.replay)
    credits, least = Credits(*water_fill(capacity, asked, weights)), min(demands.maintenance, floor * capacity)
    if credits.maintenance >= least:
        return credits
    live, replay = water_fill(capacity - least, asked[::2], weights[::2])
    return Credits(live, least, replay)


def whole_records(
    shares: Sequence[float], waiting: Sequence[int], deficits: Sequence[float]
) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Round shares of a batch to whole records; what rounding takes from a flow it is owed in the next batch.

    Args:
        shares: (flows,) records, at least 0.
        waiting: (flows,) records that there are.
        deficits: (flows,) records owed from before, -1 to 1.

    Returns:
        (flows,) records, none above what waits, together the sum of the shares rounded down; and (flows,) deficits:
        nothing is owed to a flow that has got all it has.
    """
    owed = [share + deficit for share, deficit in zip(shares, deficits, strict=True)]
    given = [min(max(math.floor(own), 0), most) for own, most in zip(owed, waiting, strict=True)]
    left = min(math.floor(math.fsum(shares) + 1e-9), sum(waiting)) - sum(given)
    step = 1 if left > 0 else -1
    for _ in range(min(abs(left), len(given))):
        able = [flow for flow, own in enumerate(given) if (own < waiting[flow] if left > 0 else own > 0)]
        given[max(able, key=lambda flow: step * (owed[flow] - given[flow]))] += step
    rest = zip(owed, given, waiting, strict=True)
    return tuple(given), tuple(max(min(due - own, 0.0 if own == most else 1.0), -1.0) for due, own, most in rest)
