"""Blocks with the least flow between them that depend on each other in one direction: KFM of the Md-Stream paper."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numba
import numpy as np

from models.placement.graph import Dag, Floats, GraphError, Integers
from models.placement.partition.chance import draw_below, seeded
from models.placement.partition.order import draw_order
from models.placement.partition.refine import ROUNDING, refine_pair
from models.placement.partition.split import split_densest, split_evenly

ORDERS = 50
"""Orders that are tried (the paper's tau): with 20 some feasible splits are missed."""
SLACK = 0.2
"""How far a block's demand may be above the mean (chi)."""
Split = Literal["even", "dp"]


class Partition(NamedTuple):
    """Blocks of a graph.

    Attributes:
        block: (V,) number of each vertex's; edges lead to blocks of the same number or a higher one.
        cut: flow between blocks.
        loads: (blocks,) demand of each.
        most: demand that a block may have.
        raised: whether that is more than the slack allows, as one vertex has so much alone.
        fits: whether no block has more.
    """

    block: Integers
    cut: float
    loads: Floats
    most: float
    raised: bool
    fits: bool


def partition(
    graph: Dag, blocks: int, slack: float = SLACK, split: Split = "even", orders: int = ORDERS, seed: int = 0,
    most: float = math.inf,
) -> Partition:  # fmt: skip
    """Return the best blocks of some topological orders, each split and refined (Md-Stream paper, Algorithm 2).

    By the cut, then the largest demand, then the numbers of the blocks. At the end of each order no single vertex may
    be moved that would lower the cut.

    Args:
        graph: with the demand of operators and the flow between them.
        blocks: how many, at least 1 and at most the vertices.
        slack: a block has at most (1 + slack) times the mean demand, rounded up, or its heaviest vertex.
        split: how an order is cut at first: `even`, as the paper does, and by `dp` where a block would be too large; or
            by `dp` at once, which keeps the most flow inside.
        orders: that are drawn.
        seed: equal ones give equal blocks.
        most: a further bound of the demand of a block, as the largest grant of executors is.

    Returns:
        Where no order can be split, the blocks with the least demand of the largest, and `fits` is False.

    Raises:
        GraphError: the number of blocks is out of range.
    """
    if not 1 <= blocks <= graph.size:
        raise GraphError(f"blocks={blocks}: 1 to the {graph.size} vertices are expected")
    stated = bound_of(graph, blocks, slack, most)
    bound = max(stated, float(graph.demand.max()))
    room = bound * (1 + ROUNDING)
    indegree = np.diff(graph.incoming.start)
    found: tuple[float, float, list[int]] | None = None
    largest, least = math.inf, np.zeros(graph.size, np.int64)
    for turn in range(orders):
        state = seeded(seed, turn)
        order = draw_order(graph.outgoing, indegree, state)
        block = _split(graph, order, blocks, room, split)
        if block is None:
            even = split_evenly(graph.demand, order, blocks)
            if (load := float(graph.loads(even, blocks).max())) < largest:
                largest, least = load, even
            continue
        _refine(graph.demand, graph.outgoing, graph.incoming, block, blocks, room, state)
        one = graph.cut(block), float(graph.loads(block, blocks).max()), block.tolist()
        found = one if found is None else min(found, one)
    block = least if found is None else np.array(found[2], np.int64)
    return Partition(
        block, graph.cut(block), graph.loads(block, blocks), bound, bound > stated, found is not None
    )  # fmt: skip


def refine_blocks(graph: Dag, block: Integers, blocks: int, most: float, seed: int) -> None:
    """Refine blocks that are there, until no pair has a move that lowers the cut; `block` (V,) is changed.

    Args:
        graph: of the vertices.
        block: of each.
        blocks: how many there are.
        most: demand of one.
        seed: of the order of the pairs.
    """
    _refine(graph.demand, graph.outgoing, graph.incoming, block, blocks, most, seeded(seed, 0))


def bound_of(graph: Dag, blocks: int, slack: float, most: float = math.inf) -> float:
    """Return the demand that a block may have: (1 + slack) times the mean, rounded up, and `most` at most (L_max)."""
    return min((1 + slack) * math.ceil(round(float(graph.demand.sum()) / blocks, 9)), most)


def _split(graph: Dag, order: Integers, blocks: int, bound: float, split: Split) -> Integers | None:
    """An order in blocks that keep the bound; None: it has none."""
    if split == "even":
        block = split_evenly(graph.demand, order, blocks)
        if graph.loads(block, blocks).max() <= bound:
            return block
    block = split_densest(graph.demand, graph.outgoing, order, blocks, bound)
    return block if len(block) else None


@numba.njit(cache=True)
def _refine(demand: Any, outgoing: Any, incoming: Any, block: Any, blocks: int, most: float, state: Any) -> None:
    """Refine pairs of blocks in a drawn order, all of them again after each that moved a vertex."""
    if blocks == 1:
        return
    load, many, least = np.zeros(blocks), np.zeros(blocks, np.int64), ROUNDING * outgoing.flow.sum()
    for vertex in range(len(block)):
        load[block[vertex]] += demand[vertex]
        many[block[vertex]] += 1
    lows = np.array([low for low in range(blocks) for high in range(low + 1, blocks)])
    highs = np.array([high for low in range(blocks) for high in range(low + 1, blocks)])
    active = np.ones(len(lows), np.bool_)
    while active.any():
        drawn = np.flatnonzero(active)
        pair = drawn[draw_below(state, len(drawn))]
        active[pair] = False
        if refine_pair(demand, outgoing, incoming, block, load, many, lows[pair], highs[pair], most, least, state) > 0:
            active[:] = True
