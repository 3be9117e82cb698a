"""A whole benchmark: every policy is tuned on an older part of each trace and compared on the newest part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from models.forecast.core.series import Series
from models.policy.catalogue import CATALOGUE
from models.policy.core.capacity import Floats
from models.twin.experiment.contenders import Contender, Lane
from models.twin.experiment.evaluation import Sheet, compete
from models.twin.experiment.foresight import FORECASTERS, IssuedForecasts, coarseness, issued
from models.twin.experiment.results import ALLOWED, OPTIMUM, TraceResult
from models.twin.experiment.scenario import Scenario, issued_from, parts, scenario
from models.twin.experiment.setup import Setup
from models.twin.experiment.tuning import refined, tuned
from models.twin.oracle.bound import bound
from models.twin.oracle.optimum import clairvoyant
from models.twin.sim.job import stack
from models.twin.sim.run import Load, simulate

TUNE_SEED = 1000
"""Seed of the arrivals on the tuning part; the test part has seeds from 0 on."""
ROUND = 2
"""Further knob values (of the tuned parameter) per round; the next round is chosen by the results."""
BUDGETS = (0.001, 0.003, 0.01, 0.05)
"""Violations at which the optimum is computed; between them the frontier is interpolated."""


class BenchmarkCase(NamedTuple):
    """A trace to compare policies on, and its forecasts by forecaster, in the trace's own unit (see `listened`)."""

    name: str
    series: Series
    said: dict[str, IssuedForecasts]


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


def listened(
    name: str, series: Series, setup: Setup, forecasters: Sequence[str] = FORECASTERS
) -> dict[str, IssuedForecasts]:
    """Forecast a trace over its tuning and test parts, and over the past from which peaks are learned.

    Args:
        name: of the trace, for messages.
        series: the trace.
        setup: of the contest, whose lead time says how far ahead is forecast.
        forecasters: of `foresight.FORECASTERS`.

    Returns:
        Forecasts by forecaster, in the unit of the series and on its clock.

    Raises:
        TwinError: the trace is too short, or a rate is missing or negative (`scenario.parts`).
        SeriesError: an infinite rate.
    """
    tune, _ = parts(name, series, setup)
    many = coarseness(setup.step_s(series), sum(setup.planned_s))
    return {
        forecaster: issued(forecaster, series, issued_from(series, tune, setup), many) for forecaster in forecasters
    }


def judged(
    cases: Sequence[BenchmarkCase], setup: Setup, contenders: Sequence[Contender], effort: Effort,
    tell: Callable[[str], None] = lambda line: None,
) -> list[TraceResult]:  # fmt: skip
    """Run a benchmark: tune every policy on the older part of each trace and compare them on the newest part.

    This takes minutes to hours; every policy is simulated for all cases, parameter values and seeds.

    Args:
        cases: traces with the forecasts of every forecaster that a contender hears.
        setup: the same for all.
        contenders: who is compared.
        effort: how much is computed.
        tell: called with the name of each contender that is done, and then for each optimum.

    Returns:
        One result per case, in their order.

    Raises:
        TwinError: a trace is too short, or a rate is missing or negative, or it cannot be scaled to the job.
        SettingsError: a policy is unknown or cannot be built.
        KeyError: a case lacks the forecasts that a contender hears.
    """
    cut = [(case, *parts(case.name, case.series, setup)) for case in cases]
    tuning = [scenario(c.name, c.series, tune, setup, range(TUNE_SEED, TUNE_SEED + 1), c.said) for c, tune, _ in cut]
    found = [
        TraceResult(scenario(c.name, c.series, test, setup, range(effort.seeds), c.said), {}) for c, _, test in cut
    ]
    swept = max(effort.knobs - effort.knobs // 2, 2)  # between two values others can be placed, beside one they cannot
    for contender in contenders:
        upstream = CATALOGUE[contender.policy].upstream if contender.name == contender.policy else None
        more = [] if upstream is None else [upstream]
        lanes = [
            Lane(one.scenario, lane.setting, np.concatenate([lane.knobs, more]))
            for one, lane in zip(found, tuned(contender, tuning, swept), strict=True)
        ]
        sheets = compete(contender, lanes)
        for left in range(effort.knobs - swept, 0, -ROUND):
            closer = [
                lane._replace(knobs=refined(sheet.knobs, sheet.means[0], min(ROUND, left)))
                for lane, sheet in zip(lanes, sheets, strict=True)
            ]
            sheets = [sheet.plus(more) for sheet, more in zip(sheets, compete(contender, closer), strict=True)]
        for one, lane, sheet in zip(found, lanes, sheets, strict=True):
            one.sheets[contender.name], one.settings[contender.name] = sheet, lane.setting
        tell(contender.name)
    for one in found if effort.oracle else []:
        one.sheets[OPTIMUM] = optimum(one.scenario)
        one.bound.update(zip(ALLOWED, least_hours(one.scenario, ALLOWED).tolist(), strict=True))
        tell(f"optimum of {one.scenario.name}")
    return found


def optimum(scenario: Scenario, budgets: tuple[float, ...] = BUDGETS) -> Sheet:
    """Compute the clairvoyant optimum of a scenario under the load of its first seed, one plan per budget.

    Plans cover all seconds of the scenario; cost and late seconds count after its warm-up, as for every policy.

    Args:
        scenario: to plan for.
        budgets: shares of the seconds that may be over the target; at least one.

    Returns:
        Results with one seed, whose `knobs` are the budgets. A plan's violation is over its budget where none meets it.

    Raises:
        TwinError: the scenario is shorter than one look.
        ValueError: no budgets.
    """
    row, knobs = np.zeros(len(budgets), np.int64), np.array(budgets)
    load = Load(scenario.arrived[:1], row, counts=np.array([scenario.warm_s]))
    jobs, looks = stack([scenario.setup.the_job] * len(row)), scenario.setup.looks
    outcome = simulate(jobs, load, clairvoyant(jobs, load, looks, row, knobs), looks, row)
    return Sheet.of(knobs, 1, outcome, slice(None), len(outcome.targets))


def least_hours(scenario: Scenario, budgets: tuple[float, ...]) -> Floats:
    """Compute executor-hours that no policy can stay below, (budgets,), under the load of the first seed after warm-up.

    Args:
        scenario: whose job and load.
        budgets: shares of the seconds that may be over the target.

    Raises:
        ValueError: no budgets.
    """
    arrived = scenario.arrived[:1, scenario.warm_s :]
    load = Load(arrived - arrived[:, :1], np.zeros(len(budgets), np.int64))
    return bound(stack([scenario.setup.the_job] * len(budgets)), load, scenario.setup.looks, np.array(budgets)) / 3600
