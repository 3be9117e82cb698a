"""Sets of blocks that may be queries: fused ones, and those with the least bytes between them by their number."""

from __future__ import annotations

from collections.abc import Sequence

from configs.topology import Topology
from models.placement.fusion.parts import groups_of, why_not
from models.placement.fusion.planner import fuse
from models.placement.graph import Dag
from models.placement.partition.count import UTILISATION
from models.placement.partition.exact import LARGEST, cheapest_blocks
from models.placement.partition.kfm import bound_of, partition
from models.placement.rates import Rates, demand_graph, fusion_task, inner_edges, operators_in_order

Blocks = tuple[tuple[str, ...], ...]
"""Operators of each query, upstream first."""
SLACKS = (0.2, 1.0)
"""How uneven blocks of the least cut may be."""


def candidate_blocks(topology: Topology, rates: Rates, seed: int) -> list[Blocks]:
    """Return sets of blocks of which each may be a query, every set once.

    All operators in one, the fused groups, each alone, and for each number of blocks those with the least bytes
    between them: by looking at all where these are few, else by KFM.

    Args:
        topology: of the job.
        rates: of the load.
        seed: of the drawn orders.
    """
    names, task = list(topology.operators), fusion_task(topology, rates)
    groups = [groups_of(task, [0] * len(task.links)), fuse(task), list(range(len(names)))]
    graph = demand_graph(topology, rates)
    largest = max(one.cores for one in topology.clusters.values()) * UTILISATION
    for blocks in range(2, len(names)):
        groups += [_least_cut(graph, blocks, slack, largest, seed) for slack in SLACKS]
    order = operators_in_order(topology)
    found: dict[Blocks, None] = {}
    for group in groups:
        if not why_not(task, group):
            of = {name: group[names.index(name)] for name in order}
            blocks_ = tuple(tuple(name for name in order if of[name] == one) for one in dict.fromkeys(of.values()))
            found[_upstream_first(topology, blocks_)] = None
    return list(found)


def _least_cut(graph: Dag, blocks: int, slack: float, largest: float, seed: int) -> list[int]:
    """The blocks with the least flow between them: of all there are where these are few, else KFM's."""
    if graph.size <= LARGEST:
        bound = max(bound_of(graph, blocks, slack, largest), float(graph.demand.max()))
        if (found := cheapest_blocks(graph, blocks, bound)) is not None:
            return found.tolist()
    return partition(graph, blocks, slack, "dp", seed=seed, most=largest).block.tolist()


def block_of(blocks: Blocks) -> dict[str, int]:
    """Return the number of each operator's block."""
    return {name: number for number, block in enumerate(blocks) for name in block}


def _upstream_first(topology: Topology, blocks: Sequence[tuple[str, ...]]) -> Blocks:
    place = block_of(tuple(blocks))
    edges = [(place[tail], place[head]) for tail, head in inner_edges(topology)]
    needs = {one: {tail for tail, head in edges if head == one and tail != one} for one in range(len(blocks))}
    order: list[int] = []
    while len(order) < len(blocks):
        order.append(next(one for one in needs if one not in order and needs[one] <= {*order}))
    return tuple(blocks[number] for number in order)
