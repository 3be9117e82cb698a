"""A past of a job's queries, from which their performance is learned: in the twin, under drawn placements."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from models.placement.graph import Floats
from models.placement.learned.queries import QueryEvaluator, QuerySpace
from models.placement.performance.windows import STEPS, History
from models.placement.plan.measured import Measure
from models.placement.rates import rates_of

KEPT = 3
"""Steps for which a placement is kept."""


def twin_past(space: QuerySpace, factors: Floats, seed: int) -> History:
    """Return what a job's queries come to in the twin, step by step: each in equilibrium, under drawn placements.

    Args:
        space: placements of the queries.
        factors: (T,) load of each step, as a multiple of the topology's rates.
        seed: of the placements; equal ones give equal pasts.

    Raises:
        NoRoomError: the clusters have no room for the queries.
    """
    random, topology = np.random.default_rng(seed), space.measure.topology
    counts, placed, measured = space.draw(random), [], []
    for step, factor in enumerate(factors):
        at = replace(space, measure=Measure(topology, rates_of(topology, float(factor))))
        outcome = QueryEvaluator(at).outcome(counts)
        if step % KEPT == KEPT - 1:
            counts = space.draw(random)
        placed.append(counts)
        measured.append((outcome.latency_ms, outcome.mean_load))
    return History(factors * source_rps(space), np.array(placed), np.array(measured))


def steady_steps(space: QuerySpace, counts: np.ndarray, factor: float) -> Floats:
    """Return the (4, 1 + m n) that a performance model reads where load and placement have long been the same."""
    return np.tile([factor * source_rps(space), *counts.reshape(-1).astype(float)], (STEPS, 1))


def source_rps(space: QuerySpace) -> float:
    """Return the records/s of all sources, as the topology states them."""
    return sum(one.rps for one in space.measure.topology.sources.values())
