"""Instances that come, go or move one at a time, each to where it costs least."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations

import numpy as np

from models.placement.allocation.nodes import Nodes
from models.placement.graph import Floats
from models.placement.instances.initial import distance_ratios
from models.placement.instances.job import Counts, ParallelJob, free_of, has_room

ROUNDS = 100
"""Rounds of all moves, at most; the best of each is made."""
LEAST_GAIN = 1e-3
"""Share by which a move has to be better."""
Cost = Callable[[Counts], float]
"""Of a placement, less is better."""


def add_instances(job: ParallelJob, nodes: Nodes, counts: Counts, operator: int, many: int) -> Counts:
    """Return the placement with some instances more, each on the node with room nearest to what it talks to.

    Of equals the one with the most left. Those for which no node has room are left out.

    Args:
        job: of m operators.
        nodes: n of them.
        counts: (m, n) instances.
        operator: of which there are to be more.
        many: how many more.
    """
    found, way = counts.copy(), distance_ratios(nodes)
    for _ in range(many):
        free = free_of(job, nodes, found)
        room = (free >= job.need[operator] - 1e-9).all(axis=1) & (found.sum(axis=0) < nodes.slots)
        if not room.any():
            break
        cost, left = _traffic(job, found, operator, way), (free / nodes.capacity).min(axis=1)
        at = min(np.flatnonzero(room).tolist(), key=lambda node: (round(float(cost[node]), 9), -left[node], node))
        found[operator, at] += 1
    return found


def take_instances(job: ParallelJob, nodes: Nodes, counts: Counts, operator: int, many: int) -> Counts:
    """Return the placement with some instances fewer, the farthest from what they talk to first; one stays."""
    found, way = counts.copy(), distance_ratios(nodes)
    for _ in range(min(many, int(counts[operator].sum()) - 1)):
        cost = _traffic(job, found, operator, way)
        at = max(np.flatnonzero(found[operator]).tolist(), key=lambda node: (round(float(cost[node]), 9), node))
        found[operator, at] -= 1
    return found


def improve(job: ParallelJob, nodes: Nodes, counts: Counts, cost: Cost) -> Counts:
    """Return a placement from which no move of an instance, nor exchange of two, or of two nodes, makes the cost less.

    Args:
        job: of m operators.
        nodes: n of them.
        counts: (m, n) instances to begin with.
        cost: of a placement.
    """
    best, least = counts, cost(counts)
    for _ in range(ROUNDS):
        able = [one for one in _neighbours(best) if has_room(job, nodes, one)]
        if not able:
            break
        costs = [cost(one) for one in able]
        at = int(np.argmin(costs))
        if costs[at] >= least * (1 - LEAST_GAIN):
            break
        best, least = able[at], costs[at]
    return best


def _neighbours(counts: Counts) -> Iterator[Counts]:
    """Placements that differ by one instance elsewhere, or by two instances or all of two nodes that changed places."""
    held = [(int(own), int(node)) for own, node in zip(*np.nonzero(counts), strict=True)]
    for own, node in held:
        for to in range(counts.shape[1]):
            if to != node:
                yield _shifted(counts, (own, node, to))
    for first, (own, node) in enumerate(held):
        for other, to in held[first + 1 :]:
            if own != other and node != to:
                yield _shifted(counts, (own, node, to), (other, to, node))
    for one, another in combinations(range(counts.shape[1]), 2):
        if (counts[:, one] != counts[:, another]).any():
            found = counts.copy()
            found[:, [one, another]] = counts[:, [another, one]]
            yield found


def _shifted(counts: Counts, *moves: tuple[int, int, int]) -> Counts:
    found = counts.copy()
    for own, node, to in moves:
        found[own, node] -= 1
        found[own, to] += 1
    return found


def _traffic(job: ParallelJob, counts: Counts, operator: int, way: Floats) -> Floats:
    """(n,) records/s times distance of an operator's instance on each node, to and from those it talks to."""
    total = np.zeros(way.shape[0])
    for one in job.edges:
        if operator in (one.tail, one.head):
            other = one.head if one.tail == operator else one.tail
            total += job.edge_rps(one) * (way @ counts[other]) / max(counts[other].sum(), 1)
    return total
