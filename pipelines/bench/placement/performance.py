"""The performance model beside simple ones, and the past in the twin from which it learns."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from models.placement.allocation.nodes import Nodes
from models.placement.graph import Floats
from models.placement.instances.drawn import draw_counts
from models.placement.instances.job import Counts, ParallelJob
from models.placement.learned.schemes import STEPS as WALK
from models.placement.learned.space import InstanceSpace
from models.placement.performance.model import absolute_error, linear_regression, train_performance
from models.placement.performance.network import SMALL, LayerSizes
from models.placement.performance.windows import STEP_S as MINUTE_S
from models.placement.performance.windows import History, parts_in_time
from models.placement.twin.follow import empty_state, follow_job, move_instances
from models.placement.twin.station import STEP_S
from models.twin.sim.arrivals import fill_gaps
from pipelines.bench.placement.testbeds import testbeds
from pipelines.traces.shipped import find_shipped

STEPS, KEPT = 2_000, 3
"""Minutes of the past from which performance is learned, and for how many of them a placement is kept."""
NEAR = 0.5
"""Share of the placements of a past that lie some moves away from the one at the start."""
LOAD, LEAST, MOST = "iot 5min", 0.4, 1.2
"""Measured load of that past, of which a step is a minute, and between which multiples of a job's rate it lies."""


def record_past(job: ParallelJob, nodes: Nodes, steps: int, seed: int, start: Counts | None = None) -> History:
    """Follow a job in the twin under drawn placements and a measured load, and return its past by minutes.

    Args:
        job: of m operators.
        nodes: n of them.
        steps: minutes.
        seed: of what is drawn.
        start: placement of which every other one is some moves away; None: all are drawn.
    """
    random, factors = np.random.default_rng(seed), _load_of(steps)
    space = InstanceSpace(job, nodes)
    queued, counts = empty_state(job, nodes), draw_counts(job, nodes, random)
    rps, placed, measured = [], [], []
    for minute in range(steps):
        factor = float(factors[minute])
        queued, course = follow_job(job, nodes, counts, queued, np.full(int(MINUTE_S / STEP_S), factor), MINUTE_S)
        if minute % KEPT == KEPT - 1:
            near = start is not None and random.random() < NEAR
            counts = _walked(space, start, random) if near else draw_counts(job, nodes, random)  # type: ignore[arg-type]
            queued = move_instances(queued, counts)
        rps.append(factor * float(job.arrivals_rps.sum()))
        placed.append(counts)
        measured.append((course.latency_ms[0], course.load[0].mean()))
    return History(np.array(rps), np.array(placed), np.array(measured))


def _walked(space: InstanceSpace, counts: Counts, random: np.random.Generator) -> Counts:
    """A placement that as many allowed moves lead to as one walk of a proposal has at most."""
    for _ in range(int(random.integers(1, WALK + 1))):
        able = np.flatnonzero(space.farthest(counts) >= 1)
        if not len(able):
            break
        counts = space.after(counts, int(random.choice(able)), 1)
    return counts


def _load_of(steps: int) -> Floats:
    """Multiples of a job's rate, minute by minute: a step of LOAD each, between LEAST and MOST of them."""
    known = fill_gaps(find_shipped(LOAD).series().values[:steps])
    return np.asarray(np.interp(known, [known.min(), known.max()], [LEAST, MOST]))


def measure_performance(sizes: LayerSizes = SMALL) -> dict[str, Any]:
    """Train a performance model on a past in the twin, and try it on placements that it has not seen.

    Args:
        sizes: of its layers.

    Returns:
        `latency` and `load`: mean absolute error of the model ÷ that of the better of last value and linear regression;
        `error` (2,), `last` and `linear` likewise in ms and load; `seconds` of the training; `n` samples for testing.
    """
    testbed = testbeds()[-1]
    train, stop, test = parts_in_time(record_past(testbed.job, testbed.nodes, STEPS, seed=100))
    begun = time.perf_counter()
    model = train_performance(train, stop, slots=int(testbed.nodes.slots[0]), seed=1, sizes=sizes)
    seconds = time.perf_counter() - begun
    error, last = model.error(test), absolute_error(test.before, test.label)
    linear = absolute_error(linear_regression(train, test), test.label)
    ratio = error / np.minimum(last, linear)
    return {
        "latency": float(ratio[0]), "load": float(ratio[1]), "error": error.tolist(), "last": last.tolist(),
        "linear": linear.tolist(), "seconds": seconds, "n": len(test.label),
    }  # fmt: skip
