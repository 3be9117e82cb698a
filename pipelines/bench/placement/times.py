"""How long plans of larger jobs take: the planner's own, and what a network proposes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from configs.topology import JobOperator, RecordSource, SparkCluster, Topology
from models.dqn.learner.learner import Values
from models.placement.allocation.nodes import Nodes
from models.placement.instances.drawn import draw_counts
from models.placement.instances.job import ParallelJob, StreamEdge
from models.placement.learned.evaluator import TwinEvaluator
from models.placement.learned.reward import RewardWeights
from models.placement.learned.space import InstanceSpace
from models.placement.learned.training import LEARNER, PlacementModel
from models.placement.plan.choose import choose_placement

SIZES = {"12 x 12": (12, 12, 3), "200 x 100": (200, 100, 1)}
"""Operators and clusters or nodes, and of how many drawn jobs the median is told."""
NEAR = 10
"""How far before an operator those may stand whose records it takes."""


def measure_times() -> dict[str, Any]:
    """Plan drawn jobs of each size; what is compiled at a first call is so before anything is timed.

    Returns:
        By size: `plan` and `network`, the median seconds of `choose_placement`, and of what a network with its first
        weights proposes from a drawn placement (its walks come by more placements than a trained one's); `n` jobs.
    """
    found: dict[str, Any] = {}
    _plan(drawn_topology(14, 2, 99))
    _propose(3, 2, 99)
    for name, (operators, clusters, many) in SIZES.items():
        found[name] = {
            "plan": statistics.median(_plan(drawn_topology(operators, clusters, seed)) for seed in range(many)),
            "network": statistics.median(_propose(operators, clusters, seed) for seed in range(many)),
            "n": many,
        }  # fmt: skip
    return found


def _inputs(operators: int, random: np.random.Generator) -> list[list[int]]:
    """Of each operator those whose records it takes: one or two of the ten before it; none of the first."""
    found: list[list[int]] = [[]]
    for own in range(1, operators):
        before = range(max(own - NEAR, 0), own)
        found.append(
            sorted(random.choice(before, min(len(before), int(random.integers(1, 3))), replace=False).tolist())
        )
    return found


def drawn_topology(operators: int, clusters: int, seed: int) -> Topology:
    """Draw a job that keeps a quarter of the clusters' cores busy, each cluster of 16 cores at a price of its own.

    Args:
        operators: of the job, each with one or two of the ten before it as its inputs.
        clusters: 5 to 40 ms from each other.
        seed: equal ones give equal jobs.
    """
    random = np.random.default_rng(seed)
    inputs, rps = _inputs(operators, random), np.zeros(operators)
    selectivity = np.array([1 / max(sum(own in one for one in inputs), 1) for own in range(operators)])
    for own, each in enumerate(inputs):
        rps[own] = sum(selectivity[one] * rps[one] for one in each) if each else 1_000.0
    busy = random.uniform(0.2, 1.0, operators)
    work_ms = busy / busy.sum() * 4 * clusters * 1000 / np.maximum(rps, 1e-6)
    names = [f"cluster{number}" for number in range(clusters)]
    return Topology(
        name="drawn", broker=names[0], sources={"events": RecordSource(rps=1_000)}, partitions=64, target_s=60,
        operators={
            f"operator{own}": JobOperator(
                of=tuple(f"operator{one}" for one in each) or ("events",), work_ms=work_ms[own],
                selectivity=selectivity[own], state_mb=float(random.uniform(0, 200)),
            )
            for own, each in enumerate(inputs)
        },
        clusters={
            name: SparkCluster(
                cores=16, memory_gb=64, price=float(random.uniform(0.5, 1.5)),
                round_trip_ms={other: float(random.uniform(5, 40)) for other in names[number + 1 :]},
            )
            for number, name in enumerate(names)
        },
    )  # fmt: skip


def _plan(topology: Topology) -> float:
    return _timed(lambda: choose_placement(topology))


def _propose(operators: int, count: int, seed: int) -> float:
    random = np.random.default_rng(seed)
    edges = tuple(
        StreamEdge(one, own, 0.5) for own, each in enumerate(_inputs(operators, random)) for one in each
    )  # fmt: skip
    arrivals = np.eye(operators)[0] * 1_000
    job = ParallelJob(
        arrivals, random.uniform(0.2, 2.0, operators) / 1000, np.ones(operators, np.int64),
        np.tile([0.5, 0.1], (operators, 1)), edges,
    )  # fmt: skip
    nodes = Nodes(
        np.tile([4.0, 4.0], (count, 1)), np.zeros((count, 2)), np.sort(np.arange(count) % 4),
        10.0 * (1 - np.eye(4)), slots=np.full(count, 8),
    )  # fmt: skip
    space, evaluator = InstanceSpace(job, nodes), TwinEvaluator(job, nodes)
    start = draw_counts(job, nodes, random, more=False)
    network = Values(
        operators * count + 1 + operators, 2 * operators * count, 1, LEARNER.hidden, torch.Generator().manual_seed(seed)
    )
    began = evaluator.outcome(start)
    proposer = PlacementModel(network, began.latency_ms, ()).proposer(space, evaluator, RewardWeights())
    return _timed(lambda: proposer.propose(start, began, seed))


def _timed(call: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun
