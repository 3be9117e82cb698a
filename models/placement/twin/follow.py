"""A job on nodes through time: queues of instances and of network interfaces, cores that are shared, nodes that leave.

Steps of a fraction of a second; what leaves a queue in one step reaches the next queue in the next one, so records are
neither lost nor doubled. Latencies are those that a record would meet that comes now; in equilibrium they are those of
a network of M/M/c queues (Jackson 1963), to which the ways between nodes are added.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

from models.placement.allocation.nodes import Nodes
from models.placement.graph import Floats, Integers
from models.placement.instances.job import CORES, Counts, ParallelJob
from models.placement.instances.latency import distances_ms
from models.placement.twin.interfaces import send_records
from models.placement.twin.nodes_shared import mean_speed, send_on, share_cores, shares_of
from models.placement.twin.path_latency import latencies_s
from models.placement.twin.places import places_of
from models.placement.twin.station import STEP_S, follow_queue, load_of, time_in_queue_s

SMOOTH = 0.05
"""Share by which sources that may have so many records under way follow the latency in a step, so that they settle."""
LEAST_BITS, LEAST_SPEED = 1.0, 1e-3


class Streams(NamedTuple):
    """Edges of a job as arrays: (E,) each."""

    tail: Integers
    head: Integers
    factor: Floats
    bits: Floats


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
    cores = nodes.capacity[:, CORES] - nodes.used[:, CORES]
    every = max(round(report_s / STEP_S), 1)
    arrivals, service_s = (np.asarray(part, float) for part in (job.arrivals_rps, job.service_s))
    # Of whole numbers the compiled function would be another one, and compiling it takes seconds.
    found = _follow(
        streams, places_of(streams, after, counts), arrivals, service_s, counts, cores,
        nodes.bandwidth_mbps * 1e6, distances_ms(nodes) / 1000, np.array(job.order, np.int64), job.pooled, job.pending,
        after, np.asarray(scale, float), works, every,
    )  # fmt: skip
    latency, worst, throughput, load, busy = (part[: len(scale) // every] for part in found)
    return after, Course(latency * 1000, worst * 1000, throughput, load, busy)


@numba.njit(cache=True)
def _follow(
    streams: Any, places: Any, arrivals: Any, service_s: Any, counts: Any, cores: Any, bandwidth: Any, way_s: Any,
    order: Any, pooled: bool, pending: float, state: Any, scale: Any, works: Any, every: int,
) -> Any:  # fmt: skip
    """All steps; the state is changed. Of the intervals the last one is not whole."""
    at = state.at
    m, n = at.shape
    kept = len(scale) // every + 1
    latency, worst, throughput = np.zeros(kept), np.zeros(kept), np.zeros(kept)
    load, node_busy = np.zeros((kept, m)), np.zeros((kept, n))
    last = np.ones(m, np.bool_)
    for edge in range(len(streams.tail)):
        last[streams.tail[edge]] = False
    offered = max(arrivals.sum(), 1e-12)
    stay_s, out_s, in_s = np.zeros((m, n)), np.zeros(n), np.zeros(n)
    state.served[:] = np.where(counts > 0, state.served, 0.0)
    state.busy[:] = np.where(counts > 0, state.busy, 0.0)
    for step in range(len(scale)):
        period, alive, let_in = step // every, works[step], scale[step]
        if pending < np.inf:
            if state.latency_s[0] > 0.0:
                state.bound[0] += SMOOTH * (pending / (state.latency_s[0] * offered) - state.bound[0])
                let_in = min(let_in, state.bound[0])
            else:
                let_in = min(let_in, 1.0 / offered)  # the first records tell how long they are under way
        share = shares_of(counts, alive)
        share_cores(places, counts, state.busy, cores, alive, state.speed)
        send_on(counts, share, at, state.came)
        came = state.came.copy()
        before = at.sum(axis=1) if step % every == 0 else np.zeros(m)
        for own in range(m):
            outside, asked = arrivals[own] * let_in, 0.0
            for node in places.host[places.first_host[own] : places.first_host[own + 1]]:
                rps = came[own, node] + outside * share[own, node]
                asked += rps
                state.served[own, node], stay_s[own, node], state.busy[own, node] = _serve(
                    at, own, node, counts[own, node], state.speed[own, node] / service_s[own], rps, pooled
                )
            own_s = service_s[own] / max(mean_speed(places, state.speed, share, own), LEAST_SPEED)
            load[period, own] += (asked * STEP_S + before[own]) * own_s / (counts[own].sum() * every * STEP_S)
            if last[own]:
                throughput[period] += state.served[own].sum() / every
        for node in range(n):
            used = 0.0
            for own in places.guest[places.first_guest[node] : places.first_guest[node + 1]]:
                used += counts[own, node] * state.busy[own, node] * state.speed[own, node]
            node_busy[period, node] += used / max(cores[node], 1e-9) / every
        send_records(streams, places, state, share, bandwidth, alive, out_s, in_s)
        mean, slowest = latencies_s(streams, places, order, last, share, stay_s, out_s, in_s, way_s, state.served)
        if np.isfinite(mean):
            state.latency_s[0] = mean
        latency[period] += mean / every
        worst[period] += slowest / every
    return latency, worst, throughput, load, node_busy


@numba.njit(cache=True)
def _serve(at: Any, own: int, node: int, many: int, service_rps: float, rps: float, pooled: bool) -> Any:
    """A step of an operator's instances on a node: records/s that left, seconds of one there, and how busy they are."""
    queues, servers = (1, many) if pooled else (many, 1)
    after, served = follow_queue(at[own, node] / queues, servers, service_rps, rps / queues, STEP_S)
    at[own, node] = after * queues
    return served * queues, time_in_queue_s(after, servers, service_rps), load_of(after, servers)
