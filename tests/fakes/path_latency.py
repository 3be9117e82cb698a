"""The Md-Stream paper's latency of a job's paths, as it is printed: what the twin is held against."""

from typing import NamedTuple

import numpy as np

from models.placement.instances.latency import distances_ms, waits_ms


class PathLatency(NamedTuple):
    """Latency of all paths from a source to a result, ms; infinite where an operator cannot keep up.

    Attributes:
        worst: of the slowest path.
        mean: of all paths alike.
    """

    worst: float
    mean: float


def _ways_ms(nodes, size):
    """Return (n, n) ms of a record of so many bytes from node to node: the way, and its bytes on the interface."""
    sent_ms = size * 8 / (np.minimum.outer(nodes.bandwidth_mbps, nodes.bandwidth_mbps) * 1000.0)
    np.fill_diagonal(sent_ms, 0.0)
    return distances_ms(nodes) + sent_ms


def _mean_ms(counts, edge, ways_ms):
    share = np.outer(counts[edge.tail], counts[edge.head]) / float(counts[edge.tail].sum() * counts[edge.head].sum())
    return float((share * ways_ms).sum())


def edge_ms(nodes, counts, edge):
    """Return the mean ms of a record between the instances of two operators.

    Args:
        nodes: on which they lie.
        counts: (m, n) instances on nodes.
        edge: from one to the other.
    """
    return _mean_ms(counts, edge, _ways_ms(nodes, edge.bytes))


def path_latency(job, nodes, counts):
    """Return the latency of the paths of a job whose instances lie on nodes.

    Args:
        job: of m operators.
        nodes: n of them.
        counts: (m, n) instances, at least one of each operator.
    """
    wait, worst, total, paths = waits_ms(job, counts), *(np.zeros(job.operators) for _ in range(3))
    ways = {size: _ways_ms(nodes, size) for size in {one.bytes for one in job.edges}}
    ends = {own for own in range(job.operators)} - {one.tail for one in job.edges}
    for own in job.order:
        into = [(one.tail, _mean_ms(counts, one, ways[one.bytes])) for one in job.edges if one.head == own]
        paths[own] = sum(paths[tail] for tail, _ in into) if into else 1.0
        worst[own] = wait[own] + max((worst[tail] + way for tail, way in into), default=0.0)
        total[own] = wait[own] * paths[own] + sum(total[tail] + way * paths[tail] for tail, way in into)
    last = sorted(ends)
    return PathLatency(float(worst[last].max()), float(total[last].sum() / paths[last].sum()))
