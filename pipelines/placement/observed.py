"""A running job's queries by their agents' metrics, beside what its plan says."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from statistics import median
from typing import NamedTuple

from configs.settings import Settings
from configs.topology import Topology
from models.placement.learned.online import StepOutcome
from models.placement.plan.applications import applications_of, reads_of
from models.placement.plan.as_measured import measured_factor, offered_loads
from models.placement.plan.observed import ArrivedInterval, ObservedBlock, observe_block, slowest_path_s
from pipelines.html.numbers import number_of
from pipelines.kafka.broker import Follower
from pipelines.kafka.committed import read_committed
from pipelines.kafka.connection import BrokerError
from pipelines.placement.job_folder import JobFolder
from tidecast.messages import MessageError, MetricSample, decode

LAST_S, MINUTE_S, MOVE_S = 600.0, 60.0, 120.0
"""At least, seconds up to now by which a job's load is told, those of a step, and those after queries are wanted
elsewhere in which they move and catch up."""
KEPT = 12_000
"""Newest batches and intervals of a query that are looked at, or as many as its triggers, or seconds, make where that
is more."""
SIZED = 20
"""Newest offsets of each partition whose records are measured."""


class PlannedLoad(NamedTuple):
    """For what a running job is planned.

    Attributes:
        topology: of the job; with its queries as they were measured where no load is given.
        factor: of its rates.
        told: by how much more comes than is stated; None where no rate is.
        known: whether that was given, or anything was measured; else it is planned for the stated rates.
        observed: each query, as planned and as measured: not at all where a load was given.
        path_s: latency along the slowest path, as measured.
        backlog: whether what waits for its queries counts, where they were measured; else only what comes.
    """

    topology: Topology
    factor: float
    told: float | None
    known: bool = True
    observed: Sequence[ObservedBlock] = ()
    path_s: float | None = None
    backlog: bool = True


def span_of(topology: Topology) -> float:
    """Return the seconds up to now by which the load of a running job is told: ten minutes, or ten triggers."""
    return max(LAST_S, 10 * topology.trigger_s)


def span_in_words(topology: Topology) -> str:
    """Return `span_of` in words, as "10 minutes"."""
    return number_of(math.ceil(span_of(topology) / 60), "minute")


def planned_when(topology: Topology, measured: bool) -> str:
    """Return in a sentence, without its full stop, that a plan is made now, and by the load of which time.

    Args:
        topology: of the job.
        measured: whether that was measured, in the seconds up to now that `span_of` tells.
    """
    said = f"Planned on {datetime.fromtimestamp(time.time(), UTC):%-d %B %Y at %H:%M:%S} UTC"
    return f"{said}, for the load of the {span_in_words(topology)} before" if measured else said


def step_of(topology: Topology) -> float:
    """Return the seconds of a step: a minute, or three triggers, as a query that has done one batch is not measured."""
    return max(MINUTE_S, 3 * topology.trigger_s)


def steps_since_moved(folder: JobFolder, now_s: float) -> int:
    """Return how many whole steps there are since a job's queries were moved last and had caught up.

    Args:
        folder: of the job.
        now_s: epoch seconds.

    Raises:
        SettingsError: no job was begun there.
    """
    topology = folder.topology()
    move_s = max(MOVE_S, 2 * topology.trigger_s)
    return max(int((now_s - folder.wanted_since_s() - move_s) / step_of(topology)), 0)


def observe_job(
    settings: Settings, folder: JobFolder, last_s: float, factor: float = 1.0
) -> tuple[list[ObservedBlock], float | None]:
    """Return a job's queries, as planned and as measured, and the latency along its slowest path.

    Args:
        settings: with a broker.
        folder: of the job.
        last_s: seconds up to now that count.
        factor: of the stated rates, for the plan's side.

    Raises:
        SettingsError: no job was begun there.
        BrokerError: the broker does not answer.
    """
    topology, placement = folder.topology(), folder.wanted()
    seen, work = _seen(settings, folder, time.time() - last_s), folder.work()
    found = [
        observe_block(topology, placement, at, one.batches, factor, one.arrived, work) for at, one in enumerate(seen)
    ]
    return found, slowest_path_s(topology, placement, found)


class _Seen(NamedTuple):
    """What a query's agent has told, in order."""

    batches: Sequence[MetricSample]
    arrived: Sequence[ArrivedInterval]

    def within(self, low_s: float, high_s: float) -> _Seen:
        """Return what ended between two moments, epoch seconds.

        Of an interval the part after the first one counts: after an outage of the broker one spans it.
        """
        batches = [one for one in self.batches if low_s <= one.wall_time < high_s]
        arrived = [one for one in self.arrived if low_s <= one.wall_time < high_s]
        return _Seen(batches, [one._replace(span_s=min(one.span_s, one.wall_time - low_s)) for one in arrived])


