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
        free: nodes without a block, which may rest.
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
        demand: (blocks, R) of each, by resource.
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
        while filling.left and (filling.grow(node) or filling.seed(node) or filling.add_largest(node)):
            pass
    overloaded = sorted(filling.left, key=lambda block: (-filling.weight[block], block))
    for block in overloaded:
        shares = [float(((filling.used[node] + demand[block]) / nodes.capacity[node]).max()) for node in order]
        filling.place(block, order[int(np.argmin(shares))])
    overloaded = sorted([*tight, *overloaded])
    placed = [filling.node[block] for block in range(len(demand))]
    free = tuple(node for node in range(nodes.count) if node not in placed)
    return Allocation(tuple(placed), filling.used, tuple(overloaded), free)


class _Filling:
    """Nodes as they are filled."""

    def __init__(self, demand: Floats, flow: Floats, nodes: Nodes, utilisation: float) -> None:
        self.demand, self.flow, self.nodes, self.most = demand, flow, nodes, utilisation
        self.used = nodes.used.copy()
        self.node: dict[int, int] = {}
        self.left = set(range(len(demand)))
        self.weight = (demand / nodes.capacity.max(axis=0)).max(axis=1)
        """(blocks,) of each, as a share of the largest node."""

    def grow(self, node: int) -> bool:
        """Place the block that depends most on what lies on a node; returns whether there is one with room."""
        here = [block for block, at in self.node.items() if at == node]
        bound = {block: float(self.flow[block, here].sum()) for block in self.left} if here else {}
        able = [block for block in bound if bound[block] > 0 and self.fits(node, block)]
        if not able:
            return False
        self.place(min(able, key=lambda block: (-bound[block], -self.weight[block], block)), node)
        return True

    def seed(self, node: int) -> bool:
        """Place both blocks, or one, of the heaviest flow of which a node has room for an end."""
        pairs = [(a, b) for a in self.left for b in self.left if a < b and self.flow[a, b] > 0]
        for a, b in sorted(pairs, key=lambda pair: (-self.flow[pair], pair)):
            heavier, lighter = sorted((a, b), key=lambda block: (-self.weight[block], block))
            for blocks in ((a, b), (heavier,), (lighter,)):
                if self.fits(node, *blocks):
                    for block in blocks:
                        self.place(block, node)
                    return True
        return False

    def add_largest(self, node: int) -> bool:
        """Place the largest block for which a node has room."""
        able = [block for block in self.left if self.fits(node, block)]
        if not able:
            return False
        self.place(min(able, key=lambda block: (-self.weight[block], block)), node)
        return True

    def fits(self, node: int, *blocks: int) -> bool:
        """Whether a node has room for some more blocks, in every resource."""
        more = self.demand[list(blocks)].sum(axis=0)
        return bool(((self.used[node] + more) <= self.most * self.nodes.capacity[node] + 1e-9).all())

    def place(self, block: int, node: int) -> None:
        """Put a block on a node."""
        self.node[block] = node
        self.used[node] += self.demand[block]
        self.left.remove(block)
