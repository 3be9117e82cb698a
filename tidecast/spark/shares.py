"""Division of one capacity: weighted max-min (Bertsekas and Gallager, "Data Networks", 1992, ch. 6.5), or by rank."""

from __future__ import annotations

import math
from collections.abc import Sequence


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
