"""Queries joined by topics: what each takes and reads, wherever it runs."""

from __future__ import annotations

from typing import NamedTuple

from configs.topology import Topology
from models.placement.plan.blocks import Blocks, block_of
from models.placement.rates import Rates, cores_of, edges_of, memory_of, operators_in_order


class Wiring(NamedTuple):
    """What of queries does not depend on where they are.

    Attributes:
        loads: cores that each keeps busy: its work, what it reads from topics and writes, inner edges.
        held: bytes of each.
        offered: records/s that each reads, over all of its edges.
        writers: queries whose topics each reads; -1: it reads from outside.
    """

    loads: list[float]
    held: list[float]
    offered: list[float]
    writers: list[list[int]]


def wire(topology: Topology, rates: Rates, blocks: Blocks) -> Wiring:
    """Return what queries come to before it is known where they are.

    A query that writes several topics runs what is before them once for each.

    Args:
        topology: of the job.
        rates: of its load.
        blocks: operators of each query.
    """
    place, work, hop = block_of(blocks), cores_of(topology, rates), topology.hop
    runs, written = runs_of(topology, blocks), set[str]()
    loads = [sum(runs[name] * work[name] for name in block) for block in blocks]
    offered, writers = [0.0] * len(blocks), [set[int]() for _ in blocks]
    for tail, head in edges_of(topology):
        rps, one, other = rates.sent[tail], place.get(tail), place.get(head)
        if one == other and one is not None:
            loads[one] += runs[head] * rps * hop.inline_ms / 1000
            continue
        if other is not None:
            loads[other] += runs[head] * rps * hop.read_ms / 1000
            offered[other] += rps
            writers[other].add(-1 if one is None else one)
        if one is not None and tail not in written:  # whoever else takes its records reads the same topic
            loads[one] += rps * hop.write_ms / 1000
            written.add(tail)
    held = [memory_of(topology, block) for block in blocks]
    return Wiring(loads, held, offered, [sorted(each) for each in writers])


def way_s(topology: Topology, one: str, other: str) -> float:
    """Return how long a record is on its way from one cluster to the broker and from there to another, seconds."""
    broker = topology.broker
    return (topology.round_trip_ms(one, broker) + topology.round_trip_ms(broker, other)) / 2000


def runs_of(topology: Topology, blocks: Blocks) -> dict[str, int]:
    """Return how often each operator is run in its query: once for each topic that is written of what it makes.

    Spark runs each branch of a query from its source on; nothing between them is kept.

    Args:
        topology: of the job.
        blocks: operators of each query.
    """
    place, edges = block_of(blocks), list(edges_of(topology))
    reached: dict[str, set[str]] = {}
    for name in reversed(operators_in_order(topology)):
        heads = [edge.head for edge in edges if edge.tail == name]
        own = {name} if any(place.get(head) != place[name] for head in heads) else set()
        reached[name] = own.union(*(reached[head] for head in heads if place.get(head) == place[name]))
    return {name: max(len(topics), 1) for name, topics in reached.items()}
