"""The jobs that share a real cluster: their days, and what is known of them beforehand."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from configs.sections import Replay
from models.forecast.core.series import Series
from models.policy.core.capacity import Floats
from models.twin.pool.rules import best_split
from models.twin.sim.arrivals import fill_gaps
from pipelines.jobs.replay import ReplayPlan, plan_replay
from pipelines.traces.shipped import find_shipped
from pipelines.traces.trace import Trace

WEIGHTS = {"orders": 4.0, "payments": 2.0, "rides": 1.0}
"""What a late second of each job costs."""
BEGIN_H = {"orders": 4, "payments": 12, "rides": 20}
"""Hour of the trace's day at which each one's day begins, as if they served places eight hours apart."""
DAYS = (22, 23, 28)
"""Working days of the trace that the loads begin on; each job has another one in each pair."""
HISTORY_DAYS, HOURS, STEP_S, SPEED = 14, 24.0, 1800.0, 200.0
"""Days before the load that are known, hours of load, seconds of a step of the trace, trace seconds per second."""
CORES, PEAK = 6, 2.8
"""Of the cluster, an executor each; executors that the highest half hour of each load needs."""
MOST = 4
"""Executors of a job in the pool, so that one alone never has all but the floors of the others."""
SERVICE_S, OVERHEAD_S, BATCH_S, TARGET_S = 0.04, 1.0, 4.0, 10.0
"""Of a record; of a batch without records, and that a batch should take; the latency that is promised."""
CARRIED_RPS = (1 - OVERHEAD_S / BATCH_S) / SERVICE_S
"""Records/s that an executor carries, by these."""
FULL_BATCH = round(MOST * BATCH_S * CARRIED_RPS)
"""Records of a batch at most: as many as the most executors take in the time that one should."""


class DayLoad(NamedTuple):
    """A job's load: the trace with its history and live part, and when each record of that is produced."""

    trace: Trace
    plan: ReplayPlan


def draw_load(job: str, pair: int, hours: float = HOURS) -> DayLoad:
    """Draw a job's load in one of the pairs of sessions; equal arguments give equal records.

    Args:
        job: of WEIGHTS.
        pair: from 0.
        hours: of the trace.
    """
    at = list(WEIGHTS).index(job)
    series = _whole_load()
    many = round(STEP_S / series.step_s)
    values = np.asarray(fill_gaps(series.values).reshape(-1, many).mean(axis=1), dtype=np.float64)
    times = np.asarray(series.start + STEP_S * np.arange(len(values)), dtype=np.float64)
    start = series.start + 86_400.0 * DAYS[(pair + at) % len(DAYS)] + 3600.0 * BEGIN_H[job]
    day = (times >= start) & (times < start + 3600.0 * HOURS)
    trace = Trace(
        "green_taxi", times, values, STEP_S, start - 86_400.0 * HISTORY_DAYS, start, start + 3600.0 * hours,
        PEAK * CARRIED_RPS / float(values[day].max()), (),
    )  # fmt: skip
    replay = Replay(speed=SPEED, late_share=0.0, late_s=0.0, seed=10 * pair + at)
    return DayLoad(trace, plan_replay(trace, replay))


@cache
def _whole_load() -> Series:
    """All days of it: read once, for each session draws three."""
    return find_shipped("green_taxi 5min").series()


def known_shares(traces: dict[str, Trace]) -> dict[str, int]:
    """Return the static shares of the cluster's cores that would have cost least over the days before.

    Args:
        traces: of the jobs' loads.
    """
    costs = [
        [WEIGHTS[job] * late_fluid_s(trace.history()[1], STEP_S / SPEED, share) for share in range(1, CORES + 1)]
        for job, trace in traces.items()
    ]
    return dict(zip(traces, best_split(np.array(costs), CORES), strict=True))


def late_fluid_s(rates: Floats, step_s: float, executors: int) -> float:
    """Return the seconds in which a load, followed as a fluid, waits longer than a record may beside its batches.

    Args:
        rates: (T,) records/s.
        step_s: wall seconds of a step.
        executors: that work all the time.
    """
    able, slack_s, waits, late = executors * CARRIED_RPS, TARGET_S - 2 * BATCH_S, 0.0, 0.0
    for rate in rates:
        waits = max(waits + (float(rate) - able) * step_s, 0.0)
        late += step_s * (waits > slack_s * able)
    return late
