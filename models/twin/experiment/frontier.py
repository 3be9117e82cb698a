"""Policies at equal violation: each has a knob, and what counts is what it pays where it breaks the same promises."""

from __future__ import annotations

import numpy as np

from models.policy.core.capacity import Floats

_NEVER = 1e-5
"""Violations are compared on a logarithmic axis on which none at all lies here."""
NEAR = 10.0
"""Factor between two violations up to which a cost between them is read off that axis."""


def frontier(violation: Floats, cost: Floats) -> tuple[Floats, Floats]:
    """The points that no other point beats in both, by rising violation: (violation, cost)."""
    order = np.lexsort((cost, violation))
    paid = cost[order]
    kept = order[paid < np.append(np.inf, np.minimum.accumulate(paid)[:-1])]
    return violation[kept], cost[kept]


def cheapest_at(violation: Floats, cost: Floats, allowed: float) -> float:
    """Least cost at an allowed violation, between the two points of the frontier beside it.

    Points within a factor of `NEAR` are joined by a line over the logarithm of the violation. Between points further
    apart the line is over the violation itself, which is what taking turns between the two would cost: a line over the
    logarithm would promise what nobody has tried.

    Returns:
        NaN where the policy never keeps the promise that well.
    """
    share, paid = frontier(np.asarray(violation, float), np.asarray(cost, float))
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