class MeasuredMinute(NamedTuple):
    """What a job came to in a minute, or a step that is longer for its triggers (`step_of`).

    Its number, records/s that came from the sources, with what waited (`arriving_rps`), latency of the queries, and
    their load by these. Numbers count from the oldest one that was looked at; one is missing where a query was not
    measured. It begins at `begin_s`, epoch seconds.
    """

    number: int
    rps: float
    step: StepOutcome
    begin_s: float


def observe_minutes(settings: Settings, folder: JobFolder, minutes: int) -> list[MeasuredMinute]:
    """Return what a job came to in the last minutes in which all its queries were measured, the oldest first.

    Minutes before its queries were moved last, and in which they are, are left out.

    Args:
        settings: with a broker.
        folder: of the job.
        minutes: up to now, or steps that are longer.

    Raises:
        SettingsError: no job was begun there.
        BrokerError: the broker does not answer.
    """
    topology, placement, now = folder.topology(), folder.wanted(), time.time()
    reads, stated_rps = reads_of(topology, placement), sum(one.rps for one in topology.sources.values())
    step_s, whole = step_of(topology), min(minutes, steps_since_moved(folder, now))
    since = now - step_s * whole
    seen, found = _seen(settings, folder, since), list[MeasuredMinute]()
    for minute in range(whole):
        low, high = since + step_s * minute, since + step_s * (minute + 1)
        within = [one.within(low, high) for one in seen]
        blocks = [
            observe_block(topology, placement, at, one.batches, arrived=one.arrived) for at, one in enumerate(within)
        ]
        path_s = slowest_path_s(topology, placement, blocks)
        if path_s is not None and all(one.cores is not None for one in blocks):
            loads = offered_loads(topology, placement, blocks)
            rps = stated_rps * measured_factor(blocks, list(topology.sources), reads)
            found.append(MeasuredMinute(minute, rps, StepOutcome(path_s * 1000, sum(loads) / len(loads)), low))
    return found


def observe_trips(folder: JobFolder) -> dict[str, float]:
    """Return the round trip to the broker from each cluster on which queries have worked, ms: the median of theirs.

    Of each query the last epochs count that are kept: it may have left a cluster because the way was long.

    Raises:
        SettingsError: no job was begun there.
    """
    found: dict[str, list[float]] = {}
    for block in applications_of(folder.topology(), folder.wanted()):
        epoch, seen = folder.newest(block.name), set[str]()
        while epoch is not None:
            cluster, trip_s = epoch.block.cluster, epoch.round_trip_s()
            if trip_s is not None and cluster not in seen:
                seen.add(cluster)
                found.setdefault(cluster, []).append(1000 * trip_s)
            epoch = folder.before(epoch)
    return {cluster: median(each) for cluster, each in found.items()}


def observe_record_bytes(settings: Settings, folder: JobFolder) -> dict[str, float]:
    """Return the mean bytes of the newest records on each topic, by the source or operator whose they are.

    A topic that has none, is away, or is not told by the broker, is left out.

    Args:
        settings: with a broker.
        folder: of the job.

    Raises:
        SettingsError: no job was begun there.
    """
    blocks, found = applications_of(folder.topology(), folder.wanted()), dict[str, float]()
    topics = {name: topic for block in blocks for name, topic in [*block.reads.items(), *block.writes.items()]}
    for name, topic in topics.items():
        with suppress(BrokerError):  # what else is measured is told without it
            newest = read_committed(settings.kafka, topic, SIZED)
            if sizes := [len(one.key or b"") + len(one.value or b"") for one in newest]:
                found[name] = sum(sizes) / len(sizes)
    return found


def _seen(settings: Settings, folder: JobFolder, since_s: float) -> list[_Seen]:
    """What each query's agent has told since a moment."""
    topology, last_s = folder.topology(), time.time() - since_s
    names = [block.name for block in applications_of(topology, folder.wanted())]
    batches = {name: deque[MetricSample](maxlen=max(KEPT, math.ceil(last_s / topology.trigger_s))) for name in names}
    arrived = {name: deque[ArrivedInterval](maxlen=max(KEPT, math.ceil(last_s))) for name in names}  # one a second
    with closing(Follower(settings.kafka, ["metrics"])) as follower:
        follower.seek_to_time(max(since_s, 0.0))  # a batch is sent when it has ended
        for record in follower.read_until(follower.ends()):
            if record.key not in batches:  # many other jobs may send
                continue
            with suppress(MessageError):  # of another program, or another release
                said = decode(MetricSample, record.value)
                if said.job != record.key or said.wall_time < since_s:
                    continue
                if said.kind == "batch":
                    batches[said.job].append(said)
                elif said.arrival_rps is not None and said.executors is not None:  # else it is history that was sent
                    span_s, lag = said.span_s / said.time_scale, said.lag_records
                    arrived[said.job].append(ArrivedInterval(said.wall_time, span_s, said.arrival_rps, lag))
    return [_Seen(list(batches[name]), list(arrived[name])).within(since_s, math.inf) for name in names]
