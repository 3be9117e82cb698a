"""What queries of a placed job were measured to come to, beside what the model says."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from configs.topology import Topology
from models.placement.batches import BatchSample, records_quantile, slope_s, whole_s
from models.placement.known_work import KnownWork
from models.placement.plan.applications import able_rps
from models.placement.plan.blocks import block_of
from models.placement.plan.measured import CATCH_UP, Block, Placement
from models.placement.rates import edges_of, rates_of
from models.policy.core.backlog import backlog
from models.policy.rules.elasticity import CATCH_UP_S

LEAST_S = 60.0
"""Seconds of arrivals, at least, after which a query that did fewer than two batches has had the time for them; and of
batches that tell what a record takes with its share of what each takes: the first ones load classes."""
FULL = 0.5
"""Share of the records that a batch may have, from which on it counts as full: Spark bounds each source by itself."""
WAITS_MOST = 0.5
"""Of what comes or is read, that what waits counts for at most: a plan stands for a day, a backlog for minutes."""


class ArrivedInterval(NamedTuple):
    """What came to a query in some seconds, as its agent saw it at the broker.

    Attributes:
        wall_time: when they ended, epoch seconds.
        span_s: how many they were.
        arrival_rps: records/s that were sent to what it reads.
        lag_records: that waited at their end; None: not known.
    """

    wall_time: float
    span_s: float
    arrival_rps: float
    lag_records: int | None


class ObservedBlock(NamedTuple):
    """A query as the model has it and as it was measured; None where nothing was.

    Attributes:
        block: with what the model says.
        said_rps: records/s that it reads, by the model.
        rps: that it was measured to read.
        cores: that its tasks kept busy, waiting included.
        latency_s: the topology's quantile of its records' latency.
        batches: that were measured.
        record_s: core-seconds of a record beyond what every batch takes; None where the batches differ too little.
        sent_rps: records/s of each source and operator elsewhere that it reads, and of each of its own operators, as
            counted inside the query; None where nothing was.
        come_rps: that come, with what waits (`arriving_rps`); None where it reads other queries', nobody has told, or
            nothing comes and no rate of its own was measured.
        arrival_rps: that come, without what waits; None as `come_rps`.
        whole_s: core-seconds of a record with its share of what every batch takes; None where nothing tells.
        full: whether its batches have about as many records as they may: it cannot keep up, or works off what waits.
    """

    block: Block
    said_rps: float
    rps: float | None
    cores: float | None
    latency_s: float | None
    batches: int
    record_s: float | None = None
    sent_rps: Mapping[str, float] | None = None
    come_rps: float | None = None
    arrival_rps: float | None = None
    whole_s: float | None = None
    full: bool = False

    @property
    def offered_rps(self) -> float | None:
        """Records/s that it is to work on: those that come, or that it reads where that is all that is known."""
        return self.rps if self.come_rps is None else self.come_rps

    def work_s(self, known_s: float) -> float:
        """Return the core-seconds of a record, by what its batches tell.

        Where these are too alike to tell it apart from what every batch takes, it is that together. Of a full batch a
        record's share of what every batch takes is small; of others it may be most, so that what less is known stands.

        Args:
            known_s: as it was planned so far, or as stated.
        """
        if self.record_s is not None:
            return self.record_s
        if self.whole_s is None:
            return known_s
        return self.whole_s if self.full else min(self.whole_s, known_s)


def observe_block(
    topology: Topology, placement: Placement, number: int, batches: Sequence[BatchSample], factor: float = 1.0,
    arrived: Sequence[ArrivedInterval] = (), work: Mapping[str, KnownWork] | None = None,
) -> ObservedBlock:  # fmt: skip
    """Return a query beside what its batches have told.

    Args:
        topology: of the job.
        placement: of its operators.
        number: of the query.
        batches: of it, in order, up to the last that had records: one without, by which Spark closes windows, ends no
            time in which some came. Of fewer than two it is known at most what comes, as where it hangs.
        factor: of the sources' rates, for the model's side.
        arrived: what came to it in the same seconds, in order: it counts where it reads sources alone.
        work: as of `able_rps`: it bounds its batches.
    """
    rates, place = rates_of(topology, factor), block_of(tuple(block.operators for block in placement.blocks))
    tails = {edge.tail for edge in edges_of(topology) if place.get(edge.head) == number != place.get(edge.tail)}
    arrived = arrived if tails <= topology.sources.keys() else ()
    said, block = sum(rates.sent[name] for name in tails), placement.blocks[number]
    batches = batches[: max((at for at, one in enumerate(batches, 1) if one.batch_rows), default=0)]
    if len(batches) < 2 or batches[-1].wall_time <= batches[0].wall_time:
        if sum(one.span_s for one in arrived) < max(LEAST_S, 3 * topology.trigger_s):
            arrived = ()  # it had no time for two batches, as one that has just begun or has ended
        come_rps = arriving_rps(arrived, topology.trigger_s, 0.0) or None  # where nothing comes it rests
        arrival_rps = mean_rps(arrived) or None
        return ObservedBlock(block, said, None, None, None, len(batches), come_rps=come_rps, arrival_rps=arrival_rps)
    span_s, since = batches[-1].wall_time - batches[0].wall_time, batches[1:]
    rps = sum(one.batch_rows or 0 for one in since) / span_s
    run_s = [one.run_s for one in since if one.run_s is not None]  # of others Spark has dropped the stages: as these
    cores = sum(run_s) * len(since) / len(run_s) / span_s if run_s else None
    return ObservedBlock(
        block, said, rps, cores, records_quantile(since, topology.quantile), len(since),
        slope_s(since), _counted_rps(since, tails, block.operators, rps),
        arriving_rps(arrived, topology.trigger_s, rps), mean_rps(arrived),
        whole_s(since) if span_s >= max(LEAST_S, 3 * topology.trigger_s) else None,
        _are_full(topology, placement, number, since, work or {}),
    )  # fmt: skip


def _are_full(
    topology: Topology, placement: Placement, number: int, batches: Sequence[BatchSample], work: Mapping[str, KnownWork]
) -> bool:
    """Whether a query's batches have about as many records as keep its executors busy for as long as they may be."""
    block, rows = placement.blocks[number], [one.batch_rows for one in batches if one.batch_rows]
    there = topology.clusters.get(block.cluster)  # it may have gone since
    if there is None or not rows:
        return False
    rps = able_rps(topology, placement, number, block.executors * there.executor_cores, work)
    return sum(rows) / len(rows) >= FULL * CATCH_UP * topology.trigger_s * rps


