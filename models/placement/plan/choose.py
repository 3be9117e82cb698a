"""Which operators are one query, on which cluster, with how many executors: the cheapest candidate in time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from configs.topology import Topology
from models.placement.allocation.dependent import allocate
from models.placement.allocation.nodes import Nodes
from models.placement.fusion.parts import GIGABYTE, illegal_because
from models.placement.graph import Floats
from models.placement.plan.blocks import Blocks, block_of, upstream_first
from models.placement.plan.candidates import candidate_blocks
from models.placement.plan.followed import followed_quantile_s
from models.placement.plan.measured import Measure, Placement, fewest_executors
from models.placement.plan.missing import summary, what_is_missing
from models.placement.plan.shares import allowed_clusters
from models.placement.rates import (
    Edge,
    bytes_of,
    fusion_task,
    inner_edges,
    operators_in_order,
    rates_of,
)

SEED = 0
"""Of the drawn orders: the same job is planned alike."""
ALL = 256
"""Ways to put blocks on clusters up to which all are looked at; of more, those of Algorithm 3 from some clusters on."""
NO_CORES = 1e-6
"""Cores of a node without any, as one is that is planned without: no query fits there, and a node has some."""
FIRST = 8
"""Clusters that are cheapest, and that are nearest to the broker, from which it begins; else from others."""
FIXED = "better, but which operators are one query is fixed while the job runs"
"""Why other queries than those of a job that was begun are not chosen."""


class PlanError(ValueError):
    """A topology for which there is no plan; the message says what is missing, and the nearest that can be."""


@dataclass(frozen=True)
class PlacementPlan:
    """A plan, and what else there was.

    Attributes:
        placement: that was chosen.
        cuts: why each edge between queries is there.
        others: the best placement of each other set of blocks, the best first, with why it was not chosen.
        followed_s: the quantile of its slowest path where its queries are followed batch by batch.
    """

    placement: Placement
    cuts: dict[Edge, str]
    others: tuple[tuple[Placement, str], ...]
    followed_s: float

    @property
    def better(self) -> Placement | None:
        """The best placement of other queries where that is better than that of those which are fixed; else None."""
        return self.others[0][0] if self.others and self.others[0][1] == FIXED else None

    @property
    def told_s(self) -> float:
        """The latency that is predicted: as followed, but for one query alone, or where the sum is what is too late."""
        several = len(self.placement.blocks) > 1 and self.placement.kept
        return self.followed_s if several and math.isfinite(self.followed_s) else self.placement.latency_s


def choose_placement(topology: Topology, factor: float = 1.0, fixed: Blocks | None = None) -> PlacementPlan:
    """Return the candidate that keeps the target at the least price, of the fewest queries; else the soonest one.

    Args:
        topology: of the job.
        factor: of the sources' rates, as for the highest load that is forecast.
        fixed: operators of each query of a job that was begun; None: any set of blocks may be chosen.

    Raises:
        PlanError: no set of blocks, or not the fixed one, has room on the clusters.
    """
    found = _found(topology, factor)
    own = found if fixed is None else _found(topology, factor, [fixed])
    if not own:
        raise PlanError(_why_none(topology, factor, fixed, found))
    best = own[0]
    queries = {block.operators for block in best.blocks}
    measure = Measure(topology, rates_of(topology, factor))
    cuts = why_cut(measure, best, fixed is not None)
    others = (one for one in found if {block.operators for block in one.blocks} != queries)
    worse = tuple((one, _why_not(one, best)) for one in others)
    return PlacementPlan(best, cuts, worse, followed_quantile_s(measure, best))


def _found(topology: Topology, factor: float, given: list[Blocks] | None = None) -> list[Placement]:
    """The best placement of each candidate, or set of blocks that is given, that has room, the best one first."""
    rates = rates_of(topology, factor)
    measure = Measure(topology, rates)
    candidates = given or candidate_blocks(topology, rates, SEED)
    for firsts in dict.fromkeys((first_clusters(topology), tuple(range(len(topology.clusters))))):
        best = (best_of(measure, blocks, firsts) for blocks in candidates)
        if found := sorted((one for one in best if one is not None), key=_rank):
            return found
    return []


def _why_none(topology: Topology, factor: float, fixed: Blocks | None, found: list[Placement]) -> str:
    """What is missing, and whether other queries than those of a job that was begun would have room."""
    given = [fixed] if fixed is not None and found else None
    why = what_is_missing(topology, factor, lambda one, at: next(iter(_found(one, at, given)), None), bool(given))
    return f"{why} Begun anew, the job would have room with other queries ({summary(found[0])})." if found else why


def best_of(measure: Measure, blocks: Blocks, firsts: Sequence[int]) -> Placement | None:
    """Return the best of the ways to put blocks on clusters; None where none has room.

    Args:
        measure: of the load.
        blocks: operators of each query.
        firsts: numbers of the clusters from which Algorithm 3 begins, where not all ways are looked at.
    """
    placed = (measure.with_executors(blocks, clusters) for clusters in _clusters(measure, blocks, firsts))
    return min((one for one in placed if one is not None), key=_rank, default=None)


def _rank(made: Placement) -> tuple[bool, float, int, float]:
    return not made.kept, made.price if made.kept else made.latency_s, len(made.blocks), made.latency_s


def _why_not(made: Placement, best: Placement) -> str:
    if _rank(made) < _rank(best):
        return FIXED
    if not made.kept:
        return "later than the target" if best.kept else "later"
    if made.price > best.price:
        return "dearer"
    return "more queries for the same price" if len(made.blocks) > len(best.blocks) else "later, for the same price"


def why_cut(measure: Measure, made: Placement, fixed: bool = False) -> dict[Edge, str]:
    """Return why each edge between a placement's queries is a topic, by what its two queries would be as one.

    Args:
        measure: of the job.
        made: its placement.
        fixed: whether its queries were given, as those of a job that was begun.
    """
    return {edge: why for edge in inner_edges(measure.topology) if (why := _why_cut(measure, made, edge, fixed))}


def _why_cut(measure: Measure, made: Placement, edge: Edge, fixed: bool) -> str:
    """Why an edge is a topic, by what its two queries would be as one, others where they are; "" inside a query."""
    topology, blocks = measure.topology, tuple(block.operators for block in made.blocks)
    place, names = block_of(blocks), list(topology.operators)
    one, other = place[edge.tail], place[edge.head]
    if one == other:
        return ""
    both = tuple(name for name in operators_in_order(topology) if place[name] in (one, other))
    merged = [block for number, block in enumerate(blocks) if number not in (one, other)] + [both]
    of = block_of(tuple(merged))
    if why := illegal_because(fusion_task(topology, measure.rates), [of[name] for name in names]):
        return why
    at, ordered = {block.operators: block.cluster for block in made.blocks}, upstream_first(topology, merged)
    near = [
        name
        for name in allowed_clusters(topology, both)
        if name in (made.blocks[one].cluster, made.blocks[other].cluster)
    ]
    tried = (measure.with_executors(ordered, [at.get(block, cluster) for block in ordered]) for cluster in near)
    joined = min((found for found in tried if found is not None), key=_rank, default=None)
    if joined is None:
        return "neither's cluster has room for both as one query"
    if made.kept and not joined.kept:
        return "as one query results are later than the target"
    if _rank(joined) < _rank(made):  # of a large job not all sets are looked at
        why_not = "but which are one is fixed while the job runs" if fixed else "which was not looked at"
        return f"as one query they would be better, {why_not}"
    return "as one query they are dearer" if joined.price > made.price else "as one query results are later"


def _clusters(measure: Measure, blocks: Blocks, firsts: Sequence[int]) -> Iterator[Sequence[str]]:
    """Ways to put blocks on clusters, those of pinned operators on theirs."""
    topology = measure.topology
    names = list(topology.clusters)
    pinned = [
        next((pin for name in block if (pin := topology.operators[name].cluster) is not None), None) for block in blocks
    ]
    choices = [names if pin is None else [pin] for pin in pinned]
    if math.prod(map(len, choices)) <= ALL:
        yield from product(*choices)
        return
    wired, units = measure.wiring(blocks), [one.executor_cores for one in topology.clusters.values()]
    taken = {
        unit: [float(unit * fewest_executors(load, unit) + topology.driver_cores) for load in wired.loads]
        for unit in set(units)
    }
    cores = np.array([taken[unit] for unit in units]).T  # a small query takes a whole executor, of each cluster's size
    demand = np.stack([cores, np.repeat(np.array(wired.held)[:, None], len(units), axis=1)], axis=2)
    fixed = {number: names.index(pin) for number, pin in enumerate(pinned) if pin is not None}
    flow = _flow(measure, blocks)
    nodes = _nodes(topology)
    for first in firsts:
        made = allocate(demand, flow, replace(nodes, master=first), 1.0, fixed)
        if made is not None and not made.overloaded:
            yield [names[node] for node in made.node]


def first_clusters(topology: Topology) -> tuple[int, ...]:
    """Return the numbers of the clusters from which Algorithm 3 begins: the cheapest, and the nearest to the broker."""
    clusters = topology.clusters
    cheapest = sorted(clusters, key=lambda name: clusters[name].price)[:FIRST]
    nearest = sorted(clusters, key=lambda name: topology.round_trip_ms(name, topology.broker))[:FIRST]
    return tuple(number for number, name in enumerate(clusters) if name in {*cheapest, *nearest})


def _flow(measure: Measure, blocks: Blocks) -> Floats:
    """Bytes/s between two blocks, in both directions added."""
    place = block_of(blocks)
    flow = np.zeros((len(blocks), len(blocks)))
    for edge in inner_edges(measure.topology):
        one, other = place[edge.tail], place[edge.head]
        if one != other:
            flow[one, other] += bytes_of(measure.topology, measure.rates, edge)
            flow[other, one] = flow[one, other]
    return flow


def _nodes(topology: Topology) -> Nodes:
    names = list(topology.clusters)
    capacity = np.array([[max(one.cores, NO_CORES), one.memory_gb * GIGABYTE] for one in topology.clusters.values()])
    trips = np.array([[topology.round_trip_ms(one, other) for other in names] for one in names])
    return Nodes(capacity, np.zeros_like(capacity), np.arange(len(names)), trips)
