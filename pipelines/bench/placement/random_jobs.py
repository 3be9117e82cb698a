"""All schemes on random jobs: how often is each among the best?"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from models.placement.allocation.nodes import Nodes
from models.placement.instances.job import ParallelJob, StreamEdge
from models.placement.learned.evaluator import TwinEvaluator
from pipelines.bench.placement.schemes import SCHEMES

JUDGED = range(100, 200)
"""Seeds of the jobs that are judged; rules were developed on 0 to 99."""
NEAR = 1.05
BUSIEST = 0.7
"""Load of the busiest instance at the job's rate."""


def random_job(seed: int) -> tuple[ParallelJob, Nodes]:
    """Draw a job layer by layer, and nodes in two to four domains (Cordeiro et al. 2010, "layer-by-layer").

    6 to 12 operators in 3 to 5 layers; each pair of neighbouring layers is joined with 30 %, and each operator by an
    edge at least. Service times of 0.2 to 2 ms, 1 to 4 instances, the rate such that the busiest one has a load of 0.7.
    """
    random = np.random.default_rng(seed)
    m, layers = int(random.integers(6, 13)), int(random.integers(3, 6))
    layer = np.sort(np.concatenate([np.arange(layers), random.integers(0, layers, m - layers)]))
    edges = []
    for head in range(m):
        before = np.flatnonzero(layer == layer[head] - 1)
        if len(before):
            tails = before[random.random(len(before)) < 0.3].tolist() or [int(random.choice(before))]
            for tail in tails:
                edges.append(StreamEdge(tail, head, float(random.uniform(0.3, 1.5)), float(random.uniform(50, 500))))
    arrivals, instances = (layer == 0).astype(float), random.integers(1, 5, m)
    need = np.column_stack([np.full(m, 0.5), random.uniform(0.1, 0.4, m)])
    job = ParallelJob(arrivals, random.uniform(0.2, 2.0, m) / 1000, instances, need, tuple(edges))
    rate = BUSIEST / float((job.taken_rps * job.service_s / instances).max())
    domains, count = int(random.integers(2, 5)), int(random.integers(10, 15))
    trips = np.triu(random.uniform(5, 40, (domains, domains)), 1)
    nodes = Nodes(
        np.tile([4.0, 4.0], (count, 1)), np.zeros((count, 2)), np.sort(np.arange(count) % domains), trips + trips.T,
        slots=np.full(count, 6), bandwidth_mbps=np.full(count, 1000.0),
    )  # fmt: skip
    return ParallelJob(arrivals * rate, job.service_s, instances, need, job.edges), nodes


def measure_random_jobs() -> dict[str, Any]:
    """Put all judged jobs on their nodes by every scheme.

    Returns:
        By scheme: `near`, share of the jobs in which its latency in the twin is at most 5 % over the least of all
        schemes; `ratio`, mean of it ÷ the least; `seconds`, the longest that it took.
    """
    ratios: dict[str, list[float]] = {name: [] for name in SCHEMES}
    seconds: dict[str, float] = dict.fromkeys(SCHEMES, 0.0)
    for seed in JUDGED:
        job, nodes = random_job(seed)
        evaluator, found = TwinEvaluator(job, nodes), {}
        for name, scheme in SCHEMES.items():
            begun = time.perf_counter()
            counts = scheme(job, nodes, 40.0, seed)
            seconds[name] = max(seconds[name], time.perf_counter() - begun)
            found[name] = evaluator.outcome(counts).latency_ms
        least = min(found.values())
        for name, latency in found.items():
            ratios[name].append(latency / least)
    return {
        name: {"near": float(np.mean(np.array(own) <= NEAR)), "ratio": float(np.mean(own)), "n": len(own),
               "seconds": seconds[name]}
        for name, own in ratios.items()
    }  # fmt: skip
