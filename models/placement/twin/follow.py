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
from models.placement.twin.nodes_shared import slowdown
from models.placement.twin.station import follow_queue, load_of, time_in_queue_s

STEP_S = 0.25


class Streams(NamedTuple):
    """Edges of a job as arrays: (E,) each."""

    tail: Integers
    head: Integers
    factor: Floats
    bits: Floats


class Queued(NamedTuple):
    """Records that are somewhere.

    Attributes:
        at: (m, n) at the instances of each operator on each node.
        leaving: (E, n) of each stream on the interface of the node that they leave.
        coming: (E, n) on that of the node to which they go.
        served: (m, n) records/s that left the instances in the last step.
        sent: (E, n, n) records/s that left one node for another in it, and came out of the first one's interface.
        came: (m, n) records/s that came out of interfaces, or of instances on the same node, in it.
    """

    at: Floats
    leaving: Floats
    coming: Floats
    served: Floats
    sent: Floats
    came: Floats


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


def nothing_queued(job: ParallelJob, nodes: Nodes) -> Queued:
    """Return the state in which no record is anywhere."""
    m, n, e = job.operators, nodes.count, len(job.edges)
    return Queued(*(np.zeros(size) for size in ((m, n), (e, n), (e, n), (m, n), (e, n, n), (m, n))))


def move_instances(queued: Queued, counts: Counts) -> Queued:
    """Return the state after instances came or went: what waits for an operator waits at its instances alike."""
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return queued._replace(at=queued.at.sum(axis=1, keepdims=True) * share)


def follow_job(
    job: ParallelJob, nodes: Nodes, counts: Counts, queued: Queued, scale: Floats, report_s: float = 10.0,
    alive: Floats | None = None,
) -> tuple[Queued, Course]:  # fmt: skip
    """Follow a job for some steps of STEP_S.

    Args:
        job: of m operators.
        nodes: n of them.
        counts: (m, n) instances, at least one of each operator.
        queued: what is where at first; not changed.
        scale: (steps,) arrivals of each step, as multiples of the job's.
        report_s: length of the intervals of the answer; a last one that is not whole is left out.
        alive: (steps, n) 1 where a node works, 0 where it is away: what waits there waits on, new records go to
            instances on other nodes; None: all work.

    Returns:
        The state at the end, and what the intervals came to.
    """
    streams = Streams(
        np.array([one.tail for one in job.edges], np.int64), np.array([one.head for one in job.edges], np.int64),
        np.array([one.factor for one in job.edges], float), np.array([one.bytes * 8 for one in job.edges], float),
    )  # fmt: skip
    steps = len(scale)
    works = np.ones((steps, nodes.count)) if alive is None else np.asarray(alive, float)
    state = Queued(*(part.copy() for part in queued))
    cores = nodes.capacity[:, CORES] - nodes.used[:, CORES]
    every = max(round(report_s / STEP_S), 1)
    found = _follow(
        streams, job.arrivals_rps, job.service_s, counts, cores, nodes.bandwidth_mbps * 1e6, distances_ms(nodes) / 1000,
        np.array(job.order, np.int64), job.pooled, state, np.asarray(scale, float), works, every,
    )  # fmt: skip
    latency, worst, throughput, load, busy = found
    return state, Course(latency * 1000, worst * 1000, throughput, load, busy)


@numba.njit(cache=True)
def _follow(
    streams: Any, arrivals: Any, service_s: Any, counts: Any, cores: Any, bandwidth: Any, way_s: Any, order: Any,
    pooled: bool, state: Any, scale: Any, works: Any, every: int,
) -> Any:  # fmt: skip
    """All steps; the state is changed."""
    at = state.at
    m, n = at.shape
    kept = len(scale) // every
    latency, worst, throughput = np.zeros(kept), np.zeros(kept), np.zeros(kept)
    load, node_busy = np.zeros((kept, m)), np.zeros((kept, n))
    last = np.ones(m, np.bool_)
    for edge in range(len(streams.tail)):
        last[streams.tail[edge]] = False
    stay_s, out_s, in_s, speed, busy = np.zeros((m, n)), np.zeros(n), np.zeros(n), np.ones((m, n)), np.zeros((m, n))
    for step in range(kept * every):
        period, alive = step // every, works[step]
        share = _shares(counts, alive)
        _share_cores(counts, busy, cores, alive, speed)
        came = state.came.copy()
        before = at.sum(axis=1) if step % every == 0 else np.zeros(m)
        for own in range(m):
            outside, asked = arrivals[own] * scale[step], 0.0
            for node in range(n):
                rps = came[own, node] + outside * share[own, node]
                asked += rps
                state.served[own, node], stay_s[own, node], busy[own, node] = _serve(
                    at, own, node, counts[own, node], speed[own, node] / service_s[own], rps, pooled
                )
            own_s, many = service_s[own] / max(_mean_speed(speed, share, own), 1e-9), counts[own].sum()
            load[period, own] += (asked * STEP_S + before[own]) * own_s / (many * every * STEP_S)
            if last[own]:
                throughput[period] += state.served[own].sum() / every
        for node in range(n):
            used = 0.0
            for own in range(m):
                used += counts[own, node] * busy[own, node] * speed[own, node]
            node_busy[period, node] += used / max(cores[node], 1e-9) / every
        _send(streams, state, share, bandwidth, alive, out_s, in_s)
        mean, slowest = _latencies(streams, order, last, share, stay_s, out_s, in_s, way_s, state.served)
        latency[period] += mean / every
        worst[period] += slowest / every
    return latency, worst, throughput, load, node_busy


