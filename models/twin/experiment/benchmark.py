"""A whole benchmark: every policy is tuned on an older part of each trace and compared on the newest part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from models.forecast.core.series import Series
from models.policy.catalogue import CATALOGUE
from models.policy.core.capacity import Floats
from models.twin.experiment.contenders import Contender, Sweep
from models.twin.experiment.evaluation import SweepResults, run_sweeps
from models.twin.experiment.foresight import FORECASTERS, IssuedForecasts, issue_forecasts, steps_per_forecast_step
from models.twin.experiment.results import ALLOWED, OPTIMUM, TraceResult
from models.twin.experiment.scenario import Scenario, build_scenario, first_forecast_step, split_trace
from models.twin.experiment.setup import Setup
from models.twin.experiment.tuning import refine_knobs, tune
from models.twin.oracle.bound import lower_bound
from models.twin.oracle.optimum import plan_clairvoyantly
from models.twin.sim.job import stack
from models.twin.sim.run import Load, simulate

TUNE_SEED = 1000
"""Seed of the arrivals on the tuning part; the test part has seeds from 0 on."""
ROUND = 2
"""Further knob values (of the tuned parameter) per round; the next round is chosen by the results."""
BUDGETS = (0.001, 0.003, 0.01, 0.05)
"""Violations at which the optimum is computed; between them the frontier is interpolated."""


class BenchmarkCase(NamedTuple):
    """A trace to compare policies on, and its forecasts by forecaster, in the trace's unit (`forecast_trace`)."""

    name: str
    series: Series
    forecasts: dict[str, IssuedForecasts]


@dataclass(frozen=True)
class Effort:
    """How much a benchmark computes.

    Attributes:
        knobs: values of each policy's tuned parameter on the test part, at least 2; the second half is chosen by what
            the first ones came to.
        seeds: draws of the arrivals on the test part.
        oracle: whether the clairvoyant optimum and the lower bound are computed, under the load of the first seed.
    """

    knobs: int = 8
    seeds: int = 4
    oracle: bool = True


def forecast_trace(
    name: str, series: Series, setup: Setup, forecasters: Sequence[str] = FORECASTERS
) -> dict[str, IssuedForecasts]:
    """Forecast a trace over its tuning and test parts, and over the past from which peaks are learned.

    Args:
        name: of the trace, for messages.
        series: the trace.
        setup: of the comparison, whose lead time says how far ahead is forecast.
        forecasters: of `foresight.FORECASTERS`.

    Returns:
        Forecasts by forecaster, in the unit of the series and on its clock.

    Raises:
        TwinError: the trace is too short, or a rate is missing or negative (`scenario.split_trace`).
        SeriesError: an infinite rate.
    """
    tune, _ = split_trace(name, series, setup)
    many = steps_per_forecast_step(setup.step_s(series), sum(setup.planned_s))
    return {
        forecaster: issue_forecasts(forecaster, series, first_forecast_step(series, tune, setup), many)
        for forecaster in forecasters
    }


