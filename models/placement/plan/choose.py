"""Which operators are one query, on which cluster, with how many executors: the cheapest that keeps the target."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from configs.topology import Topology
from models.placement.allocation.dependent import allocate
from models.placement.allocation.nodes import Nodes
from models.placement.graph import Floats
from models.placement.partition.count import UTILISATION
from models.placement.plan.candidates import Blocks, block_of, candidate_blocks
from models.placement.plan.measured import Measure, Placement
from models.placement.rates import Edge, bytes_of, cores_of, inner_edges, memory_of, rates_of

GIGABYTE = 1e9
ALL = 256
"""Ways to put blocks on clusters up to which all are looked at; of more, those of Algorithm 3 from each cluster on."""


class PlanError(ValueError):
    """A topology for which there is no plan; the message says what is missing, and the nearest that can be."""


@dataclass(frozen=True)
class PlacementPlan:
    """A plan, and what else there was.

    Attributes:
        placement: that was chosen.
        cuts: why each edge between queries is there.
        others: the best placement of each other set of blocks, the next best first, with why it was not chosen.
    """

    placement: Placement
    cuts: dict[Edge, str]
    others: tuple[tuple[Placement, str], ...]


def choose_placement(topology: Topology, factor: float = 1.0, seed: int = 0) -> PlacementPlan:
    """Return the placement that keeps the target at the least price, of the fewest queries; else the soonest one.

    Args:
        topology: of the job.
        factor: of the sources' rates, as for the highest load that is forecast.
        seed: of the drawn orders.

    Raises:
        PlanError: no set of blocks has room on the clusters.
    """
    rates = rates_of(topology, factor)
    measure, found = Measure(topology, rates), list[Placement]()
    for blocks in candidate_blocks(topology, rates, seed):
        placed = (measure.place(blocks, clusters) for clusters in _clusters(measure, blocks))
        if able := [one for one in placed if one is not None]:
            found.append(min(able, key=_rank))
    if not found:
        raise PlanError(_what_is_missing(measure))
    best, *others = sorted(found, key=_rank)
    cuts = {edge: why for edge in inner_edges(topology) if (why := _why_cut(topology, best, edge))}
    return PlacementPlan(best, cuts, tuple((one, _why_not(one, best)) for one in others))


def _rank(made: Placement) -> tuple[bool, float, int, float]:
    return not made.kept, made.price if made.kept else made.latency_s, len(made.blocks), made.latency_s


def _why_not(made: Placement, best: Placement) -> str:
    if not made.kept:
        return "later than the target" if best.kept else "later"
    return "dearer" if made.price > best.price else "more queries for the same price"


def _why_cut(topology: Topology, made: Placement, edge: Edge) -> str:
    """Why an edge is a topic; "" where it is inside a query."""
    place = block_of(tuple(block.operators for block in made.blocks))
    own, other = (topology.operators[name] for name in edge)
    here, there = (made.blocks[place[name]].cluster for name in edge)
    if place[edge.tail] == place[edge.head]:
        return ""
    if own.cluster and other.cluster and own.cluster != other.cluster:
        return f"{edge.tail} has to run on {own.cluster}, {edge.head} on {other.cluster}"
    if own.unit != other.unit:
        return "they are different recovery units"
    if own.exactly_once and other.exactly_once and own.exactly_once != other.exactly_once:
        return "their sinks commit apart"
    if own.timer and other.timer:
        return "both own event-time timers"
    return f"{here} has no room for both, or they are cheaper apart" if here != there else "as one query they are later"


def _clusters(measure: Measure, blocks: Blocks) -> Iterator[Sequence[str]]:
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
    held = [memory_of(topology, block) for block in blocks]
    cores = [max(1.0, math.ceil(load / UTILISATION - 1e-9)) for load in measure.loads(blocks)]
    fixed = {number: names.index(pin) for number, pin in enumerate(pinned) if pin is not None}
    flow = _flow(measure, blocks)
    for first in range(len(names)):
        made = allocate(np.array([cores, held]).T, flow, _nodes(topology, first), 1.0, fixed)
        if made is not None and not made.overloaded:
            yield [names[node] for node in made.node]


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


def _nodes(topology: Topology, first: int) -> Nodes:
    names = list(topology.clusters)
    capacity = np.array([[float(one.cores), one.memory_gb * GIGABYTE] for one in topology.clusters.values()])
    trips = np.array([[topology.round_trip_ms(one, other) for other in names] for one in names])
    return Nodes(capacity, np.zeros_like(capacity), np.arange(len(names)), trips, first)


def _what_is_missing(measure: Measure) -> str:
    topology, cores = measure.topology, cores_of(measure.topology, measure.rates)
    busy, heavy = sum(cores.values()), max(cores, key=lambda name: cores[name])
    there = sum(one.cores for one in topology.clusters.values())
    room, held = (
        sum(one.memory_gb for one in topology.clusters.values()), memory_of(topology, topology.operators) / GIGABYTE
    )  # fmt: skip
    return (
        f"{topology.name}: its work keeps {busy:.1f} cores busy, {cores[heavy]:.1f} of them {heavy}'s, and holds"
        f" {held:.1f} GB; the clusters have {there} cores, of which {UTILISATION:.0%} are to be used, and {room:g} GB."
        f" Add to them, split {heavy}, or plan for {UTILISATION * there / busy:.0%} of the load at most."
    )
