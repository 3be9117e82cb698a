"""Blocks on nodes by what they send each other alone, within what the nodes have.

Unified batch-stream runtime paper, section on placement, eq. 5.1: C_net, flow x distance over all pairs of blocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from models.placement.allocation.nodes import Nodes
from models.placement.graph import Floats, GraphError

MOST_WAYS = 1_000_000
"""Ways to put blocks on nodes up to which all are looked at."""
Further = Callable[[Sequence[int]], float]
"""Further cost of a way, at least 0, in the unit of C_net, such as that of its slowest path."""


@dataclass(frozen=True)
class TrafficTask:
    """Blocks that are to lie on nodes.

    Attributes:
        demand: (blocks, R) of each, by resource, the first one CPU.
        flow: (blocks, blocks) bytes/s between two, in both directions added, 0 in the diagonal.
        nodes: with capacities, what others use of them, and distances.
        further: cost beside C_net.
    """

    demand: Floats
    flow: Floats
    nodes: Nodes
    further: Further = lambda place: 0.0

    def cost(self, place: Sequence[int]) -> float:
        """Return C_net of the (blocks,) nodes of each block, and what is counted beside it."""
        return self.nodes.traffic_cost(place, self.flow) + self.further(place)

    def fits(self, place: Sequence[int]) -> bool:
        """Return whether each node has what the blocks on it need of every resource."""
        used, taken = self.nodes.used.copy(), list(place)
        np.add.at(used, taken, self.demand)
        return bool((used[taken] <= self.nodes.capacity[taken] + 1e-9).all())


def place_by_traffic(task: TrafficTask) -> list[int] | None:
    """Return the (blocks,) nodes of least cost where few ways are to be looked at, else those of a search.

    None where nothing fits, or the search has found no room for a block.

    Args:
        task: blocks and nodes.
    """
    if task.nodes.count ** len(task.demand) <= MOST_WAYS:
        return place_exactly(task)
    begun = place_greedily(task)
    return None if begun is None else improve_places(task, begun)


def place_greedily(task: TrafficTask) -> list[int] | None:
    """Return the (blocks,) nodes: whoever sends and takes most first, each where the least C_net is added.

    Of equal ones where most CPU is free, then the first. None where a block has no room.

    Args:
        task: blocks and nodes.
    """
    place, free = [-1] * len(task.demand), task.nodes.capacity - task.nodes.used
    for block in np.argsort(-task.flow.sum(axis=1), kind="stable").tolist():
        able = np.flatnonzero((free >= task.demand[block] - 1e-9).all(axis=1)).tolist()
        if not able:
            return None
        added = {node: _added(task, place, block, node) for node in able}
        chosen = min(able, key=lambda node: (added[node], -free[node, 0], node))
        place[block] = chosen
        free[chosen] -= task.demand[block]
    return place


def improve_places(task: TrafficTask, place: Sequence[int]) -> list[int]:
    """Return the nodes after the best move of a block, or swap of two, as long as there is one that lowers the cost.

    Args:
        task: blocks and nodes.
        place: (blocks,) nodes that fit.
    """
    best, cost = list(place), task.cost(place)
    while True:
        near = ((task.cost(made), made) for made in _near(task, best) if task.fits(made))
        found = min(near, default=(cost, best))
        if found[0] >= cost:
            return best
        cost, best = found


def place_exactly(task: TrafficTask) -> list[int] | None:
    """Return the (blocks,) nodes of least cost, by looking at all ways; of equal ones the first; None: nothing fits.

    Args:
        task: blocks and nodes.

    Raises:
        GraphError: there are more than MOST_WAYS ways.
    """
    blocks, nodes = len(task.demand), task.nodes.count
    if nodes**blocks > MOST_WAYS:
        raise GraphError(f"{nodes} nodes, {blocks} blocks: {MOST_WAYS} ways are looked at at most; place_by_traffic")
    if not nodes or not blocks:
        return None
    ways = np.stack(np.unravel_index(np.arange(nodes**blocks), (nodes,) * blocks), axis=1)
    fits = np.ones(len(ways), bool)
    for node in range(nodes):
        here = ways == node
        used = task.nodes.used[node] + here @ task.demand
        fits &= (used <= task.nodes.capacity[node] + 1e-9).all(axis=1) | ~here.any(axis=1)
    ways = ways[fits]
    apart = np.array([[task.nodes.distance(one, other) for other in range(nodes)] for one in range(nodes)])
    traffic = np.zeros(len(ways))
    for one, other in combinations(range(blocks), 2):
        if task.flow[one, other]:
            traffic += task.flow[one, other] * apart[ways[:, one], ways[:, other]]
    best, least = None, math.inf
    for at in np.argsort(traffic, kind="stable"):
        if traffic[at] >= least:  # what is counted beside it only adds to that
            break
        if (cost := float(traffic[at]) + task.further(ways[at].tolist())) < least:
            best, least = ways[at].tolist(), cost
    return best


def _added(task: TrafficTask, place: Sequence[int], block: int, node: int) -> float:
    """C_net between a block, if it lay on a node, and those that lie somewhere."""
    return sum(
        float(task.flow[block, other]) * task.nodes.distance(node, at) for other, at in enumerate(place) if at >= 0
    )


def _near(task: TrafficTask, place: list[int]) -> Iterator[list[int]]:
    """The ways that differ by a move of one block, or a swap of two."""
    for block, here in enumerate(place):
        for node in range(task.nodes.count):
            if node != here:
                yield [*place[:block], node, *place[block + 1 :]]
    for one, other in combinations(range(len(place)), 2):
        if place[one] != place[other]:
            made = list(place)
            made[one], made[other] = place[other], place[one]
            yield made
