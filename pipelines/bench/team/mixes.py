"""Drawn mixes of jobs: parts of the shipped series, scaled so that their peaks sum to more than their pool has."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np

from configs.bounds import DAY_S
from models.forecast.core.series import Series
from models.twin.experiment.foresight import IssuedForecasts, issue_forecasts, steps_per_forecast_step
from models.twin.experiment.scenario import Scenario, build_scenario
from models.twin.experiment.setup import PEAK_QUANTILE, Setup
from models.twin.pool.mix import Mix
from models.twin.sim.arrivals import fill_gaps
from models.twin.sim.job import stack
from pipelines.traces.shipped import find_shipped

SERIES = (
    "iot 5min", "taxi 5min", "wiki_en 5min", "google 5min", "alibaba 5min", "elb 5min", "green_taxi 5min",
    "twitter_aapl 5min", "twitter_goog 5min",
)  # fmt: skip
JOBS, PEAKS, WEIGHTS, RATIO = (3, 5), (4.0, 10.0), (1.0, 2.0, 4.0), (1.2, 1.6)
"""Of a mix: how many jobs, executors that a peak needs, what a late second costs, sum of the peaks over the pool."""
LEAD_S, CARRIED = 60.0, 8
"""Lead time of all jobs, and executors that carry the load which they are scaled by."""
HISTORY_DAYS = 3.0
"""Days of each series, after the third that its forecaster begins with, before the first one that is judged."""
DAYS = 1.0


class ForecastSeries(NamedTuple):
    """A series, what the blend issues of it, and the step of the first forecast."""

    series: Series
    issued: IssuedForecasts
    first: int


@cache
def setup() -> Setup:
    """Return the setup of all jobs: one lead time, and one job, in whose records/s the loads are."""
    made = Setup(lead_s=LEAD_S, executors=CARRIED)
    return replace(made, job=made.twin_job, executors=None, as_is=True)


def draw_mix(seed: int) -> Mix:
    """Draw three to five jobs with a day of a series each, and a pool that their peaks exceed by 20 to 60 %."""
    rng = np.random.default_rng(seed)
    jobs = int(rng.integers(JOBS[0], JOBS[1] + 1))
    names, peaks = rng.choice(SERIES, jobs, replace=False), rng.uniform(*PEAKS, jobs)
    weights, ratio = rng.choice(WEIGHTS, jobs), rng.uniform(*RATIO)
    scenarios = [_scenario(str(name), float(peak), seed, rng) for name, peak in zip(names, peaks, strict=True)]
    return Mix(tuple(scenarios), peaks, weights, max(int(peaks.sum() / ratio), jobs))


def _scenario(name: str, peak: float, seed: int, rng: np.random.Generator) -> Scenario:
    """A day of a series, drawn, at which the 99.9 % quantile needs so many executors."""
    known = forecast_series(name)
    day = round(DAY_S / known.series.step_s)
    steps, reach = round(DAYS * day), round(day / 4)
    begin = int(rng.integers(known.first + round(HISTORY_DAYS * day), len(known.series) - steps - reach))
    part = range(begin, begin + steps)
    high = float(np.quantile(fill_gaps(known.series.values[part.start : part.stop]), PEAK_QUANTILE))
    capacity = stack([setup().twin_job]).capacity(setup().looks.batch_s)
    factor = float(capacity.sustained_rps(np.array([float(CARRIED)]))[0]) * peak / CARRIED / high
    scaled = Series(known.series.start, known.series.step_s, known.series.values * factor)
    return build_scenario(name, scaled, part, setup(), range(seed, seed + 1), {"blend": known.issued.scaled(factor)})


@cache
def forecast_series(name: str) -> ForecastSeries:
    """Read a shipped series, and forecast it from its first third on."""
    series = find_shipped(name).series()
    first = len(series) // 3
    many = steps_per_forecast_step(series.step_s, sum(setup().planned_s))
    return ForecastSeries(series, issue_forecasts("blend", series, first, many), first)
