"""All ways to put instances on nodes, by name, as they are compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from models.placement.allocation.nodes import Nodes
from models.placement.baselines.stand_ins import place_by_ants, place_within_latency
from models.placement.baselines.storm import place_by_resources, place_in_turn
from models.placement.graph import Floats
from models.placement.instances.blocks import place_by_blocks
from models.placement.instances.initial import NoRoomError, place_initially
from models.placement.instances.job import CORES, Counts, ParallelJob
from models.placement.instances.latency import path_latency
from models.placement.instances.moved import improve

Scheme = Callable[[ParallelJob, Nodes, float, int], Counts]
"""From a job, nodes, a limit of the latency in ms and a seed to (m, n) instances."""
LATE_MS, CROWDED_MS = 1e6, 10.0
"""Latency above which none is told apart, and what a core too few costs."""


def improved(scheme: Scheme) -> Scheme:
    """Return a scheme from whose placement single instances are moved while the latency in equilibrium falls."""

    def place(job: ParallelJob, nodes: Nodes, limit_ms: float, seed: int) -> Counts:
        def cost(counts: Counts) -> float:
            found, over = path_latency(job, nodes, counts), float(crowding(job, nodes, counts).sum())
            return min(found.worst, LATE_MS) + 1e-3 * min(found.mean, LATE_MS) + CROWDED_MS * over

        return improve(job, nodes, scheme(job, nodes, limit_ms, seed), cost)

    return place


def crowding(job: ParallelJob, nodes: Nodes, counts: Counts) -> Floats:
    """Return (n,) how many cores more than it has a node's instances keep busy where none falls behind."""
    busy = (job.taken_rps * job.service_s / counts.sum(axis=1)) @ counts
    return np.asarray(np.maximum(busy - nodes.capacity[:, CORES], 0.0))


def _by_blocks(job: ParallelJob, nodes: Nodes, limit_ms: float, seed: int) -> Counts:
    """With a slack of 30 % on each node, or, where that leaves no room, without it."""
    try:
        return place_by_blocks(job, nodes, seed=seed)
    except NoRoomError:
        return place_by_blocks(job, nodes, seed=seed, utilisation=1.0)


def _in_turn(job: ParallelJob, nodes: Nodes, limit_ms: float, seed: int) -> Counts:
    return place_in_turn(job, nodes)


SCHEMES: Mapping[str, Scheme] = {
    "Storm default": _in_turn,
    "R-Storm": lambda job, nodes, limit_ms, seed: place_by_resources(job, nodes),
    "Lc-Stream stand-in": lambda job, nodes, limit_ms, seed: place_within_latency(job, nodes, limit_ms),
    "SP-Ant stand-in": lambda job, nodes, limit_ms, seed: place_by_ants(job, nodes, seed),
    "Storm default, improved": improved(_in_turn),
    "Pareto bins": lambda job, nodes, limit_ms, seed: place_initially(job, nodes),
    "KFM + allocation": _by_blocks,
    "KFM + allocation, improved": improved(_by_blocks),
}
"""The last three are this project's; Storm's default is improved too, to tell what the beginning is worth."""
