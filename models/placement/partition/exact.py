"""The blocks of a small graph with the least cut, of all that depend on each other in one direction.

Such blocks are steps of a chain of closed sets: with each vertex a closed set has all those that lead to it. So the
best b blocks of a closed set are a last block, which leaves a closed set, and the best b - 1 blocks of that one.
"""

from __future__ import annotations

import numpy as np

from models.placement.graph import Dag, GraphError, Integers

LARGEST, MOST_CLOSED = 10, 300
"""Vertices and closed sets up to which all pairs of these are looked at, in a fraction of a second."""

DIGITS = 9
"""Of a flow, beyond which sums of the same edges may differ by their order."""


def closed_sets(graph: Dag) -> list[int]:
    """Return the closed sets of a graph of at most LARGEST vertices, each as bits.

    Raises:
        GraphError: the graph is larger.
    """
    if graph.size > LARGEST:
        raise GraphError(f"{graph.size} vertices: all sets are looked at of {LARGEST} at most; use partition")
    before = [0] * graph.size
    for tail, head in zip(graph.tail.tolist(), graph.head.tolist(), strict=True):
        before[head] |= 1 << tail
    vertices = range(graph.size)
    return [one for one in range(1 << graph.size) if all(not one >> v & 1 or not before[v] & ~one for v in vertices)]


def least_cut_blocks(graph: Dag, blocks: int, most: float) -> Integers | None:
    """Return the (V,) blocks with the least flow between them, then the least largest demand; None: there are none.

    Args:
        graph: of at most LARGEST vertices; its time grows with the square of its closed sets.
        blocks: how many; none is empty.
        most: demand of a block.

    Raises:
        GraphError: the graph is larger.
    """
    closed, (demand, inner) = closed_sets(graph), _sums(graph)
    best = {0: (0.0, 0.0, 0)}  # flow inside, largest demand (negative), and the closed set before the last block
    steps: list[dict[int, tuple[float, float, int]]] = []
    for _ in range(blocks):
        found: dict[int, tuple[float, float, int]] = {}
        for whole in closed:
            for part, (kept, largest, _) in best.items():
                block = whole & ~part
                if part & ~whole or not block or demand[block] > most:
                    continue
                told = round(kept + inner[block], DIGITS), min(largest, -demand[block]), part
                found[whole] = max(found.get(whole, told), told)
        steps.append(found)
        best = found
    whole = (1 << graph.size) - 1
    if whole not in best:
        return None
    made = np.empty(graph.size, np.int64)
    for number in range(blocks - 1, -1, -1):
        part = steps[number][whole][2]
        made[[v for v in range(graph.size) if whole & ~part & 1 << v]] = number
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
