"""Jobs of several instances, and nodes for them."""

import numpy as np

from models.placement.allocation.nodes import Nodes
from models.placement.instances.job import ParallelJob, StreamEdge


def one_domain(capacity, slots, bandwidth=None):
    """Nodes of one domain of which nothing is used."""
    count = len(capacity)
    return Nodes(
        np.array(capacity, float), np.zeros((count, 2)), np.zeros(count, int), np.zeros((1, 1)),
        slots=np.full(count, slots), bandwidth_mbps=np.array(bandwidth or [1e6] * count, float),
    )  # fmt: skip


def counting(instances=(2, 3, 1), need=((1, 2), (2, 1), (1, 1)), rps=1000.0, service_ms=(0.5, 0.5, 0.1)):
    """Sentences, words and counts: three records of one, as in the Pa-Stream seed."""
    return ParallelJob(
        np.array([rps, 0, 0]), np.array(service_ms) / 1000, np.array(instances), np.array(need, float),
        (StreamEdge(0, 1), StreamEdge(1, 2, 3.0)),
    )  # fmt: skip


def random_job(seed, nodes=6):
    """A job of two to six operators, and nodes in two domains with room for it."""
    random = np.random.default_rng(seed)
    m = int(random.integers(2, 7))
    edges = [StreamEdge(int(random.integers(0, head)), head, float(random.uniform(0.3, 2))) for head in range(1, m)]
    edges += [StreamEdge(0, head) for head in range(2, m) if random.random() < 0.2 and edges[head - 1].tail != 0]
    arrivals = np.zeros(m)
    arrivals[0] = random.uniform(50, 300)
    job = ParallelJob(
        arrivals, random.uniform(0.1, 1.0, m) / 1000, random.integers(1, 4, m), random.uniform(0.1, 0.5, (m, 2)),
        tuple(edges),
    )  # fmt: skip
    far = np.array([[0.0, 20.0], [20.0, 0.0]])
    return job, Nodes(
        np.full((nodes, 2), 4.0), np.zeros((nodes, 2)), np.arange(nodes) % 2, far, slots=np.full(nodes, 8),
        bandwidth_mbps=np.full(nodes, 1000.0),
    )  # fmt: skip
