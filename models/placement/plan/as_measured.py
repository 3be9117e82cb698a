"""A topology with the rates and the work that its running queries were measured to have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from configs.topology import MOST_SELECTIVITY, Topology
from models.placement.known_work import KnownWork
from models.placement.plan.blocks import Blocks, block_of
from models.placement.plan.measured import Measure, Placement
from models.placement.plan.observed import ObservedBlock
from models.placement.plan.wiring import runs_of
from models.placement.rates import cores_of, edges_of, rates_of

LATE = 2.0
"""Multiple of its planned latency beyond which a query is taken to be behind: it reads less than what reaches it."""
LEAST_WORK = 0.01
"""Share of the stated work that is left at least: work is above 0."""


def as_measured(
    topology: Topology, placement: Placement, observed: Sequence[ObservedBlock], trips_ms: Mapping[str, float],
    sizes: Mapping[str, float], work: Mapping[str, KnownWork],
) -> Topology:  # fmt: skip
    """Return a topology as its queries were measured; what was not measured stays as it is stated.

    Operators make as many records of one as were counted inside their queries. Sources have the records/s that come, as
    the queries tell that take only theirs; the operators whose records a later query takes make as many of one as it
    reads, more where it is behind. The work of a query's operators is stretched alike, so that a record that it reads
    takes what its batches told: what one operator takes of that nobody measures, it has its share by the stated work at
    the measured rates. A round trip between a cluster and the broker's is what it takes from there beyond what it takes
    within the broker's own.

    Args:
        topology: of the job.
        placement: of its operators, upstream first.
        observed: each query, in the placement's order.
        trips_ms: from clusters to the broker and back, as probed.
        sizes: bytes of a record of sources and operators.
        work: of each query by the plan that was applied last (`record_work`).
    """
    blocks = tuple(block.operators for block in placement.blocks)
    topology, _ = _as_offered(topology, blocks, observed)
    rates, tails = rates_of(topology), _tails(topology, blocks)
    loads, cores = Measure(topology, rates).wiring(blocks).loads, cores_of(topology, rates)
    runs = runs_of(topology, blocks)
    more: dict[str, float] = {}
    for number, one in enumerate(observed):
        own = sum(runs[name] * cores[name] for name in blocks[number])
        if own > 0:
            taken_rps = sum(rates.sent[name] for name in tails[number])
            said_s, known = loads[number] / taken_rps, work.get(blocks[number][0])
            record_s = one.work_s(known.now_s(said_s, own / taken_rps) if known else said_s)
            if record_s != said_s:
                found = record_s * taken_rps - (loads[number] - own)  # beside what it reads and writes
                more |= dict.fromkeys(blocks[number], max(found / own, LEAST_WORK))
    operators = {
        name: own.model_copy(update={"work_ms": own.work_ms * more.get(name, 1.0), "bytes": sizes.get(name, own.bytes)})
        for name, own in topology.operators.items()
    }
    sources = {
        name: own.model_copy(update={"bytes": sizes.get(name, own.bytes)}) for name, own in topology.sources.items()
    }
    return _with_trips(topology, trips_ms).model_copy(update={"operators": operators, "sources": sources})


def offered_loads(topology: Topology, placement: Placement, observed: Sequence[ObservedBlock]) -> list[float]:
    """Return the share of its cores that each query's work takes at the rate that is offered: above 1 it falls behind.

    What a record takes is that of those that were read. A query that was not measured has 0.

    Args:
        topology: of the job.
        placement: of its operators, upstream first.
        observed: each query, in the placement's order.
    """
    _, shares = _as_offered(topology, tuple(block.operators for block in placement.blocks), observed)
    cores = [one.block.executors * topology.clusters[one.block.cluster].executor_cores for one in observed]
    return [
        (one.cores or 0.0) / (share or 1.0) / many for one, share, many in zip(observed, shares, cores, strict=True)
    ]


def _as_offered(
    topology: Topology, blocks: Blocks, observed: Sequence[ObservedBlock]
) -> tuple[Topology, list[float]]:  # fmt: skip
    """A topology with what comes, and what operators make of it; and the share that each query has read of its part.

    The share is above 1 while it works off what has waited, and 0 where it is not known: then nor is what it held back.
    """
    topology, known = _with_selectivities(topology, observed), set[str]()
    arrives, shares = dict.fromkeys(topology.sources, 1.0), list[float]()
    for block, taken, one in zip(blocks, _tails(topology, blocks), observed, strict=True):
        sent = rates_of(topology).sent
        unstated = taken <= topology.sources.keys() - known and not any(sent[name] for name in taken)
        if one.offered_rps and unstated:
            topology = _with_even_rates(topology, taken, one.offered_rps)
            sent = rates_of(topology).sent
        said = sum(sent[name] for name in taken)
        share = sum(sent[name] * arrives[name] for name in taken) / said if said else 1.0
        mixed = len({name in topology.sources for name in taken}) > 1
        if one.offered_rps is not None and share and said and not taken & known and not mixed:
            known |= taken
            factor = one.offered_rps / said / share
            if one.come_rps is None and _is_behind(one) and factor < 1.0:
                share, factor = share * factor, 1.0
            topology = _with_rates(topology, taken, factor)
        # else it was not measured, or a query before it has told
        if one.come_rps:
            share = (one.rps or 0.0) / one.come_rps
        arrives |= dict.fromkeys(block, share)
        shares.append(share)
    return topology, shares


def _tails(topology: Topology, blocks: Blocks) -> list[set[str]]:
    """Of each query the sources and the operators elsewhere whose records it takes."""
    place, edges = block_of(blocks), list(edges_of(topology))
    return [
        {edge.tail for edge in edges if place.get(edge.head) == number != place.get(edge.tail)}
        for number in range(len(blocks))
    ]


def _with_selectivities(topology: Topology, observed: Sequence[ObservedBlock]) -> Topology:
    """Operators that make as many records of one as was counted inside their queries."""
    operators = dict(topology.operators)
    for one in observed:
        for name, (taken_rps, sent_rps) in counted_of(topology, one).items():
            if taken_rps > 0:
                selectivity = min(sent_rps / taken_rps, MOST_SELECTIVITY)
                operators[name] = operators[name].model_copy(update={"selectivity": selectivity})
    return topology.model_copy(update={"operators": operators})


def _with_trips(topology: Topology, trips_ms: Mapping[str, float]) -> Topology:
    """Round trips to the broker's cluster as probed; the broker's own time for an answer is in all of them."""
    broker, clusters = topology.broker, dict(topology.clusters)
    answer_ms = trips_ms.get(broker, 0.0)
    for name in trips_ms.keys() & clusters.keys() - {broker}:
        own, there = ({**clusters[one].round_trip_ms} for one in (name, broker))
        own.pop(broker, None)
        there[name] = max(trips_ms[name] - answer_ms, 0.0)
        for one, trips in ((name, own), (broker, there)):
            clusters[one] = clusters[one].model_copy(update={"round_trip_ms": trips})
    return topology.model_copy(update={"clusters": clusters})


def _is_behind(one: ObservedBlock) -> bool:
    return one.latency_s is not None and one.latency_s > LATE * one.block.latency_s


def _with_even_rates(topology: Topology, names: set[str], rps: float) -> Topology:
    """Sources that are stated without records have what comes, in equal parts."""
    sources = {
        name: own.model_copy(update={"rps": rps / len(names)}) if name in names else own
        for name, own in topology.sources.items()
    }
    return topology.model_copy(update={"sources": sources})


def _with_rates(topology: Topology, names: set[str], factor: float) -> Topology:
    """So many times the records of some sources or operators."""
    sources = {
        name: own.model_copy(update={"rps": own.rps * factor}) if name in names else own
        for name, own in topology.sources.items()
    }
    operators = {
        name: own.model_copy(update={"selectivity": own.selectivity * factor}) if name in names else own
        for name, own in topology.operators.items()
    }
    return topology.model_copy(update={"sources": sources, "operators": operators})


def counted_of(topology: Topology, one: ObservedBlock) -> dict[str, tuple[float, float]]:
    """Return the records/s that each operator of a query takes and makes, as counted; empty where nothing was.

    Args:
        topology: of the job.
        one: the query, as measured.
    """
    sent = one.sent_rps
    if sent is None:
        return {}
    return {
        name: (sum(sent[other] for other in topology.operators[name].of), sent[name]) for name in one.block.operators
    }


def measured_factor(found: Sequence[ObservedBlock], sources: Sequence[str], reads: Sequence[Sequence[str]]) -> float:
    """Return by how much more comes than is stated, by the queries that read sources alone; 1 where none has told.

    Args:
        found: each query, as measured.
        sources: names.
        reads: of each query, the names of what it reads.
    """
    told = [
        (one.offered_rps, one.said_rps)
        for one, names in zip(found, reads, strict=True)
        if {*names} <= {*sources} and one.offered_rps is not None
    ]
    said = sum(said_rps for _, said_rps in told)
    return sum(offered_rps for offered_rps, _ in told) / said if said else 1.0
