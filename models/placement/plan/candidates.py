"""Sets of blocks that may be queries: fused ones, and those with the least cut by their number."""

from __future__ import annotations

from graphlib import TopologicalSorter

from configs.topology import Topology
from models.placement.fusion.parts import FusionTask, illegal_because
from models.placement.fusion.planner import fuse
from models.placement.graph import Dag
from models.placement.partition.count import UTILISATION, blocks_needed
from models.placement.partition.exact import LARGEST, MOST_CLOSED, closed_sets, least_cut_blocks
from models.placement.partition.kfm import ORDERS, bound_of, partition
from models.placement.plan.blocks import Blocks, upstream_first
from models.placement.rates import Rates, demand_graph, fusion_task, operators_in_order

SLACKS = (0.2, 1.0)
"""How uneven blocks of the least cut may be."""
EACH, FURTHER = 15, 1.5
"""How many numbers of blocks are tried one by one, from the least that may have room, and the ratio of those after."""
MANY = 50
"""Operators from which on fewer orders are drawn, in proportion: an order takes longer by more than that."""


def candidate_blocks(topology: Topology, rates: Rates, seed: int) -> list[Blocks]:
    """Return sets of blocks of which each may be a query, every set once.

    All operators in one, the fused groups, each alone, and for numbers of blocks (`block_numbers`) those whose topics
    cost least: by looking at all where these are few, else by KFM.

    Args:
        topology: of the job.
        rates: of the load.
        seed: of the drawn orders.
    """
    names, task = list(topology.operators), fusion_task(topology, rates)
    groups = [[0] * len(names), fuse(task), list(range(len(names)))]
    graph = demand_graph(topology, rates)
    most = 1000.0 * max(one.cores for one in topology.clusters.values())
    largest = UTILISATION * most
    for blocks in block_numbers(blocks_needed(float(graph.demand.sum()), most, 1, len(names)), len(names)):
        least = [_least_cut(graph, blocks, slack, largest, seed) for slack in SLACKS]
        if all(illegal_because(task, group) for group in least):  # the least cut runs through what has to be apart
            least += [_least_cut_of_kinds(task, graph, blocks, slack, most, seed) for slack in SLACKS]
        groups += least
    order = operators_in_order(topology)
    found: dict[Blocks, None] = {}
    for group in groups:
        if not illegal_because(task, group):
            of = {name: group[names.index(name)] for name in order}
            blocks_ = tuple(tuple(name for name in order if of[name] == one) for one in dict.fromkeys(of.values()))
            found[upstream_first(topology, blocks_)] = None
    return list(found)


def block_numbers(needed: int, operators: int) -> list[int]:
    """Return the numbers of blocks that are tried, 2 at least and fewer than operators.

    Args:
        needed: the fewest that may have room.
        operators: of the job; each alone is tried anyway.
    """
    begin = max(needed, 2)
    found = list(range(begin, min(begin + EACH, operators)))
    while found and int(found[-1] * FURTHER) < operators and len(found) >= EACH:
        found.append(int(found[-1] * FURTHER))
    return found


def _least_cut(graph: Dag, blocks: int, slack: float, largest: float, seed: int) -> list[int]:
    """The blocks with the least flow between them: of all there are where these are few, else KFM's."""
    if graph.size <= LARGEST and len(closed_sets(graph)) <= MOST_CLOSED:
        bound = max(bound_of(graph, blocks, slack, largest), float(graph.demand.max()))
        if (found := least_cut_blocks(graph, blocks, bound)) is not None:
            return found.tolist()
    orders = max(ORDERS * MANY // max(graph.size, MANY), 1)
    return partition(graph, blocks, slack, "dp", orders, seed, largest).block.tolist()


def _least_cut_of_kinds(
    task: FusionTask, graph: Dag, blocks: int, slack: float, most: float, seed: int
) -> list[int]:  # fmt: skip
    """As many blocks, or the fewest that may have room, of which none has operators that have to be apart.

    Operators of one cluster, recovery unit and commit unit are parted among themselves; who has most demand for each of
    its blocks gets a further one.
    """
    kinds: dict[tuple[str, ...], list[int]] = {}
    for place, one in enumerate(task.stages):
        kinds.setdefault((one.pin, one.trigger, one.unit, one.commit), []).append(place)
    demands = [float(graph.demand[members].sum()) for members in kinds.values()]
    sizes = [len(members) for members in kinds.values()]
    many = [blocks_needed(demand, most, 1, size) for demand, size in zip(demands, sizes, strict=True)]
    while sum(many) < blocks:
        open_ = [kind for kind, size in enumerate(sizes) if many[kind] < size]
        many[max(open_, key=lambda kind: demands[kind] / many[kind])] += 1
    group, made, before = [0] * graph.size, 0, _before(graph)
    for members, own in zip(kinds.values(), many, strict=True):
        number_of = {vertex: number for number, vertex in enumerate(members)}
        flows = {(tail, head): 0.0 for head in members for tail in before[head] if tail in number_of}
        flows |= {
            (tail, head): flow
            for tail, head, flow in zip(graph.tail.tolist(), graph.head.tolist(), graph.flow.tolist(), strict=True)
            if tail in number_of and head in number_of
        }
        edges = [(number_of[tail], number_of[head], flow) for (tail, head), flow in flows.items()]
        part = Dag.build(graph.demand[members], edges)
        for vertex, number in zip(members, _least_cut(part, own, slack, UTILISATION * most, seed), strict=True):
            group[vertex] = made + number
        made += own
    return group


def _before(graph: Dag) -> list[set[int]]:
    """Vertices from which a way leads to each, also by operators of other kinds."""
    tails: list[set[int]] = [set() for _ in range(graph.size)]
    for tail, head in zip(graph.tail.tolist(), graph.head.tolist(), strict=True):
        tails[head].add(tail)
    found: list[set[int]] = [set() for _ in range(graph.size)]
    for vertex in TopologicalSorter(dict(enumerate(tails))).static_order():
        found[vertex] = tails[vertex].union(*(found[tail] for tail in tails[vertex]))
    return found
