"""Latency of instances on nodes in equilibrium: waits of each operator, and ways between nodes.

Md-Stream paper, section "System latency"; waits are those of M/M/1 (Kleinrock 1975, eq. 3.26).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from models.placement.allocation.nodes import Nodes
from models.placement.graph import Floats
from models.placement.instances.job import Counts, ParallelJob, StreamEdge

SAME_NODE_MS, SAME_DOMAIN_MS = 0.05, 0.5


class PathLatency(NamedTuple):
    """Latency of all paths from a source to a result, ms; infinite where an operator cannot keep up.

    Attributes:
        worst: of the slowest path.
        mean: of all paths alike.
    """

    worst: float
    mean: float


def distances_ms(nodes: Nodes) -> Floats:
    """Return (n, n) ms from node to node: 0.05 to itself, 0.5 within a domain, else half the round trip."""
    between = nodes.round_trip[np.ix_(nodes.domain, nodes.domain)] / 2
    same = nodes.domain[:, None] == nodes.domain[None, :]
    found = np.where(same, SAME_DOMAIN_MS, between)
    np.fill_diagonal(found, SAME_NODE_MS)
    return found


def waits_ms(job: ParallelJob, counts: Counts) -> Floats:
    """Return (m,) ms that a record waits and is worked on at each operator, 1 ÷ (mu (1 - rho)); infinite from rho 1 on.

    Args:
        job: whose records go to the instances of an operator alike.
        counts: (m, n) instances on nodes.
    """
    free = 1.0 / job.service_s - job.taken_rps / counts.sum(axis=1)
    return np.where(free > 0, 1000.0 / np.where(free > 0, free, 1.0), np.inf)


def edge_ms(job: ParallelJob, nodes: Nodes, counts: Counts, edge: StreamEdge) -> float:
    """Return the mean ms of a record between the instances of two operators: the way, and its bytes on the interface.

    Args:
        job: of the operators.
        nodes: on which they lie.
        counts: (m, n) instances on nodes.
        edge: from one to the other.
    """
    share = np.outer(counts[edge.tail], counts[edge.head]) / float(counts[edge.tail].sum() * counts[edge.head].sum())
    sent_ms = edge.bytes * 8 / (np.minimum.outer(nodes.bandwidth_mbps, nodes.bandwidth_mbps) * 1000.0)
    np.fill_diagonal(sent_ms, 0.0)
    return float((share * (distances_ms(nodes) + sent_ms)).sum())


def path_latency(job: ParallelJob, nodes: Nodes, counts: Counts) -> PathLatency:
    """Return the latency of the paths of a job whose instances lie on nodes.

    Args:
        job: of m operators.
        nodes: n of them.
        counts: (m, n) instances, at least one of each operator.
    """
    wait, worst, total, paths = waits_ms(job, counts), *(np.zeros(job.operators) for _ in range(3))
    ends = {own for own in range(job.operators)} - {one.tail for one in job.edges}
    for own in job.order:
        into = [(one.tail, edge_ms(job, nodes, counts, one)) for one in job.edges if one.head == own]
        paths[own] = sum(paths[tail] for tail, _ in into) if into else 1.0
        worst[own] = wait[own] + max((worst[tail] + way for tail, way in into), default=0.0)
        total[own] = wait[own] * paths[own] + sum(total[tail] + way * paths[tail] for tail, way in into)
    last = sorted(ends)
    return PathLatency(float(worst[last].max()), float(total[last].sum() / paths[last].sum()))
