"""An order cut into blocks, evenly by demand or with the most flow inside; no edge leads to an earlier block."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np


@numba.njit(cache=True)
def split_evenly(demand: Any, order: Any, blocks: int) -> Any:
    """Return the (V,) block of each vertex: border i lies where i/blocks of the demand is nearest, no block is empty.

    Args:
        demand: (V,) of the vertices.
        order: (V,) them, topologically.
        blocks: at most V.
    """
    count = len(order)
    before = np.zeros(count + 1)
    for place in range(count):
        before[place + 1] = before[place] + demand[order[place]]
    block, begin = np.empty(count, np.int64), 0
    for number in range(blocks):
        end = count
        if number < blocks - 1:
            goal, end = (number + 1) * before[count] / blocks, begin + 1
            for border in range(begin + 2, count - (blocks - 1 - number) + 1):
                if abs(before[border] - goal) < abs(before[end] - goal):
                    end = border
        for place in range(begin, end):
            block[order[place]] = number
        begin = end
    return block


@numba.njit(cache=True)
def split_densest(demand: Any, outgoing: Any, order: Any, blocks: int, most: float) -> Any:
    """Return the (V,) blocks of an order that keep the most flow inside, none above `most`; empty: there are none.

    By F[b][i] = max over j of inner(i..j) + F[b - 1][j], from the end of the order; inner is the flow inside.

    Args:
        demand: (V,) of the vertices.
        outgoing: `Neighbours` of the graph.
        order: (V,) vertices, topologically.
        blocks: at most V.
        most: demand of a block.
    """
    start, other, flow = outgoing
    count = len(order)
    place = np.empty(count, np.int64)
    for at in range(count):
        place[order[at]] = at
    kept = np.full((blocks + 1, count + 1), -np.inf)
    ends = np.full((blocks + 1, count + 1), -1)
    kept[0, count] = 0.0
    inner, added = np.zeros(count + 1), np.zeros(count + 1)  # by the end of a block, which is not in it
    for begin in range(count - 1, -1, -1):
        vertex = order[begin]
        for at in range(start[vertex], start[vertex + 1]):
            added[place[other[at]] + 1] += flow[at]
        load, more = 0.0, 0.0
        for end in range(begin + 1, count + 1):
            load += demand[order[end - 1]]
            if load > most:
                break  # nor will a block that begins earlier reach so far
            more += added[end]
            inner[end] += more
            for number in range(1, blocks + 1):
                value = inner[end] + kept[number - 1, end]
                if value > kept[number, begin]:
                    kept[number, begin], ends[number, begin] = value, end
        for at in range(start[vertex], start[vertex + 1]):
            added[place[other[at]] + 1] = 0.0
    block, begin = np.empty(count, np.int64), 0
    if ends[blocks, 0] < 0:
        return block[:0]
    for number in range(blocks):
        end = ends[blocks - number, begin]
        for at in range(begin, end):
            block[order[at]] = number
        begin = end
    return block
