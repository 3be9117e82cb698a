"""Single vertices moved between two blocks while that lowers the cut, and no edge leads to an earlier block.

Md-Stream paper, eq. 13 to 15 and Algorithm 2, with its termination repaired: each vertex is moved once a pass.
"""

from __future__ import annotations

import heapq
from typing import Any

import numba
import numpy as np

from models.placement.partition.chance import draw

ROUNDING = 1e-9
"""Share of all demand, or of all flow, up to which a difference is rounding: else two states may each seem better."""


@numba.njit(cache=True)
def flow_with(neighbours: Any, block: Any, vertex: int, number: int) -> float:
    """Return the flow between a vertex and a block, in the direction of `neighbours` (eq. 13, 14)."""
    start, other, flow = neighbours
    total = 0.0
    for at in range(start[vertex], start[vertex + 1]):
        if block[other[at]] == number:
            total += flow[at]
    return total


@numba.njit(cache=True)
def stays_acyclic(outgoing: Any, incoming: Any, block: Any, vertex: int, target: int) -> bool:
    """Return whether no edge leads to an earlier block once a vertex has moved (AcyclicCheck)."""
    onward = target > block[vertex]
    start, other, _ = outgoing if onward else incoming
    for at in range(start[vertex], start[vertex + 1]):
        if (onward and block[other[at]] < target) or (not onward and block[other[at]] > target):
            return False
    return True


@numba.njit(cache=True)
def gain_of(outgoing: Any, incoming: Any, block: Any, vertex: int, target: int) -> float:
    """Return by how much the cut falls when a vertex moves to a block to which it may (eq. 15)."""
    here = block[vertex]
    if target > here:
        return flow_with(outgoing, block, vertex, target) - flow_with(incoming, block, vertex, here)
    return flow_with(incoming, block, vertex, target) - flow_with(outgoing, block, vertex, here)


@numba.njit(cache=True)
def refine_pair(
    demand: Any, outgoing: Any, incoming: Any, block: Any, load: Any, many: Any, low: int, high: int, most: float,
    least: float, state: Any,
) -> int:  # fmt: skip
    """Move vertices between two blocks, the largest gain first, each once; returns how many were moved.

    A move keeps the demand of a block to `most`, empties none, and lowers the cut, or leaves it and makes the larger of
    both loads smaller.

    Args:
        demand: (V,) of the vertices.
        outgoing: `Neighbours` of the graph.
        incoming: likewise.
        block: (V,) of the vertices; changed.
        load: (blocks,) demand of each; changed.
        many: (blocks,) vertices of each; changed.
        low: the earlier block.
        high: the later one.
        most: demand of a block.
        least: gains up to this are rounding, and count as none; a load is smaller by more than ROUNDING of all.
        state: of `chance`, by which ties are broken; moves on.
    """
    count, moves, tiny = len(demand), 0, ROUNDING * load.sum()
    locked, entry = np.zeros(count, np.bool_), np.zeros(count, np.int64)
    queue = [(0.0, np.uint64(0), 0, 0)]
    queue.pop()
    for vertex in range(count):
        if block[vertex] == low or block[vertex] == high:
            _enter(queue, outgoing, incoming, block, entry, vertex, low, high, state)
    while len(queue) > 0:
        key, _, vertex, number = heapq.heappop(queue)
        if locked[vertex] or number != entry[vertex]:
            continue  # it was entered anew since
        here = block[vertex]
        target, gain, own = low + high - here, -key, demand[vertex]
        locked[vertex] = True
        levels = abs(gain) <= least and own < load[here] - load[target] - tiny
        if load[target] + own > most or many[here] == 1 or not (gain > least or levels):
            continue
        block[vertex] = target
        load[here] -= own
        load[target] += own
        many[here] -= 1
        many[target] += 1
        moves += 1
        for neighbours in (outgoing, incoming):
            start, other, _ = neighbours
            for at in range(start[vertex], start[vertex + 1]):
                near = other[at]
                if not locked[near] and (block[near] == low or block[near] == high):
                    _enter(queue, outgoing, incoming, block, entry, near, low, high, state)
    return moves


@numba.njit(cache=True)
def _enter(
    queue: Any, outgoing: Any, incoming: Any, block: Any, entry: Any, vertex: int, low: int, high: int, state: Any
) -> None:  # fmt: skip
    """Put a vertex that may move in its place by its gain; what was entered of it before counts no more."""
    entry[vertex] += 1
    target = low + high - block[vertex]
    if stays_acyclic(outgoing, incoming, block, vertex, target):
        gain = gain_of(outgoing, incoming, block, vertex, target)
        heapq.heappush(queue, (-gain, draw(state), vertex, entry[vertex]))
