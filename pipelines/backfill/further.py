"""A forecast of a job's load that reaches further than the one that is served: the blend, in longer steps."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from configs.bounds import DAY_S
from models.backfill.given import BackfillPlanError
from models.backfill.live.issued import IssuedLoad, JobClock
from models.backfill.live.ordered import JobNow
from models.forecast.core.series import Series
from models.twin.experiment.foresight import HORIZON, issue_forecasts

LEAST_DAYS = 2.0
"""Of the job's own time that a further forecast is learned from, at least."""


def reaching(moment: JobNow, by_s: float) -> JobNow:
    """Return a moment whose forecast reaches so far: the served one where it does, else one made of its past.

    Args:
        moment: of the job.
        by_s: seconds from now until it.

    Raises:
        BackfillPlanError: the past is too short for a forecast that reaches so far.
    """
    issued = moment.known.issued
    if issued is None or moment.now_s + by_s <= issued.reaches_s:
        return moment
    further = forecast_further(issued, moment.clock, moment.now_s + by_s)
    return moment._replace(known=replace(moment.known, issued=further))


def forecast_further(issued: IssuedLoad, clock: JobClock, until_s: float) -> IssuedLoad:
    """Forecast a load from what came, in steps so long that the forecast reaches a time.

    Args:
        issued: forecasts so far, which tell what came.
        clock: of the job, whose days the load follows.
        until_s: epoch seconds that are to be reached.

    Raises:
        BackfillPlanError: the past is shorter than two days of the job's time, or than what is to be forecast.
    """
    came = issued.came
    many = math.ceil((until_s - float(issued.times_s[-1])) / (HORIZON * issued.step_s))
    step_s, past_s = issued.step_s * clock.scale, len(came) * issued.step_s * clock.scale
    if past_s < max(LEAST_DAYS * DAY_S, HORIZON * many * step_s) or many * step_s > DAY_S:
        reach_h = (issued.reaches_s - float(issued.times_s[-1])) / 3600
        raise BackfillPlanError(
            f"the forecasts that are served reach {reach_h:.3g} h ahead by the wall's clock, and the "
            f"{past_s / DAY_S:.3g} days of the job's time that they tell of are too few to forecast "
            f"{HORIZON * many * step_s / DAY_S:.3g} days: give an earlier --by, or wait until more of the load is known"
        )
    # The newest forecast begins now, so that a step of which nothing is known follows.
    values = np.append(came, np.full(many, np.nan))
    first = len(came) - many * max((len(came) // 2) // many, 1)
    begins_s = clock.at(float(issued.times_s[0])) - step_s
    made = issue_forecasts("blend", Series(begins_s, step_s, values), first, many)
    starts = made.begins_s + made.step_s * np.arange(len(made.last))
    times = np.array([clock.wall_at(float(start)) for start in starts])
    return IssuedLoad(times, made.quantiles, made.last, made.step_s / clock.scale, made.levels)
