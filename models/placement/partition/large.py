"""Blocks of graphs of thousands of vertices: several beginnings, each relaxed and refined, and the best of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from models.placement.graph import Dag, GraphError, Integers
from models.placement.partition.kfm import SLACK, Partition, bound_of, partition, refine_blocks
from models.placement.partition.multilevel import split_by_coarsening
from models.placement.partition.refine import ROUNDING
from models.placement.partition.relax import draw_back, push_onward, relax, settle
from models.placement.partition.smooth import order_within, smooth_order
from models.placement.partition.spectral import spectral_blocks
from models.placement.partition.split import split_densest

Start = Callable[[Dag, int, float, int], Integers]
"""From a graph, blocks, demand of one and a seed to (V,) blocks; edges may lead back. Empty: there are none."""


def partition_large(graph: Dag, blocks: int, slack: float = SLACK, seed: int = 0) -> Partition:
    """Return blocks of a large graph, whose dependencies have one direction, with little flow between them.

    Args:
        graph: with the demand of operators and the flow between them.
        blocks: how many, at least 1 and at most the vertices.
        slack: a block has at most (1 + slack) times the mean demand, rounded up, or its heaviest vertex.
        seed: equal ones give equal blocks.

    Returns:
        Where no beginning leads to blocks within the bound, what KFM makes of it.

    Raises:
        GraphError: the number of blocks is out of range.
    """
    if not 1 <= blocks <= graph.size:
        raise GraphError(f"blocks={blocks}: 1 to the {graph.size} vertices are expected")
    stated = bound_of(graph, blocks, slack)
    bound = max(stated, float(graph.demand.max()))
    most = bound * (1 + ROUNDING)
    found: list[tuple[float, float, list[int]]] = []
    for start in STARTS:
        begun = start(graph, blocks, most, seed)
        if not len(begun):
            continue
        for block in finish_blocks(graph, relax(graph, begun, blocks, most, seed), blocks, most, seed):
            found.append((graph.cut(block), float(graph.loads(block, blocks).max()), block.tolist()))
    if not found:
        return partition(graph, blocks, slack, seed=seed)
    best = np.array(min(found)[2], np.int64)
    return Partition(best, graph.cut(best), graph.loads(best, blocks), bound, bound > stated, True)


def finish_blocks(graph: Dag, block: Integers, blocks: int, most: float, seed: int) -> Iterator[Integers]:
    """Yield blocks without an edge that leads back, made of some with a few such edges, and refined.

    What leads back is pushed onward, or what it leads to is drawn back; where that makes a block too large or leaves
    one empty, the order that it gives is split anew.

    Args:
        graph: of the vertices.
        block: of each.
        blocks: how many there are.
        most: demand of one.
        seed: of the orders in which moves are tried.
    """
    order = order_within(graph, np.zeros(graph.size, np.int64))
    for mend in (push_onward, draw_back):
        mended = mend(graph, block, order)
        loads = graph.loads(mended, blocks)
        if loads.max() > most or not loads.min() > 0:
            mended = np.asarray(
                split_densest(graph.demand, graph.outgoing, order_within(graph, mended), blocks, most)
            )  # fmt: skip
        if len(mended):
            settle(graph, mended, blocks, most, seed)
            refine_blocks(graph, mended, blocks, most, seed)
            yield mended


def _by_order(graph: Dag, blocks: int, most: float, seed: int) -> Integers:
    return np.asarray(split_densest(graph.demand, graph.outgoing, smooth_order(graph, seed), blocks, most))


def _by_spectrum(graph: Dag, blocks: int, most: float, seed: int) -> Integers:
    return spectral_blocks(graph, blocks, seed) if graph.size > blocks + 1 else np.zeros(0, np.int64)


STARTS: tuple[Start, ...] = (_by_order, _by_spectrum, split_by_coarsening)
"""A smooth order that is split, spectral blocks, and a smaller graph that is cut: none is best for all graphs."""