def arriving_rps(arrived: Sequence[ArrivedInterval], trigger_s: float, read_rps: float) -> float | None:
    """Return the records/s that come to a query, with what waits: worked off in CATCH_UP_S, or CATCH_UP triggers.

    What waits counts for WAITS_MOST of what comes, or is read, at most. None where nobody has told.

    Args:
        arrived: intervals in order.
        trigger_s: from trigger to trigger: what comes meanwhile does not wait.
        read_rps: records/s that it reads: at most what it is able to, and some of it had waited; 0: not known.
    """
    rps = mean_rps(arrived)
    if rps is None:
        return None
    lag = next((one.lag_records for one in reversed(arrived) if one.lag_records is not None), 0)
    waits_rps = float(backlog(rps, lag, trigger_s)) / max(CATCH_UP_S, CATCH_UP * trigger_s)
    return rps + min(waits_rps, WAITS_MOST * max(rps, read_rps))


def mean_rps(arrived: Sequence[ArrivedInterval]) -> float | None:
    """Return the records/s that come in some intervals; None where there are none."""
    span_s = sum(one.span_s for one in arrived)
    return sum(one.arrival_rps * one.span_s for one in arrived) / span_s if span_s > 0 else None


def _counted_rps(
    batches: Sequence[BatchSample], read: Collection[str], operators: Sequence[str], rps: float
) -> dict[str, float] | None:  # fmt: skip
    """Records/s of what is read, and of each operator, by the batches that count them: an older release's do not."""
    names = [*read, *operators]
    told = [one.operator_rows for one in batches if one.operator_rows and one.operator_rows.keys() >= {*names}]
    rows = {name: sum(each[name] for each in told) for name in names}
    taken = sum(rows[name] for name in read)
    return {name: rps * many / taken for name, many in rows.items()} if taken else None


def slowest_path_s(topology: Topology, placement: Placement, observed: Sequence[ObservedBlock]) -> float | None:
    """Return the latency along the slowest path: the sum of its queries' as measured; None where one was not.

    The way to the broker is in what was measured: a record's latency begins when its producer stamped it.

    Args:
        topology: of the job.
        placement: of its operators.
        observed: each query, in the placement's order.
    """
    if any(one.latency_s is None for one in observed):
        return None
    place, until = block_of(tuple(block.operators for block in placement.blocks)), [0.0] * len(observed)
    links = {(place.get(edge.tail), place.get(edge.head)) for edge in edges_of(topology)}
    for number, one in enumerate(observed):
        before = [until[tail] for tail, head in links if head == number and tail not in (number, None)]
        until[number] = (one.latency_s or 0.0) + max(before, default=0.0)
    return max(until)
