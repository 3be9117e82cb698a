"""A deadline's plan for a real replay: the one place at which the bench asks for executors beyond the live job's.

It plans once, by what is known when the order is given, and follows the schedule as it was told.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from models.backfill.given import Fleet, LiveOutlook, LivePromise, ReplayWork, SlotRate
from models.backfill.joint import unknown_errors
from models.backfill.plan import SURE, BackfillPlan, Surroundings, plan_backfill
from models.policy.core.capacity import Floats, speed_table
from models.twin.experiment.foresight import LEVELS, IssuedForecasts
from models.twin.experiment.setup import SPREAD
from pipelines.bench.backfill.arrangement import EXECUTORS, LEAD_S
from pipelines.bench.backfill.loads import PARTITIONS

STEPS, LONGER = 12, 1.5
"""Steps of a plan until its deadline, and how far beyond it the outlook reaches, in units of the deadline."""
UNSURE_SLOT, UNSURE_COST = 0.15, 0.1
"""Deviations of the logarithms of what a slot serves, and of what a replayed record costs."""


class JobCapacity(NamedTuple):
    """What the newest decision says of the job: executors that run, and seconds of a slot per record, as learned."""

    running: int
    per_record_s: float


def plan_order(
    records: int, by_s: float, issued: IssuedForecasts | None, seen_rps: float, known: JobCapacity
) -> BackfillPlan:  # fmt: skip
    """Plan a replay that is to be done in `by_s` seconds from now, as surely as is usual.

    Args:
        records: to replay.
        by_s: seconds.
        issued: forecasts whose first one is of now; None: the rate stays as it is.
        seen_rps: live records/s now.
        known: of the job.

    Raises:
        DeadlineError: it cannot be done in time so surely.
    """
    step_s = by_s / STEPS
    outlook = LiveOutlook(_quantiles(issued, seen_rps, step_s), LEVELS, step_s)
    fleet = Fleet(speed_table(EXECUTORS, 1, PARTITIONS), 1, EXECUTORS, LEAD_S * np.array(SPREAD))
    around = Surroundings(
        outlook, unknown_errors(len(outlook.quantiles)), LivePromise(), SlotRate(1 / known.per_record_s, UNSURE_SLOT),
        fleet, known.running,
    )  # fmt: skip
    return plan_backfill(ReplayWork(records, 1.0, UNSURE_COST), by_s, around, SURE)


def to_schedule(plan: BackfillPlan, began: float) -> list[list[float | int]]:
    """Return a plan's extra executors as an order carries them, from job time `began` on; only where they change."""
    extra = plan.extra.tolist()
    return [[began + at * plan.step_s, count] for at, count in enumerate(extra) if at == 0 or count != extra[at - 1]]


def _quantiles(issued: IssuedForecasts | None, seen_rps: float, step_s: float) -> Floats:
    """(K, L) live records/s of each step."""
    steps = int(np.ceil(LONGER * STEPS))
    if issued is None:  # a mean of Poisson numbers
        from scipy.special import ndtri

        spread = np.sqrt(seen_rps / step_s) * ndtri(np.array(LEVELS))
        return np.tile(np.maximum(seen_rps + spread, 0.0), (steps, 1))
    middles = (np.arange(steps) + 0.5) * step_s
    at = np.minimum((middles // issued.step_s).astype(np.int64), issued.quantiles.shape[1] - 1)
    return np.maximum.accumulate(issued.quantiles[0][at], axis=1)