@numba.njit(cache=True)
def _shares(counts: Any, alive: Any) -> Any:
    """(m, n) share of an operator's records that goes to each node: by living instances, of none by all."""
    m, n = counts.shape
    share = np.zeros((m, n))
    for own in range(m):
        living = 0.0
        for node in range(n):
            living += counts[own, node] * alive[node]
        for node in range(n):
            one = counts[own, node] * alive[node] if living > 0 else float(counts[own, node])
            share[own, node] = one / (living if living > 0 else counts[own].sum())
    return share


@numba.njit(cache=True)
def _share_cores(counts: Any, busy: Any, cores: Any, alive: Any, speed: Any) -> None:
    """Speeds of instances, from how busy they were in the step before; halfway, so that they settle."""
    for node in range(counts.shape[1]):
        for own in range(counts.shape[0]):
            if counts[own, node] > 0:
                now = 1.0 / slowdown(counts[:, node], busy[:, node], max(cores[node], 1e-9), own)
                speed[own, node] = 0.0 if alive[node] == 0.0 else (max(speed[own, node], 1e-6) + now) / 2


@numba.njit(cache=True)
def _mean_speed(speed: Any, share: Any, own: int) -> float:
    total = 0.0
    for node in range(speed.shape[1]):
        total += speed[own, node] * share[own, node]
    return total


@numba.njit(cache=True)
def _serve(at: Any, own: int, node: int, many: int, service_rps: float, rps: float, pooled: bool) -> Any:
    """A step of an operator's instances on a node: records/s that left, seconds of one there, and how busy they are."""
    if many == 0:
        at[own, node] += rps * STEP_S
        return 0.0, 0.0, 0.0
    queues, servers = (1, many) if pooled else (many, 1)
    after, served = follow_queue(at[own, node] / queues, servers, service_rps, rps / queues, STEP_S)
    at[own, node] = after * queues
    return served * queues, time_in_queue_s(after, servers, service_rps), load_of(after, servers)


@numba.njit(cache=True)
def _send(streams: Any, state: Any, share: Any, bandwidth: Any, alive: Any, out_s: Any, in_s: Any) -> None:
    """A step of the interfaces: what instances made goes out, what went out in the step before comes in."""
    e, n = state.leaving.shape
    made = np.zeros((e, n, n))
    state.came[:] = 0.0
    for edge in range(e):
        for node in range(n):
            rps = streams.factor[edge] * state.served[streams.tail[edge], node]
            for to in range(n):
                made[edge, node, to] = rps * share[streams.head[edge], to]
            state.came[streams.head[edge], node] += made[edge, node, node]
            made[edge, node, node] = 0.0
    arriving = np.zeros((e, n))
    for edge in range(e):
        for to in range(n):
            for node in range(n):
                arriving[edge, to] += state.sent[edge, node, to]
    for node in range(n):
        offered = np.zeros(e)
        for edge in range(e):
            for to in range(n):
                offered[edge] += made[edge, node, to]
        passed, out_s[node] = _pass(state.leaving, node, offered, streams.bits, bandwidth[node])
        for edge in range(e):
            for to in range(n):
                went = share[streams.head[edge], to] if to != node else 0.0
                away = 1.0 - share[streams.head[edge], node]
                state.sent[edge, node, to] = passed[edge] * went / away if away > 1e-9 else 0.0
            if 1.0 - share[streams.head[edge], node] <= 1e-9:  # whom they were sent to has come here since
                state.came[streams.head[edge], node] += passed[edge]
        came, in_s[node] = _pass(state.coming, node, arriving[:, node], streams.bits, bandwidth[node])
        for edge in range(e):
            state.came[streams.head[edge], node] += came[edge]


@numba.njit(cache=True)
def _pass(queued: Any, node: int, offered: Any, bits: Any, bandwidth: float) -> Any:
    """A step of an interface, first come first served: (E,) records/s that pass, and seconds of a mean record in it."""
    there = queued[:, node] + offered * STEP_S
    total = there.sum()
    if np.isinf(bandwidth) or total <= 0.0:
        queued[:, node] = 0.0
        return there / STEP_S, 0.0
    service_rps = bandwidth * total / (there * bits).sum()
    after, _ = follow_queue(queued[:, node].sum(), 1, service_rps, offered.sum(), STEP_S)
    queued[:, node] = there * (after / total)
    return (there - queued[:, node]) / STEP_S, time_in_queue_s(after, 1, service_rps)


@numba.njit(cache=True)
def _latencies(
    streams: Any, order: Any, last: Any, share: Any, stay_s: Any, out_s: Any, in_s: Any, way_s: Any, served: Any
) -> Any:  # fmt: skip
    """Mean of the records and of the slowest path, seconds, for one that comes now."""
    m, n = stay_s.shape
    until, slowest, total, count = np.zeros(m), np.zeros(m), 0.0, 0.0
    weight = np.zeros(m)
    for own in order:
        here = 0.0
        for node in range(n):
            if share[own, node] > 0.0:
                here += share[own, node] * stay_s[own, node]
        slowest[own] += here
        own_mean = here + (until[own] / weight[own] if weight[own] > 0 else 0.0)
        rps = served[own].sum()
        if last[own]:
            total += own_mean * rps
            count += rps
        for edge in range(len(streams.tail)):
            if streams.tail[edge] != own:
                continue
            head, between = streams.head[edge], 0.0
            for node in range(n):
                for to in range(n):
                    part = share[own, node] * share[head, to]
                    between += part * (way_s[node, to] + (out_s[node] + in_s[to] if node != to else 0.0))
            flow = rps * streams.factor[edge] + 1e-12
            until[head] += flow * (own_mean + between)
            weight[head] += flow
            slowest[head] = max(slowest[head], slowest[own] + between)
    top = slowest[last].max()
    return (total / count if count > 0 else top), top
