"""All ways to put instances on nodes, by name, as they are compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from models.placement.allocation.nodes import Nodes
from models.placement.baselines.stand_ins import place_by_ants, place_within_latency
from models.placement.baselines.storm import place_by_resources, place_in_turn
from models.placement.instances.blocks import place_by_blocks
from models.placement.instances.initial import NoRoomError, place_initially
from models.placement.instances.job import Counts, ParallelJob
from models.placement.instances.moved import improve
from models.placement.twin.equilibrium import SharedLatency

Scheme = Callable[[ParallelJob, Nodes, float, int], Counts]
"""From a job, nodes, a limit of the latency in ms and a seed to (m, n) instances."""


def improved(*schemes: Scheme) -> Scheme:
    """Return a scheme that moves instances while the mean latency in equilibrium falls, from each scheme's placement.

    Of where these lead the one of the least latency in equilibrium is taken; the twin is not asked.
    """

    def place(job: ParallelJob, nodes: Nodes, limit_ms: float, seed: int) -> Counts:
        latency_ms = SharedLatency.of(job, nodes).ms
        found = [improve(job, nodes, scheme(job, nodes, limit_ms, seed), latency_ms) for scheme in schemes]
        return min(found, key=latency_ms)

    return place


def _by_blocks(job: ParallelJob, nodes: Nodes, limit_ms: float, seed: int) -> Counts:
    """With a slack of 30 % on each node, or, where that leaves no room, without it."""
    try:
        return place_by_blocks(job, nodes, seed=seed)
    except NoRoomError:
        return _by_full_blocks(job, nodes, limit_ms, seed)


def _by_full_blocks(job: ParallelJob, nodes: Nodes, limit_ms: float, seed: int) -> Counts:
    """Without slack: fewer blocks, which talk less and have fewer cores."""
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
    "KFM + allocation, improved": improved(_by_blocks, _by_full_blocks),
}
"""The last three are this project's; Storm's default is improved too, to tell what the beginning is worth."""
