"""Blocks of graphs of 5,000 vertices, beside METIS and beside the blocks that a graph was made of."""

from __future__ import annotations

import time
from statistics import fmean
from typing import Any

from models.placement.graph import Dag
from models.placement.partition.kfm import SLACK, Partition, bound_of
from models.placement.partition.large import partition_large
from pipelines.bench.placement.graphs import FAMILIES, large_graph, random_graph
from pipelines.bench.placement.metis import metis_blocks, without_cycles

BLOCKS, GRAPHS, RUNS = 8, 5, 1_000
FIRST = 100_000
"""Seed of the first graph; rules were developed on others."""


def measure_large() -> dict[str, Any]:
    """Cut graphs of all families, and small ones a thousand times.

    Returns:
        `families`, by name: means of `cut`, of `metis` (whose blocks may depend on each other in a circle) and of
        `mended` (those without cycles) over all flow; `to_metis` and `to_mended`, of ours to each, mean and `worst`;
        `seconds`, the longest; `to_planted`, the worst, where blocks were planted. `worst` and `seconds` of all.
        `cycles`: of so many `runs` on graphs of 60 vertices, those with an edge that leads back.
    """
    partition_large(random_graph(0, 60, 0.1), 3)  # compiles
    families = {family: _family(family) for family in FAMILIES}
    cycles = 0
    for seed in range(RUNS):
        graph = random_graph(FIRST + seed, 60, 0.1)
        cycles += _leads_back(graph, partition_large(graph, 2 + seed % 7, seed=seed))
    every = list(families.values())
    return {
        "families": families, "cycles": cycles, "runs": RUNS, "worst": max(one["worst"] for one in every),
        "seconds": max(one["seconds"] for one in every), "n": GRAPHS * len(every),
    }  # fmt: skip


def _family(name: str) -> dict[str, Any]:
    found: dict[str, list[float]] = {}
    for seed in range(FIRST, FIRST + GRAPHS):
        graph, planted = large_graph(name, seed, blocks=BLOCKS)
        begun = time.perf_counter()
        ours = partition_large(graph, BLOCKS, seed=seed)
        seconds = time.perf_counter() - begun
        metis = metis_blocks(graph, BLOCKS, SLACK)
        mended = graph.cut(without_cycles(graph, metis, BLOCKS, bound_of(graph, BLOCKS, SLACK)))
        if _leads_back(graph, ours) or not ours.fits:
            raise AssertionError(f"{name}, seed {seed}: an edge leads back, or a block is too large")
        one = {
            "cut": ours.cut / graph.flow.sum(), "metis": graph.cut(metis) / graph.flow.sum(),
            "mended": mended / graph.flow.sum(), "to_metis": ours.cut / graph.cut(metis),
            "to_mended": ours.cut / mended, "seconds": seconds,
        }  # fmt: skip
        if planted is not None:
            one["to_planted"] = ours.cut / graph.cut(planted)
        for what, value in one.items():
            found.setdefault(what, []).append(float(value))
    worst = {"seconds", "to_planted"}
    summary = {what: max(values) if what in worst else fmean(values) for what, values in found.items()}
    return {**summary, "worst": max(found["to_mended"]), "n": GRAPHS}


def _leads_back(graph: Dag, found: Partition) -> bool:
    return bool((found.block[graph.tail] > found.block[graph.head]).any())
