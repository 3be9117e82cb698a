"""Blocks that depend on each other on one node, then in one domain.

Md-Stream paper, Algorithm 3, with an answer where it is silent: single blocks, pairs that do not fit, and no room.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from models.placement.allocation.nodes import Nodes
from models.placement.graph import Floats
from models.placement.partition.count import UTILISATION


class Allocation(NamedTuple):
    """Where blocks lie.

    Attributes:
        node: (blocks,) of each.
        used: (M, R) what is used of each node, by others and by the blocks.
        overloaded: blocks for which no node had room.
        free: nodes without a block.
    """

    node: tuple[int, ...]
    used: Floats
    overloaded: tuple[int, ...]
    free: tuple[int, ...]


def allocate(
    demand: Floats, flow: Floats, nodes: Nodes, utilisation: float = UTILISATION,
    pinned: Mapping[int, int] | None = None,
) -> Allocation | None:  # fmt: skip
    """Fill the nodes in turn, the nearest first, each with blocks that depend on what lies there; None without either.

    A node that is closed has room for no block that is left. Those that no node has room for lie where the least is
    used then, and are told.

    Args:
        demand: (blocks, R) of each, by resource; (blocks, M, R) where it differs from node to node.
        flow: (blocks, blocks) between two, in both directions added, 0 in the diagonal (eq. 17).
        nodes: with capacities, and what others use of them.
        utilisation: share of a node that is used at most.
        pinned: node of each block that may lie on one only; told as overloaded where that has no room.
    """
    if not len(demand) or not nodes.count:
        return None
    filling = _Filling(demand, flow, nodes, utilisation)
    order = nodes.nearest_first()
    bound = pinned or {}
    tight = []
    for block, node in bound.items():
        tight += [] if filling.fits(node, block) else [block]
        filling.place(block, node)
    for node in order:
        while filling.left.any() and (filling.grow(node) or filling.seed(node) or filling.add_largest(node)):
            pass
    left = np.flatnonzero(filling.left).tolist()
    overloaded = sorted(left, key=lambda block: (-filling.weight[block], block))
    for block in overloaded:
        shares = ((filling.used + filling.demand[block]) / nodes.capacity).max(axis=1)
        filling.place(block, order[int(shares[order].argmin())])
    overloaded = sorted([*tight, *overloaded])
    placed = filling.node.tolist()
    free = tuple(node for node in range(nodes.count) if node not in placed)
    return Allocation(tuple(placed), filling.used, tuple(overloaded), free)


class _Filling:
    """Nodes as they are filled; of blocks that are equal otherwise the heaviest is placed, then the first."""

    def __init__(self, demand: Floats, flow: Floats, nodes: Nodes, utilisation: float) -> None:
        self.demand = demand if demand.ndim == 3 else np.repeat(demand[:, None], nodes.count, axis=1)
        """(blocks, M, R) of each on each node."""
        self.flow = flow
        self.used, self.room = nodes.used.copy(), utilisation * nodes.capacity + 1e-9
        self.node = np.full(len(demand), -1)
        self.weight = (self.demand / nodes.capacity.max(axis=0)).max(axis=(1, 2))
        """(blocks,) of each, as a share of the largest node, at most."""
        one, other = np.nonzero(np.triu(flow, 1) > 0)
        heaviest_first = np.lexsort((other, one, -flow[one, other]))
        self.pairs = one[heaviest_first], other[heaviest_first]
        """Blocks between which there is a flow, the heaviest first."""

    @property
    def left(self) -> np.ndarray:
        """(blocks,) those that lie nowhere yet."""
        return self.node < 0

    def grow(self, node: int) -> bool:
        """Place the block that depends most on what lies on a node; returns whether there is one with room."""
        bound = self.flow[:, self.node == node].sum(axis=1)
        return self._place_first((bound > 0) & self._able(node, self.demand[:, node]), bound, node)

    def seed(self, node: int) -> bool:
        """Place both blocks, or one, of the heaviest flow of which a node has room for an end."""
        one, other = self.pairs
        alone = self._able(node, self.demand[:, node])
        together = self._able(node, self.demand[one, node] + self.demand[other, node])
        able = self.left[one] & self.left[other] & (together | alone[one] | alone[other])
        if not able.any():
            return False
        first = int(able.argmax())
        pair = np.isin(np.arange(len(self.node)), (one[first], other[first]))
        if together[first]:
            for block in np.flatnonzero(pair):
                self.place(int(block), node)
            return True
        return self._place_first(pair & alone, self.weight, node)

    def add_largest(self, node: int) -> bool:
        """Place the largest block for which a node has room."""
        return self._place_first(self._able(node, self.demand[:, node]), self.weight, node)

    def fits(self, node: int, block: int) -> bool:
        """Whether a node has room for a block, in every resource."""
        return bool(self._able(node, self.demand[[block], node])[0])

    def place(self, block: int, node: int) -> None:
        """Put a block on a node."""
        self.node[block] = node
        self.used[node] += self.demand[block, node]

    def _able(self, node: int, more: Floats) -> np.ndarray:
        """Whether a node has room for each of some demands, in every resource."""
        return np.asarray((self.used[node] + more <= self.room[node]).all(axis=1))

    def _place_first(self, able: np.ndarray, most: Floats, node: int) -> bool:
        """Place the block of those that are left and able that has most of something, if there is any."""
        found = np.flatnonzero(able & self.left)
        if not len(found):
            return False
        self.place(int(found[np.lexsort((found, -self.weight[found], -most[found]))[0]]), node)
        return True
