"""A placement as applications: what each query reads, what it writes, and in which order they are started."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from configs.topology import Topology
from models.placement.plan.blocks import block_of
from models.placement.plan.measured import Placement
from models.placement.rates import edges_of


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
