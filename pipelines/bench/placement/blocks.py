"""Blocks of small random graphs by KFM and simpler ways, beside the cheapest of all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import fmean
from typing import Any

import numpy as np

from models.placement.graph import Dag, Integers
from models.placement.partition.chance import seeded
from models.placement.partition.exact import least_cut_blocks
from models.placement.partition.kfm import SLACK, bound_of, partition
from models.placement.partition.order import draw_order
from models.placement.partition.split import split_evenly
from pipelines.bench.placement.graphs import random_graph

SIZES, BLOCKS = range(6, 11), range(2, 5)
MORE_ORDERS = 200
FIRST = 100_000
"""Seed of the first graph: tests draw others."""
Way = Callable[[Dag, int, int], Integers]
"""From a graph, a number of blocks and a seed to blocks."""


def _by_kfm(graph: Dag, blocks: int, seed: int) -> Integers:
    return partition(graph, blocks, seed=seed).block


def _by_more(graph: Dag, blocks: int, seed: int) -> Integers:
    return partition(graph, blocks, split="dp", orders=MORE_ORDERS, seed=seed).block


def _by_order(graph: Dag, blocks: int, seed: int) -> Integers:
    order = draw_order(graph.outgoing, np.diff(graph.incoming.start), seeded(seed, 0))
    return np.asarray(split_evenly(graph.demand, order, blocks))


WAYS: Mapping[str, Way] = {"kfm": _by_kfm, "kfm+": _by_more, "random order": _by_order}
"""KFM as it is printed, repaired; from the densest split of more orders; a drawn order, split evenly."""


def measure_blocks(count: int = 200) -> dict[str, Any]:
    """Cut graphs of 6 to 10 vertices into 2 to 4 blocks by every way, and say how far from the cheapest each is.

    Args:
        count: of graphs; those that cannot be cut within the bound are left out.

    Returns:
        By way: `n`, `optimal` (share at the optimum), `gap` (mean of cut ÷ optimum - 1) and `worst`. Where the optimum
        is 0, a gap is 0 or 1.
    """
    gaps: dict[str, list[float]] = {way: [] for way in WAYS}
    for seed in range(FIRST, FIRST + count):
        graph, blocks = random_graph(seed, SIZES[seed % len(SIZES)]), BLOCKS[seed % len(BLOCKS)]
        bound = max(bound_of(graph, blocks, SLACK), float(graph.demand.max()))
        best = least_cut_blocks(graph, blocks, bound)
        if best is None:
            continue
        least = graph.cut(best)
        for name, way in WAYS.items():
            block = way(graph, blocks, seed)
            cut = graph.cut(block) if graph.loads(block, blocks).max() <= bound else float("inf")
            gaps[name].append(cut / least - 1 if least else float(cut > 0))
    found = {}
    for name, own in gaps.items():
        able = [gap for gap in own if gap < float("inf")]
        found[name] = {
            "n": len(own), "optimal": fmean(gap < 1e-9 for gap in own), "gap": fmean(able) if able else None,
            "worst": max(able, default=None), "over": len(own) - len(able),
        }  # fmt: skip
    return found
