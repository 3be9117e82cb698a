"""Mean latency of a job's records in equilibrium, where instances share the cores of their nodes.

What the twin of many operators (`follow`) comes to in the long run, at a thousandth of its time: the
network of queues of Jackson (1963), slowed where more instances are busy than a node has cores.
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

ROUNDS = 12
"""After which what instances are slowed, and how busy they are by that, have settled."""
FULL, BEHIND_MS = 0.98, 30_000.0
"""Load from which a queue counts as one that grows, and ms for each time over: what half a minute of it comes to."""


class SharedLatency(NamedTuple):
    """Mean latency of a job's records, by where its instances lie; built by `of`.

    Attributes:
        rate, service_s: (m,) records/s that reach each operator, and core-seconds of one.
        cores, bandwidth: (n,) of each node; bits/s.
        tail, head, flow, bits: (E,) of each stream; records/s, bits of one.
        way_ms: (n, n) between nodes.
        order, last: (m,) operators from the sources on, and whether nobody takes what one makes.
    """

    rate: Floats
    service_s: Floats
    cores: Floats
    bandwidth: Floats
    tail: Integers
    head: Integers
    flow: Floats
    bits: Floats
    way_ms: Floats
    order: Integers
    last: np.ndarray

    @classmethod
    def of(cls, job: ParallelJob, nodes: Nodes) -> SharedLatency:
        """Build it for a job on nodes; each instance is taken to have a queue of its own."""
        tail = np.array([one.tail for one in job.edges], np.int64)
        return cls(
            job.taken_rps, job.service_s, nodes.capacity[:, CORES] - nodes.used[:, CORES], nodes.bandwidth_mbps * 1e6,
            tail, np.array([one.head for one in job.edges], np.int64),
            np.array([job.edge_rps(one) for one in job.edges]), np.array([one.bytes * 8.0 for one in job.edges]),
            distances_ms(nodes), np.array(job.order, np.int64), ~np.isin(np.arange(job.operators), tail),
        )  # fmt: skip

    def ms(self, counts: Counts) -> float:
        """Return the mean of the records, of each by the way that it takes, in ms; finite also where some fall behind.

        Args:
            counts: (m, n) instances, at least one of each operator.
        """
        found: float = _mean_ms(counts, self)
        return found


@numba.njit(cache=True)
def _mean_ms(counts: Any, of: Any) -> float:
    m, n = counts.shape
    instances = counts.sum(axis=1)
    share = np.zeros((m, n))
    for own in range(m):
        for node in range(n):
            share[own, node] = counts[own, node] / instances[own]
    stay_ms = _stays_ms(counts, share, of.rate * of.service_s / instances, of.service_s, of.cores)
    out_s, in_s = _interfaces_s(share, of.tail, of.head, of.flow, of.bits, of.bandwidth)
    until, weight, total, many = np.zeros(m), np.zeros(m), 0.0, 0.0
    for own in of.order:
        mean = stay_ms[own] + (until[own] / weight[own] if weight[own] > 0.0 else 0.0)
        if of.last[own]:
            total += mean * of.rate[own]
            many += of.rate[own]
        for edge in range(len(of.tail)):
            if of.tail[edge] == own:
                head, between = of.head[edge], 0.0
                for node in range(n):
                    if share[own, node] > 0.0:
                        for to in range(n):
                            part = share[own, node] * share[head, to]
                            if part > 0.0:
                                sent_s = (out_s[node] + in_s[to]) * of.bits[edge] if node != to else 0.0
                                between += part * (of.way_ms[node, to] + 1000.0 * sent_s)
                until[head] += of.flow[edge] * (mean + between)
                weight[head] += of.flow[edge]
    return total / max(many, 1e-12)


@numba.njit(cache=True)
def _stays_ms(counts: Any, share: Any, load: Any, service_s: Any, cores: Any) -> Any:
    """(m,) ms of a record at each operator, queue and service, where instances are slowed by those beside them.

    Args:
        counts: (m, n) instances.
        share: (m, n) of an operator's records.
        load: (m,) of an instance that has a core to itself.
        service_s: (m,) core-seconds of a record.
        cores: (n,) of each node.
    """
    m, n = counts.shape
    found = np.zeros(m)
    for node in range(n):
        busy, slow = np.minimum(load, 1.0), np.ones(m)
        if counts[:, node].sum() > cores[node]:
            for _ in range(ROUNDS):
                for own in range(m):
                    if counts[own, node] > 0:
                        slow[own] = slowdown(counts[:, node], busy, max(cores[node], 1e-9), own)
                for own in range(m):
                    busy[own] = min(load[own] * slow[own], 1.0)
        for own in range(m):
            if counts[own, node] > 0:
                found[own] += share[own, node] * _stay_ms(service_s[own] * slow[own], load[own] * slow[own])
    return found


@numba.njit(cache=True)
def _stay_ms(service_s: float, load: float) -> float:
    """1 ÷ (mu (1 - rho)), and beyond `FULL` what it comes to there and what falls behind."""
    return 1000.0 * service_s / (1.0 - min(load, FULL)) + BEHIND_MS * max(load - FULL, 0.0)


@numba.njit(cache=True)
def _interfaces_s(share: Any, tail: Any, head: Any, flow: Any, bits: Any, bandwidth: Any) -> Any:
    """(n,) seconds of a bit on the interface of each node, out and in, with the wait for others."""
    n = share.shape[1]
    out, into = np.zeros(n), np.zeros(n)
    for edge in range(len(tail)):
        for node in range(n):
            here, there = share[tail[edge], node], share[head[edge], node]
            out[node] += flow[edge] * bits[edge] * here * (1.0 - there)
            into[node] += flow[edge] * bits[edge] * there * (1.0 - here)
    for node in range(n):
        for load in (out, into):
            used = min(load[node] / bandwidth[node], FULL)
            load[node] = 1.0 / (bandwidth[node] * (1.0 - used))
    return out, into
