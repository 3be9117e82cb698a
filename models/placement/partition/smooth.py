"""Topological orders in which vertices stand near those that they talk to."""

from __future__ import annotations

import heapq
from typing import Any

import numba
import numpy as np

from models.placement.graph import Dag, Floats, Integers
from models.placement.partition.chance import seeded
from models.placement.partition.order import draw_order

ROUNDS, TURNS = 10, 10


def smooth_order(graph: Dag, seed: int) -> Integers:
    """Return the (V,) vertices in a topological order: a random one, in which each moves to the mean of its neighbours.

    Args:
        graph: of the vertices.
        seed: equal ones give equal orders.
    """
    indegree = np.diff(graph.incoming.start)
    order = draw_order(graph.outgoing, indegree, seeded(seed, 0))
    place = np.empty(graph.size)
    for _ in range(ROUNDS):
        place[order] = np.arange(graph.size)
        order = order_by(graph.outgoing, indegree, smooth_values(graph.outgoing, graph.incoming, place, TURNS))
    return np.asarray(order)


def order_within(graph: Dag, block: Integers) -> Integers:
    """Return a topological order in which blocks, whose edges lead onward, come one after another."""
    indegree = np.diff(graph.incoming.start)
    place: Floats = np.empty(graph.size)
    place[order_by(graph.outgoing, indegree, np.zeros(graph.size))] = np.arange(graph.size)
    near = smooth_values(graph.outgoing, graph.incoming, place, TURNS)
    return np.asarray(order_by(graph.outgoing, indegree, block + near / (1 + graph.size)))


@numba.njit(cache=True)
def smooth_values(outgoing: Any, incoming: Any, value: Any, turns: int) -> Any:
    """Return (V,) values that went, some times, halfway to the mean of their neighbours, by flow."""
    count = len(value)
    for _ in range(turns):
        after = np.empty(count)
        for vertex in range(count):
            total, weight = 0.0, 0.0
            for neighbours in (outgoing, incoming):
                start, other, flow = neighbours
                for at in range(start[vertex], start[vertex + 1]):
                    total += flow[at] * value[other[at]]
                    weight += flow[at]
            after[vertex] = (value[vertex] + (total / weight if weight > 0 else value[vertex])) / 2
        value = after
    return value


@numba.njit(cache=True)
def order_by(outgoing: Any, indegree: Any, key: Any) -> Any:
    """Return the (V,) vertices in a topological order: of those that may be next, the one with the least key."""
    start, other, _ = outgoing
    left, count = indegree.copy(), len(indegree)
    ready = [(0.0, 0)]
    ready.pop()
    for vertex in range(count):
        if left[vertex] == 0:
            heapq.heappush(ready, (key[vertex], vertex))
    order = np.empty(count, np.int64)
    for place in range(count):
        _, vertex = heapq.heappop(ready)
        order[place] = vertex
        for at in range(start[vertex], start[vertex + 1]):
            near = other[at]
            left[near] -= 1
            if left[near] == 0:
                heapq.heappush(ready, (key[near], near))
    return order
