"""An hour of a job in the twin, its instances fixed, or added and taken away by Md-Stream's rule."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from models.placement.graph import Floats
from models.placement.instances.job import Counts
from models.placement.instances.moved import add_instances, take_instances
from models.placement.twin.follow import empty_state, follow_job, move_instances
from models.placement.twin.station import STEP_S
from models.policy.rules.elasticity import (
    SETTLED_S,
    WINDOW_S,
    Elasticity,
    Hysteresis,
    OperatorWindow,
    PrintedElasticity,
)
from pipelines.bench.placement.testbeds import Testbed


class HourResult(NamedTuple):
    """Means from SETTLED_S on: latency of the records, throughput, load of the operators; instances at the end."""

    latency_ms: float
    throughput_rps: float
    load: float
    instances: int


def run_hour(
    testbed: Testbed, counts: Counts, scale: Floats, rule: Elasticity | PrintedElasticity | None
) -> HourResult:  # fmt: skip
    """Follow a job for an hour.

    Args:
        testbed: job and nodes.
        counts: (m, n) instances at first.
        scale: (60,) multiple of the sources' rate in each minute.
        rule: by which instances change, every minute from SETTLED_S on; None: they do not.
    """
    job, nodes = testbed.job, testbed.nodes
    queued, calm = empty_state(job, nodes), Hysteresis()
    latency, throughput, load = [], [], []
    for minute, factor in enumerate(scale):
        steps = np.full(int(WINDOW_S / STEP_S), factor)
        queued, course = follow_job(job, nodes, counts, queued, steps, WINDOW_S)
        if minute * WINDOW_S < SETTLED_S:
            continue
        latency.append(course.latency_ms[0])
        throughput.append(course.throughput_rps[0])
        load.append(course.load[0].mean())
        if rule is not None:
            after, seen = counts, _seen(testbed, counts, float(factor), course.load[0], queued.at, float(latency[-1]))
            calm, wanted = rule.decide(calm, seen)
            for own, more in enumerate((wanted - seen.instances).astype(int).tolist()):
                if more > 0:
                    after = add_instances(job, nodes, after, own, more)
                elif more < 0:
                    after = take_instances(job, nodes, after, own, -more)
            if after is not counts:
                counts, queued = after, move_instances(queued, after)
    return HourResult(float(np.mean(latency)), float(np.mean(throughput)), float(np.mean(load)), int(counts.sum()))


def _seen(
    testbed: Testbed, counts: Counts, factor: float, load: Floats, at: Floats, latency_ms: float
) -> OperatorWindow:  # fmt: skip
    job = testbed.job
    return OperatorWindow(
        counts.sum(axis=1), job.taken_rps * factor, np.minimum(load, 1.0), 1 / job.service_s, at.sum(axis=1),
        np.full(job.operators, latency_ms > testbed.limit_ms),
    )  # fmt: skip
