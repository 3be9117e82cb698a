"""Run the policies that a promise steers on a job's past in its twin, to find where steering should begin."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from configs.bounds import DAY_S
from models.forecast.core.forecaster import Forecaster
from models.forecast.core.series import Series
from models.policy.catalogue import CATALOGUE
from models.policy.core.capacity import Floats
from models.twin.experiment.contenders import Sweep, Trial, make_contender
from models.twin.experiment.evaluation import run_trials
from models.twin.experiment.foresight import LEVELS, IssuedForecasts, issue_stepwise
from models.twin.experiment.frontier import least_cost_at
from models.twin.experiment.peak_training import UNFITTED
from models.twin.experiment.scenario import build_scenario
from models.twin.experiment.setup import Setup

SPENT = 0.5
"""Share of the error budget that the past is to have used: the rest is for what no past holds."""
JOB_DAYS, WALL_DAYS = 14.0, 7.0
"""Newest days of a past that policies are run on: of the job's clock, and of the wall's, whichever are fewer."""
SEEDS = 4  # draws of the arrivals


class Start(NamedTuple):
    """Where a policy's steering should begin: the value of its knob, and executor-hours a day with it on the past."""

    knob: float
    hours: float


def find_starts(forecaster: Forecaster, series: Series, setup: Setup) -> dict[str, Start]:
    """Find for each policy that a promise steers the knob that would have used half the error budget on the past.

    At least a third of the past is history for the forecaster only.

    Args:
        forecaster: whose forecasts policies hear.
        series: the job's load, records per wall second, on its own clock; NaN gaps are interpolated linearly.
        setup: the job's twin, contract and clock.

    Returns:
        By policy, without those that no value of the knob would have kept within that; empty where the past is
        under a day of the job's clock, or its steps under a second of the wall's, for a lead time under a second, and
        for a forecaster that was fitted to this past, or forecasts other quantiles than `LEVELS`.

    Raises:
        SeriesError, TwinError: the series has another step than the forecaster, or a rate is negative or infinite.
    """
    step_s, many = setup.step_s(series), len(series)
    days = max(DAY_S, 4 * sum(setup.planned_s) * setup.speed) / series.step_s
    newest = min(JOB_DAYS * DAY_S / series.step_s, WALL_DAYS * DAY_S / step_s)
    first = max(many - round(newest), many // 3)
    honest = isinstance(forecaster, UNFITTED) and tuple(forecaster.levels) == LEVELS
    if not honest or step_s < 1 or setup.contract.planning.lead_s < 1 or many - first < days:
        return {}
    if np.isfinite(series.values).sum() < 2:
        return {}
    older = Series(series.start, series.step_s, series.values[:first])
    said = issue_stepwise(forecaster, older, series.values[first:])
    return _swept(series, first, setup, said)


def _swept(series: Series, first: int, setup: Setup, said: IssuedForecasts) -> dict[str, Start]:
    job, steps = setup.contract.job, range(first, len(series))
    past = build_scenario(job, series, steps, setup, range(SEEDS), {"blend": said})
    found: dict[str, Start] = {}
    # What follows is steered by seconds of production, while a sweep tells its late ones as a share of all.
    days, allowed = (past.seconds - past.warm_s) / DAY_S, SPENT * setup.contract.error_budget * past.produced_share
    trials = []
    for name, entry in CATALOGUE.items():
        if entry.stricter:
            contender, ladder = make_contender(name), np.array(entry.values)[:: entry.stricter]
            trials.append(Trial(contender, Sweep(past, contender.setting, ladder)))
    for trial, result in zip(trials, run_trials(trials), strict=True):
        (late, hours), ladder = result.means, trial.sweep.knobs
        knob = knob_within(ladder, late, allowed)
        if knob is not None:
            found[trial.contender.name] = Start(knob, least_cost_at(late, hours, allowed) / days)
    return found


def knob_within(ladder: Floats, late: Floats, allowed: float) -> float | None:
    """Return the most lenient knob whose share of late seconds is allowed, or None.

    Args:
        ladder: (N,) values of the knob, the most lenient first.
        late: (N,) shares of the seconds that were late with them; a stricter value is taken to be no later than a more
            lenient one, and between two values the share is interpolated linearly.
        allowed: share of the seconds.
    """
    least = np.minimum.accumulate(late)
    if least[-1] > allowed:
        return None
    return float(np.interp(-allowed, -least, ladder)) if least[0] > allowed else float(ladder[0])
