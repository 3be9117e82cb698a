"""What reaches each operator of a topology and leaves it, and what that comes to in cores and bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from graphlib import TopologicalSorter
from typing import NamedTuple

from configs.topology import JobOperator, Topology
from models.placement.fusion.parts import FusionTask, Link, QueryStage
from models.placement.graph import Dag

LEAST_DEMAND = 1e-6
"""Of an operator that nothing reaches, thousandths of a core: a vertex has some."""
BYTE_CORES = 1e-6
"""Thousandths of a core that a byte/s counts for: little, so that it decides between edges that cost the same."""


class Rates(NamedTuple):
    """Records/s of a load.

    Attributes:
        taken: by each operator.
        sent: by each source and operator.
    """

    taken: Mapping[str, float]
    sent: Mapping[str, float]


class Edge(NamedTuple):
    """An edge of the job: `tail` may be a source, `head` is "" where it leads to the results."""

    tail: str
    head: str


def operators_in_order(topology: Topology) -> list[str]:
    """Return the operators so that each comes after those whose records it takes."""
    order = TopologicalSorter({own: one.of for own, one in topology.operators.items()}).static_order()
    return [own for own in order if own in topology.operators]


def rates_of(topology: Topology, factor: float = 1.0) -> Rates:
    """Return the records/s of a load; `factor` is that of the sources' rates."""
    sent = {name: factor * one.rps for name, one in topology.sources.items()}
    taken: dict[str, float] = {}
    for own in operators_in_order(topology):
        one = topology.operators[own]
        taken[own] = sum(sent[other] for other in one.of)
        sent[own] = one.selectivity * taken[own]
    return Rates(taken, sent)


def edges_of(topology: Topology) -> Iterator[Edge]:
    """Yield the edges: from sources, between operators, and to the results."""
    heads = {other for one in topology.operators.values() for other in one.of}
    for own, one in topology.operators.items():
        yield from (Edge(other, own) for other in one.of)
        if own not in heads:
            yield Edge(own, "")


def inner_edges(topology: Topology) -> list[Edge]:
    """Return the edges between operators; all others are topics anyway."""
    return [edge for edge in edges_of(topology) if edge.tail in topology.operators and edge.head]


def cores_of(topology: Topology, rates: Rates) -> dict[str, float]:
    """Return the cores that each operator's own work keeps busy."""
    return {own: rates.taken[own] * one.work_ms / 1000 for own, one in topology.operators.items()}


def memory_of(topology: Topology, block: Iterable[str]) -> float:
    """Return the bytes that some operators hold, with their state."""
    held = (topology.operators[name] for name in block)
    return sum(1e6 * (one.memory_mb + one.state_mb) for one in held)


def bytes_of(topology: Topology, rates: Rates, edge: Edge) -> float:
    """Return the bytes/s along an edge."""
    sender = topology.sources.get(edge.tail) or topology.operators[edge.tail]
    return rates.sent[edge.tail] * sender.bytes


def fusion_task(topology: Topology, rates: Rates) -> FusionTask:
    """Return the operators, in the order of the file, with what an edge costs inside a query and through a topic."""
    names, hop = list(topology.operators), topology.hop
    stages = tuple(_stage(own, one, rates.taken[own]) for own, one in topology.operators.items())
    through_s, inline_s = (hop.write_ms + hop.read_ms) / 1000, hop.inline_ms / 1000
    links = tuple(
        Link(names.index(edge.tail), names.index(edge.head), rates.sent[edge.tail], through_s, 0.0, inline_s)
        for edge in inner_edges(topology)
    )
    return FusionTask(stages, links)


def demand_graph(topology: Topology, rates: Rates) -> Dag:
    """Return the operators' thousandths of cores, and as flows those that each edge takes more through a topic.

    Of edges that take none, the fewest bytes are to cross topics.
    """
    names, cores, hop = list(topology.operators), cores_of(topology, rates), topology.hop
    more_ms = max(hop.write_ms + hop.read_ms - hop.inline_ms, 0.0)
    edges = [
        (names.index(edge.tail), names.index(edge.head),
         rates.sent[edge.tail] * more_ms + BYTE_CORES * bytes_of(topology, rates, edge))
        for edge in inner_edges(topology)
    ]  # fmt: skip
    return Dag.build([max(1000 * cores[own], LEAST_DEMAND) for own in names], edges)


def _stage(name: str, one: JobOperator, rps: float) -> QueryStage:
    return QueryStage(
        one.work_ms / 1000,
        rps,
        one.cluster or "",
        "",
        one.unit,
        one.exactly_once or "",
        one.timer,
        1e6 * one.state_mb,
        name=name,
    )
