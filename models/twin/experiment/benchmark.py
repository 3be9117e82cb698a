"""A whole benchmark: every policy is tuned on an older part of each trace and compared on the newest part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from models.forecast.core.series import Series
from models.policy.catalogue import CATALOGUE
from models.policy.core.capacity import Floats
from models.twin.experiment.contenders import Contender, Sweep, Trial
from models.twin.experiment.evaluation import SweepResults, run_trials
from models.twin.experiment.foresight import FORECASTERS, IssuedForecasts, issue_forecasts, steps_per_forecast_step
from models.twin.experiment.results import ALLOWED, OPTIMUM, TraceResult
from models.twin.experiment.scenario import Scenario, build_scenario, first_forecast_step, split_trace
from models.twin.experiment.setup import Setup
from models.twin.experiment.tuning import refine_knobs, tune
from models.twin.oracle.bound import lower_bound
from models.twin.oracle.optimum import plan_clairvoyantly
from models.twin.sim.given import Load
from models.twin.sim.job import stack
from models.twin.sim.run import simulate

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


class Judged(NamedTuple):
    """What a case is judged on: the scenario that hyper-parameters are chosen on, and the one that is compared on."""

    tuning: Scenario
    test: Scenario


def build_scenarios(case: BenchmarkCase, setup: Setup, seeds: int) -> Judged:
    """Build the scenarios of a trace's older and newest part; the newest has so many draws of the arrivals.

    Raises:
        TwinError: a trace is too short, or a rate is missing or negative, or it cannot be scaled to the job.
    """
    tune, test = split_trace(case.name, case.series, setup)
    chances = range(TUNE_SEED, TUNE_SEED + 1), range(seeds)
    return Judged._make(
        build_scenario(case.name, case.series, part, setup, chance, case.forecasts)
        for part, chance in zip((tune, test), chances, strict=True)
    )


def run_benchmark(
    cases: Sequence[BenchmarkCase], setup: Setup, contenders: Sequence[Contender], effort: Effort
) -> list[TraceResult]:
    """Run a benchmark: tune every policy on the older part of each trace and compare them on the newest part.

    This takes minutes to hours; every policy is simulated for all cases, parameter values and seeds. Nothing is saved.

    Args:
        cases: traces with the forecasts of every forecaster that a contender receives.
        setup: the same for all.
        contenders: who is compared.
        effort: how much is computed.

    Returns:
        One per case, in their order: by contender (knobs, seeds) executor-hours, violation (share of seconds over the
        latency target) and latency (s), and its settings; with `effort.oracle` the optimum and the lower bound, too.

    Raises:
        TwinError: a trace is too short, or a rate is missing or negative, or it cannot be scaled to the job.
        SettingsError: a policy is unknown or cannot be built.
        KeyError: a case lacks the forecasts that a contender receives.
    """
    judged = [build_scenarios(case, setup, effort.seeds) for case in cases]
    found = compare_contenders(contenders, judged, effort)
    for one in found if effort.oracle else []:
        add_oracle(one)
    return found


def add_oracle(result: TraceResult) -> None:
    """Add the clairvoyant optimum and the lower bound to a trace's results, under the load of the first seed."""
    result.results[OPTIMUM] = optimum_results(result.scenario)
    result.bound.update(zip(ALLOWED, least_executor_hours(result.scenario, ALLOWED).tolist(), strict=True))


def compare_contenders(
    contenders: Sequence[Contender], judged: Sequence[Judged], effort: Effort,
    report_share: Callable[[float], None] = lambda share: None,
) -> list[TraceResult]:  # fmt: skip
    """Tune contenders on the older part of each trace and simulate them on the newest, all of them side by side.

    What comes out for one of them is the same, bit for bit, whoever the others are.

    Args:
        contenders: who is compared; at least one.
        judged: scenarios of each case, with the same setup.
        effort: of which `oracle` is not read.
        report_share: called now and then with the share of the work, 0 to 1, that is done.

    Returns:
        One per case, in their order, without optimum and bound.

    Raises:
        SettingsError: a policy is unknown or cannot be built.
        KeyError: a case lacks the forecasts that a contender receives.
    """
    swept = max(effort.knobs - effort.knobs // 2, 2)  # between two values others can be placed, beside one they cannot
    more = [min(ROUND, left) for left in range(effort.knobs - swept, 0, -ROUND)]

    def report(done: int) -> Callable[[float], None]:
        return lambda share: report_share((done + share) / (2 + len(more)))

    trials = [
        Trial(one, Sweep(test, sweep.setting, np.concatenate([sweep.knobs, _usual_setting(one), one.beside])))
        for one, tuned in zip(
            contenders, tune(contenders, [case.tuning for case in judged], swept, report(0)), strict=True
        )
        for (_, test), sweep in zip(judged, tuned, strict=True)
    ]
    results = run_trials(trials, report(1))
    for number, count in enumerate(more):
        closer = [
            trial._replace(sweep=trial.sweep._replace(knobs=refine_knobs(result.knobs, result.means[0], count)))
            for trial, result in zip(trials, results, strict=True)
        ]
        further = run_trials(closer, report(2 + number))
        results = [result.plus(other) for result, other in zip(results, further, strict=True)]
    found = [TraceResult(test, {}) for _, test in judged]
    for at, (trial, result) in enumerate(zip(trials, results, strict=True)):
        one = found[at % len(judged)]
        one.results[trial.contender.name], one.settings[trial.contender.name] = result, trial.sweep.setting
    return found


def _usual_setting(contender: Contender) -> list[float]:
    known = CATALOGUE[contender.policy].usual_setting if contender.name == contender.policy else None
    return [] if known is None else [known]


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