def run_benchmark(
    cases: Sequence[BenchmarkCase], setup: Setup, contenders: Sequence[Contender], effort: Effort,
    tell: Callable[[str], None] = lambda line: None,
) -> list[TraceResult]:  # fmt: skip
    """Run a benchmark: tune every policy on the older part of each trace and compare them on the newest part.

    This takes minutes to hours; every policy is simulated for all cases, parameter values and seeds. Nothing is saved.

    Args:
        cases: traces with the forecasts of every forecaster that a contender receives.
        setup: the same for all.
        contenders: who is compared.
        effort: how much is computed.
        tell: called with the name of each contender that is done, and then with "optimum of <trace>" per case.

    Returns:
        One per case, in their order: by contender (knobs, seeds) executor-hours, violation (share of seconds over the
        latency target) and latency (s), and its settings; with `effort.oracle` the optimum and the lower bound, too.

    Raises:
        TwinError: a trace is too short, or a rate is missing or negative, or it cannot be scaled to the job.
        SettingsError: a policy is unknown or cannot be built.
        KeyError: a case lacks the forecasts that a contender receives.
    """
    cut = [(case, *split_trace(case.name, case.series, setup)) for case in cases]
    tuning = [
        build_scenario(c.name, c.series, tune, setup, range(TUNE_SEED, TUNE_SEED + 1), c.forecasts)
        for c, tune, _ in cut
    ]
    found = [
        TraceResult(build_scenario(c.name, c.series, test, setup, range(effort.seeds), c.forecasts), {})
        for c, _, test in cut
    ]
    swept = max(effort.knobs - effort.knobs // 2, 2)  # between two values others can be placed, beside one they cannot
    for contender in contenders:
        vendor_default = CATALOGUE[contender.policy].vendor_default if contender.name == contender.policy else None
        more = [] if vendor_default is None else [vendor_default]
        sweeps = [
            Sweep(one.scenario, sweep.setting, np.concatenate([sweep.knobs, more]))
            for one, sweep in zip(found, tune(contender, tuning, swept), strict=True)
        ]
        results = run_sweeps(contender, sweeps)
        for left in range(effort.knobs - swept, 0, -ROUND):
            closer = [
                sweep._replace(knobs=refine_knobs(result.knobs, result.means[0], min(ROUND, left)))
                for sweep, result in zip(sweeps, results, strict=True)
            ]
            results = [result.plus(more) for result, more in zip(results, run_sweeps(contender, closer), strict=True)]
        for one, sweep, result in zip(found, sweeps, results, strict=True):
            one.results[contender.name], one.settings[contender.name] = result, sweep.setting
        tell(contender.name)
    for one in found if effort.oracle else []:
        one.results[OPTIMUM] = optimum_results(one.scenario)
        one.bound.update(zip(ALLOWED, least_executor_hours(one.scenario, ALLOWED).tolist(), strict=True))
        tell(f"optimum of {one.scenario.name}")
    return found


def optimum_results(scenario: Scenario, budgets: tuple[float, ...] = BUDGETS) -> SweepResults:
    """Compute the clairvoyant optimum of a scenario under the load of its first seed, one plan per budget.

    Plans cover all seconds of the scenario; cost and late seconds count after its warm-up, as for every policy.

    Args:
        scenario: to plan for.
        budgets: shares of the seconds, 0 to 1, that may be over the latency target; at least one.

    Returns:
        Results of shape (budgets, 1), `knobs` being the budgets. Where no plan meets a budget, the violation is above.

    Raises:
        TwinError: the scenario is shorter than one look (the interval of decisions).
        ValueError: no budgets.
    """
    row, knobs = np.zeros(len(budgets), np.int64), np.array(budgets)
    load = Load(scenario.arrived[:1], row, counts=np.array([scenario.warm_s]))
    jobs, looks = stack([scenario.setup.twin_job] * len(row)), scenario.setup.looks
    outcome = simulate(jobs, load, plan_clairvoyantly(jobs, load, looks, row, knobs), looks, row)
    return SweepResults.from_outcome(knobs, 1, outcome, slice(None), len(outcome.targets))


def least_executor_hours(scenario: Scenario, budgets: tuple[float, ...]) -> Floats:
    """Compute executor-hours that no policy can stay below, (budgets,), under the load of the first seed after warm-up.

    Args:
        scenario: whose job and load.
        budgets: shares of the seconds that may be over the target.

    Raises:
        ValueError: no budgets.
    """
    arrived = scenario.arrived[:1, scenario.warm_s :]
    load = Load(arrived - arrived[:, :1], np.zeros(len(budgets), np.int64))
    return (
        lower_bound(stack([scenario.setup.twin_job] * len(budgets)), load, scenario.setup.looks, np.array(budgets))
        / 3600
    )
