"""What a policy costs at a violation: the Pareto frontier of its runs, read off at an allowed share of late seconds."""

from __future__ import annotations

import numpy as np

from models.policy.core.capacity import Floats

_NEVER = 1e-5  # where a violation of 0 lies on a logarithmic axis
NEAR = 10.0  # factor between two violations up to which costs between them are interpolated on that axis


def pareto_frontier(violation: Floats, cost: Floats) -> tuple[Floats, Floats]:
    """Return the Pareto-optimal of (N,) points (no other is better in both): (M,) rising violations, and (M,) costs."""
    order = np.lexsort((cost, violation))
    paid = cost[order]
    kept = order[paid < np.append(np.inf, np.minimum.accumulate(paid)[:-1])]
    return violation[kept], cost[kept]


def least_cost_at(violation: Floats, cost: Floats, allowed: float) -> float:
    """Interpolate the least cost at an allowed violation along the Pareto frontier of a policy's points.

    Points whose violations differ by a factor of 10 at most are joined by a line over the logarithm of the violation
    (at least 1e-5), others by a line over the violation itself, which is what alternating between the two would cost.

    Args:
        violation: (N,) shares of the seconds over the latency target, N at least 1.
        cost: (N,) in any unit.
        allowed: share of the seconds.

    Returns:
        In the unit of `cost`; NaN where every point violates more than allowed. Past the last point its cost holds.

    Raises:
        IndexError: no points.
    """
    share, paid = pareto_frontier(np.asarray(violation, float), np.asarray(cost, float))
    if share[0] > allowed:
        return float("nan")
    last = int(np.searchsorted(share, allowed, side="right"))
    if last == len(share):
        return float(paid[-1])
    low, high = max(share[last - 1], _NEVER), max(share[last], _NEVER)
    if low >= high:
        return float(paid[last - 1])
    way = (allowed - share[last - 1]) / (share[last] - share[last - 1])
    if high <= NEAR * low:
        way = np.log(max(allowed, low) / low) / np.log(high / low)
    return float(paid[last - 1] + way * (paid[last] - paid[last - 1]))
