"""The cheapest blocks of a small graph, of all that depend on each other in one direction.

Such blocks are steps of a chain of closed sets: with each vertex a closed set has all those that lead to it. So the
best b blocks of a closed set are a last block, which leaves a closed set, and the best b - 1 blocks of that one.
"""

from __future__ import annotations

import math

import numpy as np

from models.placement.graph import Dag, GraphError, Integers

LARGEST = 10
"""Vertices up to which all pairs of closed sets, a million at most, are looked at."""


def cheapest_blocks(graph: Dag, blocks: int, most: float) -> Integers | None:
    """Return the (V,) blocks with the least flow between them, none above `most`; None where there are none.

    Args:
        graph: of at most LARGEST vertices.
        blocks: how many; none is empty.
        most: demand of a block.

    Raises:
        GraphError: the graph is larger.
    """
    if graph.size > LARGEST:
        raise GraphError(f"{graph.size} vertices: all blocks are looked at of {LARGEST} at most; use partition")
    count = graph.size
    before = [0] * count
    for tail, head in zip(graph.tail.tolist(), graph.head.tolist(), strict=True):
        before[head] |= 1 << tail
    closed = [one for one in range(1 << count) if all(not one >> v & 1 or before[v] & ~one == 0 for v in range(count))]
    demand, inner = _sums(graph)
    best = {0: (0.0, 0)}
    steps: list[dict[int, tuple[float, int]]] = []
    for _ in range(blocks):
        found: dict[int, tuple[float, int]] = {}
        for whole in closed:
            for part, (kept, _) in best.items():
                block = whole & ~part
                if part & ~whole or not block or demand[block] > most:
                    continue
                if (value := kept + inner[block]) > found.get(whole, (-math.inf, 0))[0]:
                    found[whole] = value, part
        steps.append(found)
        best = found
    whole = (1 << count) - 1
    if whole not in best:
        return None
    made = np.empty(count, np.int64)
    for number in range(blocks - 1, -1, -1):
        part = steps[number][whole][1]
        made[[v for v in range(count) if whole & ~part & 1 << v]] = number
        whole = part
    return made


def _sums(graph: Dag) -> tuple[list[float], list[float]]:
    """Demand and inner flow of every set of vertices."""
    out = [{} for _ in range(graph.size)]  # type: list[dict[int, float]]
    for tail, head, flow in zip(graph.tail.tolist(), graph.head.tolist(), graph.flow.tolist(), strict=True):
        out[tail][head] = out[head][tail] = flow
    demand, inner = [0.0] * (1 << graph.size), [0.0] * (1 << graph.size)
    for one in range(1, 1 << graph.size):
        vertex = one.bit_length() - 1
        rest = one & ~(1 << vertex)
        demand[one] = demand[rest] + float(graph.demand[vertex])
        inner[one] = inner[rest] + sum(flow for other, flow in out[vertex].items() if rest >> other & 1)
    return demand, inner
