"""Instances in blocks that talk little, blocks on nodes near each other: Md-Stream's scheme (Algorithms 2 and 3)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from models.placement.allocation.dependent import allocate
from models.placement.allocation.nodes import Nodes
from models.placement.graph import Dag, Floats
from models.placement.instances.initial import NoRoomError
from models.placement.instances.job import Counts, ParallelJob, count_instances
from models.placement.partition.count import UTILISATION, blocks_needed
from models.placement.partition.kfm import SLACK, partition

FINE = 1000.0
"""Unit of a block's demand: thousandths of the largest node."""


def place_by_blocks(
    job: ParallelJob, nodes: Nodes, slack: float = SLACK, seed: int = 0, utilisation: float = UTILISATION
) -> Counts:  # fmt: skip
    """Return (m, n) instances on nodes: the fewest blocks that each fit a node, by KFM, then Algorithm 3.

    Where a number of blocks leaves one without room, one block more is tried.

    Args:
        job: of m operators.
        nodes: n of them.
        slack: of a block's demand over the mean.
        seed: of the orders that are drawn.
        utilisation: share of a node that is used at most.

    Raises:
        NoRoomError: the nodes have no room for the instances, however they are put in blocks.
    """
    if not nodes.count:
        raise NoRoomError("there is no node: none of the job's instances has room")
    graph, wide = job.between_instances(), _with_slots(nodes, utilisation)
    need = np.column_stack([job.need[job.owners()], np.ones(graph.size)])
    grant = wide.capacity.max(axis=0)
    asked = need.sum(axis=0) / grant
    share = FINE * (need / grant).max(axis=1)  # the bound of a block's demand is rounded up to a whole number
    balanced = Dag(np.maximum(share, 1e-9), graph.tail, graph.head, graph.flow)
    least = blocks_needed(float(asked.max()), 1.0, 1, graph.size, utilisation)
    for blocks in range(least, graph.size + 1):
        found = partition(balanced, blocks, slack, seed=seed, most=FINE * utilisation)
        demand = np.array([need[found.block == number].sum(axis=0) for number in range(blocks)])
        laid = allocate(demand, _between_blocks(graph, found.block, blocks), wide, utilisation)
        if laid is not None and not laid.overloaded:
            return count_instances(job, nodes, [laid.node[number] for number in found.block])
    raise NoRoomError(
        f"{graph.size} instances ask for {asked.max():.2f} of the largest node: the nodes have no room for them at "
        f"{utilisation:.0%} of each"
    )


def _with_slots(nodes: Nodes, utilisation: float) -> Nodes:
    """Slots as a further resource, all of which may be used."""
    capacity = np.column_stack([nodes.capacity, nodes.slots / utilisation])
    return replace(nodes, capacity=capacity, used=np.column_stack([nodes.used, np.zeros(nodes.count)]))


def _between_blocks(graph: Dag, block: np.ndarray, blocks: int) -> Floats:
    flow = np.zeros((blocks, blocks))
    np.add.at(flow, (block[graph.tail], block[graph.head]), graph.flow)
    np.fill_diagonal(flow, 0.0)
    return flow + flow.T
