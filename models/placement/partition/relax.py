"""Blocks refined while edges to earlier blocks are allowed, at a price that rises until there are hardly any.

A vertex may go to any block. What still leads back in the end is pushed onward, or what it leads to is drawn back.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from models.placement.graph import Dag, Integers
from models.placement.partition.chance import draw_below, seeded
from models.placement.partition.refine import ROUNDING

PRICES = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 30.0, 100.0, 1000.0)
"""Of flow to an earlier block, as a multiple of flow that is cut."""
PASSES, LAST_PASSES = 10, 20


def relax(graph: Dag, block: Integers, blocks: int, most: float, seed: int) -> Integers:
    """Return (V,) blocks after all prices; few edges lead back.

    Args:
        graph: of the vertices.
        block: of each; not changed.
        blocks: how many there are.
        most: demand of one that a move may come to.
        seed: of the orders in which vertices are looked at.
    """
    found, state = block.copy(), seeded(seed, 1)
    for price in PRICES:
        _move(graph.demand, graph.outgoing, graph.incoming, found, blocks, most, price, PASSES, state)
    return found


def settle(graph: Dag, block: Integers, blocks: int, most: float, seed: int) -> None:
    """Move vertices to any block while that lowers the cut, and no edge comes to lead back; `block` is changed."""
    state = seeded(seed, 2)
    _move(graph.demand, graph.outgoing, graph.incoming, block, blocks, most, np.inf, LAST_PASSES, state)


def push_onward(graph: Dag, block: Integers, order: Integers) -> Integers:
    """Return blocks without an edge that leads back: each vertex in at least the latest block of those before it.

    Args:
        graph: of the vertices.
        block: of each.
        order: (V,) them, topologically.
    """
    return np.asarray(_push(graph.incoming, block, order, True))


def draw_back(graph: Dag, block: Integers, order: Integers) -> Integers:
    """Return blocks without an edge that leads back: each vertex in at most the earliest block of those after it."""
    return np.asarray(_push(graph.outgoing, block, order[::-1], False))


@numba.njit(cache=True)
def _push(neighbours: Any, block: Any, order: Any, onward: bool) -> Any:
    start, other, _ = neighbours
    found = block.copy()
    for vertex in order:
        for at in range(start[vertex], start[vertex + 1]):
            near = found[other[at]]
            found[vertex] = max(found[vertex], near) if onward else min(found[vertex], near)
    return found


@numba.njit(cache=True)
def _move(
    demand: Any, outgoing: Any, incoming: Any, block: Any, blocks: int, most: float, price: float, passes: int,
    state: Any,
) -> None:  # fmt: skip
    """Passes over all vertices in drawn orders, until one moves none."""
    count, load, many = len(block), np.zeros(blocks), np.zeros(blocks, np.int64)
    for one in range(count):
        load[block[one]] += demand[one]
        many[block[one]] += 1
    order, least = np.arange(count), ROUNDING * outgoing.flow.sum()
    came, went = np.zeros(blocks), np.zeros(blocks)
    for _ in range(passes):
        for place in range(count - 1, 0, -1):
            drawn = draw_below(state, place + 1)
            order[place], order[drawn] = order[drawn], order[place]
        moved = False
        for place in range(count):
            vertex = int(order[place])
            here = int(block[vertex])
            if many[here] == 1:
                continue
            came[:], went[:] = 0.0, 0.0
            start, other, flow = incoming
            for at in range(start[vertex], start[vertex + 1]):
                came[block[other[at]]] += flow[at]
            start, other, flow = outgoing
            for at in range(start[vertex], start[vertex + 1]):
                went[block[other[at]]] += flow[at]
            first, last = 0, blocks - 1
            if price == np.inf:
                first, last = _between(outgoing, incoming, block, vertex, blocks)
            target = _cheapest(came, went, load, here, demand[vertex], most, price, least, first, last)
            if target != here:
                load[here] -= demand[vertex]
                load[target] += demand[vertex]
                many[here] -= 1
                many[target] += 1
                block[vertex] = target
                moved = True
        if not moved:
            break


@numba.njit(cache=True)
def _between(outgoing: Any, incoming: Any, block: Any, vertex: int, blocks: int) -> Any:
    """The first and the last block in which a vertex leads nothing back."""
    first, last = 0, blocks - 1
    start, other, _ = incoming
    for at in range(start[vertex], start[vertex + 1]):
        first = max(first, int(block[other[at]]))
    start, other, _ = outgoing
    for at in range(start[vertex], start[vertex + 1]):
        last = min(last, int(block[other[at]]))
    return first, last


@numba.njit(cache=True)
def _cheapest(
    came: Any, went: Any, load: Any, here: int, own: float, most: float, price: float, least: float, first: int,
    last: int,
) -> int:  # fmt: skip
    """The block in which a vertex cuts least, with the price of what leads back; where it is, unless another is better.

    `came`, `went`: flow from and to the vertices of each block; `first`, `last`: blocks to which it may go. At an
    infinite price these are all in which nothing leads back.
    """
    every, later, earlier = came.sum() + went.sum(), came.sum(), 0.0
    costs = np.empty(len(came))
    for number in range(len(came)):
        later -= came[number]  # flow from later blocks would lead back, as would flow to earlier ones
        costs[number] = every - came[number] - went[number]
        if price < np.inf:
            costs[number] += price * (later + earlier)
        earlier += went[number]
    best = here
    for number in range(first, last + 1):
        fits = load[number] + own <= most
        if number != here and fits and costs[number] < costs[best] - least:
            best = number
    return best
