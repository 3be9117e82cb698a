"""A job on nodes through time: queues of instances and of network interfaces, cores that are shared, nodes that leave.

Steps of a fraction of a second; what leaves a queue in one step reaches the next queue in the next one, so records are
neither lost nor doubled. Latencies are those that a record would meet that comes now; in equilibrium they are those of
a network of M/M/c queues (Jackson 1963), to which the ways between nodes are added.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from models.placement.allocation.nodes import Nodes
from models.placement.graph import Floats, Integers
from models.placement.instances.job import CORES, Counts, ParallelJob
from models.placement.instances.latency import distances_ms
from models.placement.twin.instances import add_busy, serve_operators
from models.placement.twin.interfaces import send_records
from models.placement.twin.nodes_shared import send_on, share_cores, shares_of
from models.placement.twin.path_latency import latencies_s
from models.placement.twin.places import places_of
from models.placement.twin.station import STEP_S

SMOOTH = 0.05
"""Share by which sources that may have so many records under way follow the latency in a step, so that they settle."""
LEAST_BITS = 1.0


class Streams(NamedTuple):
    """Edges of a job as arrays: (E,) each."""

    tail: Integers
    head: Integers
    factor: Floats
    bits: Floats


class JobOnNodes(NamedTuple):
    """A job of m operators on n nodes: what stays as it is while they are followed.

    Attributes:
        arrivals: (m,) records/s that reach each operator from outside.
        service_s: (m,) core-seconds of a record.
        counts: (m, n) instances.
        order: (m,) the operators, topologically.
        last: (m,) whether an operator sends its records to no other.
        cores: (n,) that the job may have.
        bandwidth: (n,) bits/s of the interfaces.
        way_s: (n, n) from node to node.
        pooled, pending: of the job.
        every: steps of a report interval.
    """

    arrivals: Floats
    service_s: Floats
    counts: Counts
    order: Integers
    last: NDArray[np.bool_]
    cores: Floats
    bandwidth: Floats
    way_s: Floats
    pooled: bool
    pending: float
    every: int


class TwinState(NamedTuple):
    """Where records are, and how busy instances are: all that is carried from step to step.

    Attributes:
        at: (m, n) records at the instances of each operator on each node.
        leaving: (E, n) of each stream on the interface of the node that they leave.
        coming: (E, n) on that of the node to which they go.
        served: (m, n) records/s that left the instances in the last step.
        sent: (E, n, n) records/s that left one node for another in it, and came out of the first one's interface.
        came: (m, n) records/s that came out of interfaces, or of instances on the same node, in it.
        busy: (m, n) share of the time that an instance is busy.
        speed: (m, n) of an instance that shares its node's cores, as a share of full speed.
        latency_s: (1,) mean of the records, in the last step.
        bound: (1,) multiple of the sources' rate that `pending` lets in.
    """

    at: Floats
    leaving: Floats
    coming: Floats
    served: Floats
    sent: Floats
    came: Floats
    busy: Floats
    speed: Floats
    latency_s: Floats
    bound: Floats


class Course(NamedTuple):
    """What a stretch of time came to, by report interval (k of them).

    Attributes:
        latency_ms: (k,) mean of the records.
        worst_ms: (k,) of the slowest path.
        throughput_rps: (k,) records/s that left the job's last operators.
        load: (k, m) core-time that arrivals and those that waited before ask of each operator, over what it has.
        busy: (k, n) share of each node's cores.
    """

    latency_ms: Floats
    worst_ms: Floats
    throughput_rps: Floats
    load: Floats
    busy: Floats


def empty_state(job: ParallelJob, nodes: Nodes) -> TwinState:
    """Return the state in which no record is anywhere."""
    m, n, e = job.operators, nodes.count, len(job.edges)
    at, stream = np.zeros((m, n)), np.zeros((e, n))
    return TwinState(
        at, stream, stream.copy(), at.copy(), np.zeros((e, n, n)), at.copy(), at.copy(), np.ones((m, n)), np.zeros(1),
        np.zeros(1),
    )  # fmt: skip


def move_instances(state: TwinState, counts: Counts) -> TwinState:
    """Return the state after instances came or went: what waits for an operator waits at its instances alike.

    What is on its way goes where it was sent, and on from there if no instance is left.
    """
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    at, came = (part.sum(axis=1, keepdims=True) * share for part in (state.at, state.came))
    return state._replace(at=at, came=came)


def follow_job(
    job: ParallelJob, nodes: Nodes, counts: Counts, state: TwinState, scale: Floats, report_s: float = 10.0,
    alive: Floats | None = None,
) -> tuple[TwinState, Course]:  # fmt: skip
    """Follow a job for some steps of STEP_S.

    Args:
        job: of m operators. Where as many records are under way as may be, its sources slow down: what they do not send
            is not caught up with.
        nodes: n of them.
        counts: (m, n) instances, at least one of each operator.
        state: at first; not changed.
        scale: (steps,) arrivals of each step, as multiples of the job's.
        report_s: length of the intervals of the answer; a last one that is not whole is followed, and not reported.
        alive: (steps, n) 1 where a node works, 0 where it is away: what waits there waits on, also on its interface,
            new records go to instances on other nodes; None: all work.

    Returns:
        The state at the end, and what the intervals came to. While a path has no living instance its latency is
        infinite; records that do not get through count in no mean.
    """
    streams = Streams(
        np.array([one.tail for one in job.edges], np.int64), np.array([one.head for one in job.edges], np.int64),
        np.array([one.factor for one in job.edges], float),
        np.array([max(one.bytes * 8, LEAST_BITS) for one in job.edges], float),
    )  # fmt: skip
    works = np.ones((len(scale), nodes.count)) if alive is None else np.asarray(alive, float)
    after = TwinState(*(part.copy() for part in state))
    every = max(round(report_s / STEP_S), 1)
    arrivals, service_s = (np.asarray(part, float) for part in (job.arrivals_rps, job.service_s))
    # Of whole numbers, or of counts that lie column by column, the compiled function would be another one, and
    # compiling it takes a minute on busy cores.
    placed = JobOnNodes(
        arrivals, service_s, np.ascontiguousarray(counts), np.array(job.order, np.int64),
        ~np.isin(np.arange(job.operators), streams.tail),
        nodes.capacity[:, CORES] - nodes.used[:, CORES], nodes.bandwidth_mbps * 1e6, distances_ms(nodes) / 1000,
        job.pooled, float(job.pending), every,
    )  # fmt: skip
    kept = len(scale) // every
    course = Course(*(np.zeros((kept + 1, *wide)) for wide in ((), (), (), (job.operators,), (nodes.count,))))
    _follow(streams, places_of(streams, after, counts), placed, after, np.asarray(scale, float), works, course)
    whole = Course(*(part[:kept] for part in course))
    return after, whole._replace(latency_ms=whole.latency_ms * 1000, worst_ms=whole.worst_ms * 1000)


@numba.njit(cache=True)
def _follow(streams: Any, places: Any, job: Any, state: Any, scale: Any, works: Any, course: Any) -> None:
    """All steps: the state is changed, and the course filled, its latencies in seconds; its last interval is not whole.

    Args:
        streams: of the job.
        places: of its instances.
        job: a `JobOnNodes`.
        state: at first.
        scale: (steps,) arrivals of each step.
        works: (steps, n) 1 where a node works.
        course: zeros.
    """
    counts, every = job.counts, job.every
    m, n = state.at.shape
    stay_s, out_s, in_s = np.zeros((m, n)), np.zeros(n), np.zeros(n)
    state.served[:] = np.where(counts > 0, state.served, 0.0)
    state.busy[:] = np.where(counts > 0, state.busy, 0.0)
    for step in range(len(scale)):
        period, alive = step // every, works[step]
        share = shares_of(counts, alive)
        share_cores(places, counts, state.busy, job.cores, alive, state.speed)
        send_on(counts, share, state.at, state.came)
        before = state.at.sum(axis=1) if step % every == 0 else np.zeros(m)
        let_in = _let_in(job, state, scale[step])
        serve_operators(places, job, state, share, let_in, before, stay_s, course.load[period])
        for own in range(m):
            if job.last[own]:
                course.throughput_rps[period] += state.served[own].sum() / every
        add_busy(places, job, state, course.busy[period])
        send_records(streams, places, state, share, job.bandwidth, alive, out_s, in_s)
        mean, slowest = latencies_s(streams, places, job, share, stay_s, out_s, in_s, state.served)
        if np.isfinite(mean):
            state.latency_s[0] = mean
        course.latency_ms[period] += mean / every
        course.worst_ms[period] += slowest / every


@numba.njit(cache=True)
def _let_in(job: Any, state: Any, scale: float) -> float:
    """Multiple of the job's arrivals that its sources let in, where only so many records may be under way."""
    if job.pending == np.inf:
        return scale
    offered = max(job.arrivals.sum(), 1e-12)
    if state.latency_s[0] > 0.0:
        state.bound[0] += SMOOTH * (job.pending / (state.latency_s[0] * offered) - state.bound[0])
        return min(scale, state.bound[0])
    return min(scale, 1.0 / offered)  # the first records tell how long they are under way
