"""A graph made smaller by joining pairs of vertices, with no cycle: the first half of a multilevel partition.

After Herrmann et al. 2019 ("Multilevel algorithms for acyclic partitioning of directed acyclic graphs"): an edge whose
ends lie one level apart is the only path between them, so that joining them makes no cycle; of pairs that are joined
between the same two levels none has both an edge to another pair and one from another.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

from models.placement.graph import Dag, Integers


class Coarser(NamedTuple):
    """A smaller graph.

    Attributes:
        graph: of the pairs and of the vertices that stayed alone.
        of: (V,) vertex of it that each vertex became.
    """

    graph: Dag
    of: Integers


def join_pairs(graph: Dag, most: float, odd: bool, seed: int) -> Coarser:
    """Return the graph with pairs joined, those first whose flow is heaviest for their demand (flow ÷ √(both)).

    Args:
        graph: to be made smaller.
        most: demand that a pair may have.
        odd: whether pairs lie between levels 1 and 2, 3 and 4 ..., else 0 and 1, 2 and 3 ...
        seed: breaks ties.
    """
    level = levels_of(graph.outgoing, np.diff(graph.incoming.start))
    random = np.random.default_rng(seed)
    weight = graph.flow / np.sqrt(graph.demand[graph.tail] * graph.demand[graph.head])
    order = np.lexsort((random.random(len(weight)), -weight))
    able = order[
        (level[graph.head[order]] == level[graph.tail[order]] + 1) & (level[graph.tail[order]] % 2 == int(odd))
    ]
    # Of a whole number it would be compiled anew.
    mate = _match(graph.demand, graph.outgoing, graph.incoming, graph.tail[able], graph.head[able], level, float(most))
    first = np.minimum(np.arange(graph.size), np.where(mate < 0, np.arange(graph.size), mate))
    _, of = np.unique(first, return_inverse=True)
    tail, head = of[graph.tail], of[graph.head]
    kept = tail != head
    return Coarser(
        _summed(np.bincount(of, graph.demand), tail[kept], head[kept], graph.flow[kept]), of.astype(np.int64)
    )


def _summed(demand: Any, tail: Integers, head: Integers, flow: Any) -> Dag:
    """The graph whose edges between the same two vertices are added; it is known to have no cycle."""
    key, place = np.unique(tail * len(demand) + head, return_inverse=True)
    return Dag(
        demand, key // len(demand), key % len(demand), np.bincount(place, flow, minlength=len(key)).astype(float)
    )


@numba.njit(cache=True)
def levels_of(outgoing: Any, indegree: Any) -> Any:
    """Return the (V,) longest path to each vertex from one without an edge to it, in edges."""
    start, other, _ = outgoing
    left, count = indegree.copy(), len(indegree)
    level, queue = np.zeros(count, np.int64), np.empty(count, np.int64)
    end = 0
    for vertex in range(count):
        if left[vertex] == 0:
            queue[end] = vertex
            end += 1
    begin = 0
    while begin < end:
        vertex = queue[begin]
        begin += 1
        for at in range(start[vertex], start[vertex + 1]):
            near = other[at]
            level[near] = max(level[near], level[vertex] + 1)
            left[near] -= 1
            if left[near] == 0:
                queue[end] = near
                end += 1
    return level


@numba.njit(cache=True)
def _match(demand: Any, outgoing: Any, incoming: Any, tails: Any, heads: Any, level: Any, most: float) -> Any:
    """(V,) vertex with which each is joined, -1: none."""
    count = len(demand)
    mate = np.full(count, -1)
    leads, led = np.zeros(count, np.bool_), np.zeros(count, np.bool_)  # of pairs, by their tail: to others, from others
    for edge in range(len(tails)):
        tail, head = tails[edge], heads[edge]
        if mate[tail] >= 0 or mate[head] >= 0 or demand[tail] + demand[head] > most:
            continue
        to_others, from_others, fits = False, False, True
        start, other, _ = outgoing
        for at in range(start[tail], start[tail + 1]):
            near = other[at]
            if near != head and mate[near] >= 0 and level[near] == level[head]:
                to_others = True
                fits = fits and not leads[mate[near]]
        start, other, _ = incoming
        for at in range(start[head], start[head + 1]):
            near = other[at]
            if near != tail and mate[near] >= 0 and level[near] == level[tail]:
                from_others = True
                fits = fits and not led[near]
        if not fits or (to_others and from_others):
            continue
        mate[tail], mate[head] = head, tail
        leads[tail], led[tail] = to_others, from_others
        start, other, _ = outgoing
        for at in range(start[tail], start[tail + 1]):
            if other[at] != head and mate[other[at]] >= 0 and level[other[at]] == level[head]:
                led[mate[other[at]]] = True
        start, other, _ = incoming
        for at in range(start[head], start[head + 1]):
            if other[at] != tail and mate[other[at]] >= 0 and level[other[at]] == level[tail]:
                leads[other[at]] = True
    return mate
