"""A placement as applications: what each reads and writes, in which order they start, and what a batch may take."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from configs.topology import Topology
from models.placement.known_work import KnownWork
from models.placement.plan.blocks import block_of
from models.placement.plan.measured import CATCH_UP, Measure, Placement
from models.placement.rates import edges_of, rates_of


class BlockApplication(NamedTuple):
    """A query that is an application of its own.

    Attributes:
        name: the job's and that of its first operator: it stays while that operator begins a block.
        cluster: where it runs.
        executors: that it begins with.
        operators: in their order.
        reads: topic of each source and each operator elsewhere whose records it takes.
        writes: topic of each of its operators whose records others take, or that nobody takes.
    """

    name: str
    cluster: str
    executors: int
    operators: tuple[str, ...]
    reads: Mapping[str, str]
    writes: Mapping[str, str]


def topic_of(topology: Topology, name: str) -> str:
    """Return the topic of an operator's records, or of a source's, which is its own name."""
    return name if name in topology.sources else f"{topology.name}.{name}"


def applications_of(topology: Topology, placement: Placement) -> tuple[BlockApplication, ...]:
    """Return the applications of a placement in the order in which they are started: upstream first.

    Args:
        topology: of the job.
        placement: of its operators, in blocks whose edges lead onward.
    """
    place, edges = block_of(tuple(block.operators for block in placement.blocks)), list(edges_of(topology))
    found = []
    for number, block in enumerate(placement.blocks):
        reads = {
            edge.tail: topic_of(topology, edge.tail) for edge in edges
            if place.get(edge.head) == number != place.get(edge.tail)
        }  # fmt: skip
        writes = {
            edge.tail: topic_of(topology, edge.tail) for edge in edges
            if place.get(edge.tail) == number != place.get(edge.head)
        }  # fmt: skip
        name = f"{topology.name}.{block.operators[0]}"
        found.append(BlockApplication(name, block.cluster, block.executors, block.operators, reads, writes))
    return tuple(found)


def reads_of(topology: Topology, placement: Placement) -> list[list[str]]:
    """Return, of each query of a placement, the sources and operators elsewhere whose records it takes."""
    return [list(block.reads) for block in applications_of(topology, placement)]


def record_work(stated: Topology, planned: Topology, placement: Placement) -> dict[str, KnownWork]:
    """Return the work of a record of each query by the model, by the query's first operator.

    A query that nothing reaches is left out: nothing tells.

    Args:
        stated: the topology as it is stated.
        planned: the same as it was measured, the work of a query's operators stretched alike (`as_measured`).
        placement: of its operators.
    """
    measure, blocks = Measure(planned, rates_of(planned)), tuple(block.operators for block in placement.blocks)
    loads, found = measure.wiring(blocks).loads, dict[str, KnownWork]()
    for number, (first, *_) in enumerate(blocks):
        if loads[number] > 0:
            stretch = planned.operators[first].work_ms / stated.operators[first].work_ms
            found[first] = KnownWork(1 / measure.service_rps(blocks, number, 1), stretch)
    return found


def able_rps(topology: Topology, placement: Placement, number: int, cores: int, work: Mapping[str, KnownWork]) -> float:
    """Return how many of the records that a query reads so many cores can work on in a second.

    Args:
        topology: of the job.
        placement: of its operators.
        number: of the query.
        cores: of its executors.
        work: of each query by the plan that was applied last (`record_work`): of one that is not among them a record
            takes what is stated.
    """
    blocks = tuple(block.operators for block in placement.blocks)
    if known := work.get(blocks[number][0]):
        return cores / known.record_s
    measure = Measure(topology, rates_of(topology))
    if measure.wiring(blocks).loads[number] <= 0:  # its sources are stated without records, and send as many each
        sources = {name: one.model_copy(update={"rps": 1.0}) for name, one in topology.sources.items()}
        even = topology.model_copy(update={"sources": sources})
        measure = Measure(even, rates_of(even))
    return measure.service_rps(blocks, number, cores)


def batch_limits(
    topology: Topology, placement: Placement, block: BlockApplication, executors: int, work: Mapping[str, KnownWork]
) -> dict[str, int]:
    """Return how many offsets of each topic that a block reads a micro-batch may take, so that it can be worked on.

    Spark bounds each source by itself: of what the executors can work on each has the share that it is stated to send,
    and one that is stated to send nothing an equal part.

    Args:
        topology: of the job.
        placement: of its operators.
        block: the block, one of these.
        executors: by whose work a full batch is measured.
        work: as of `able_rps`.
    """
    number = [one.operators for one in placement.blocks].index(block.operators)
    cores, rates = executors * topology.clusters[block.cluster].executor_cores, rates_of(topology)
    rps = able_rps(topology, placement, number, cores, work)
    offered_rps = sum(rates.sent[name] for name in block.reads)
    limits = {}
    for name, topic in block.reads.items():
        share = rates.sent[name] / offered_rps if rates.sent[name] else 1 / len(block.reads)
        marks = topology.partitions  # of transactions: they take an offset each, and are no records
        limits[topic] = math.ceil(CATCH_UP * (topology.trigger_s * rps * share + marks))
    return limits
