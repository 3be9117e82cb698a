"""Division of one capacity: weighted max-min, a floor for maintenance, credits of the origins, whole records.

Bertsekas and Gallager, "Data Networks", 1992, ch. 6.5; remainders as in deficit round robin (Shreedhar and Varghese
1996). The unified batch-stream runtime paper asks for fair shares, and names no method.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from configs.bounds import Declared, NotNegative
from configs.limits import Priorities

QUANTUM_UNDER_PRESSURE = 0.25
"""Share of its usual rows that a channel takes per turn while the relief ladder stands above its foot."""


@dataclass(frozen=True)
class Credits(Declared):
    """Parts of one capacity by origin, in its unit."""

    live: NotNegative = 0.0
    maintenance: NotNegative = 0.0
    replay: NotNegative = 0.0


def water_fill(capacity: float, demands: Sequence[float], weights: Sequence[float]) -> tuple[float, ...]:
    """Divide a capacity by weighted max-min: whoever asks for less than his part leaves the rest to the others.

    The same shares maximise Σ w·ln x on one resource (proportional fairness).

    Args:
        capacity: at least 0.
        demands: (flows,) at least 0, may be infinite, unit of the capacity.
        weights: (flows,) above 0.

    Returns:
        (flows,) shares, none above its demand, together at most the capacity.

    Raises:
        ValueError: a demand, weight or the capacity is out of range or NaN, or there is not one weight per demand.
    """
    if len(demands) != len(weights):
        raise ValueError(f"{len(demands)} demands and {len(weights)} weights: one each is expected")
    if not 0 <= capacity < math.inf:
        raise ValueError(f"capacity={capacity}: a finite number from 0 on is expected")
    for at, (demand, weight) in enumerate(zip(demands, weights, strict=True)):
        if not (demand >= 0 and 0 < weight < math.inf):
            raise ValueError(f"flow {at}: demand={demand}, weight={weight}: from 0 on and above 0 are expected")
    shares, left, waiting = [0.0] * len(demands), capacity, math.fsum(weights)
    order = sorted(range(len(demands)), key=lambda flow: demands[flow] / weights[flow])
    for at, flow in enumerate(order):
        part = left * min(weights[flow] / waiting, 1.0)
        shares[flow] = min(demands[flow], part)
        left = max(left - shares[flow], 0.0)
        waiting = math.fsum(weights[other] for other in order[at + 1 :])
    return tuple(shares)


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


def highest_first(capacity: float, demands: Sequence[float], weights: Sequence[float]) -> tuple[float, ...]:
    """Divide a capacity so that the flow of the lowest weight is cut first; equal weights are cut alike.

    Args:
        capacity: at least 0.
        demands: (flows,) at least 0.
        weights: (flows,) above 0.

    Returns:
        (flows,) shares, none above its demand, together at most the capacity.
    """
    shares, left = [0.0] * len(demands), capacity
    for weight in sorted(set(weights), reverse=True):
        flows = [flow for flow, own in enumerate(weights) if own == weight]
        parts = water_fill(left, [demands[flow] for flow in flows], [weight] * len(flows))
        for flow, part in zip(flows, parts, strict=True):
            shares[flow] = part
        left = max(left - math.fsum(parts), 0.0)
    return tuple(shares)


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
