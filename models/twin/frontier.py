"""Policies at equal violation: every one has a knob, and what counts is what it pays where it breaks the same promises."""

from __future__ import annotations

import numpy as np

from models.policy.capacity import Floats

_NEVER = 1e-5
"""Violations are compared on a logarithmic axis on which none at all lies here."""


def frontier(violation: Floats, cost: Floats) -> tuple[Floats, Floats]:
    """The points that no other point beats in both, by rising violation: (violation, cost)."""
    order = np.lexsort((cost, violation))
    kept: list[int] = []
    for i in order:
        if not kept or cost[i] < cost[kept[-1]]:
            kept.append(int(i))
    return violation[kept], cost[kept]


def cheapest_at(violation: Floats, cost: Floats, allowed: float) -> float:
    """Least cost at an allowed violation, on the line between the two points of the frontier beside it.

    Returns:
        NaN where the policy never keeps the promise that well.
    """
    share, paid = frontier(np.asarray(violation, float), np.asarray(cost, float))
    if share[0] > allowed:
        return float("nan")
    place = np.log10(np.maximum(share, _NEVER))
    return float(np.interp(np.log10(max(allowed, _NEVER)), place, paid))
