"""Topological orders, drawn by a seed. Md-Stream paper, Algorithm 1 (Kahn 1962)."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from models.placement.partition.chance import draw_below


@numba.njit(cache=True)
def draw_order(outgoing: Any, indegree: Any, state: Any) -> Any:
    """Return the (V,) vertices in an order in which every edge leads onward; ties are drawn.

    Args:
        outgoing: `Neighbours` of the graph, which has no cycle.
        indegree: (V,) of its vertices.
        state: of `chance`; moves on.
    """
    start, other, _ = outgoing
    left, count = indegree.copy(), len(indegree)
    ready, order = np.empty(count, np.int64), np.empty(count, np.int64)
    many = 0
    for vertex in range(count):
        if left[vertex] == 0:
            ready[many] = vertex
            many += 1
    for place in range(count):
        drawn = draw_below(state, many)
        vertex = ready[drawn]
        many -= 1
        ready[drawn] = ready[many]
        order[place] = vertex
        for at in range(start[vertex], start[vertex + 1]):
            left[other[at]] -= 1
            if left[other[at]] == 0:
                ready[many] = other[at]
                many += 1
    return order
