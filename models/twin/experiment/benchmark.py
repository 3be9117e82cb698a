"""A whole contest: every contender is tuned on the first part of the traces and judged on the last."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from models.forecast.core.series import Series
from models.policy.catalogue import CATALOGUE
from models.twin.experiment.evaluation import Sheet, compete
from models.twin.experiment.foresight import FORECASTERS, IssuedForecasts, coarseness, told
from models.twin.experiment.lanes import Contender, Lane
from models.twin.experiment.references import least_hours, optimum
from models.twin.experiment.results import ALLOWED, OPTIMUM, TraceResult
from models.twin.experiment.scenario import parts, scenario, told_from
from models.twin.experiment.setup import Setup
from models.twin.experiment.tuning import moved, refined, tuned

TUNE_SEED = 1000
"""Of the arrivals on the tuning part; the test part has those from 0 on."""


ROUND = 2
"""Further values of a knob that are tried at once; the next ones learn from what these came to."""


@dataclass(frozen=True, eq=False)
class BenchmarkCase:
    """A trace that policies are judged on, and what forecasters said of it (by `listened`)."""

    name: str
    series: Series
    said: dict[str, IssuedForecasts]


@dataclass(frozen=True)
class Effort:
    """How much is spent.

    Attributes:
        knobs, seeds: values of each on the test part; half of the knob's values are chosen by the others' violations.
        yardsticks: seeds for which optimum and bound are computed; 0 for neither.
    """

    knobs: int = 8
    seeds: int = 4
    yardsticks: int = 1


def listened(
    name: str, series: Series, setup: Setup, forecasters: Sequence[str] = FORECASTERS
) -> dict[str, IssuedForecasts]:
    """What forecasters say from the tuning part on, and before it as far as peaks are learned from.

    Raises:
        TwinError: see `scenario.parts`.
    """
    tune, _ = parts(name, series, setup)
    many = coarseness(setup.step_s(series), sum(setup.planned_s))
    return {forecaster: told(forecaster, series, told_from(series, tune, setup), many) for forecaster in forecasters}


def judged(
    cases: Sequence[BenchmarkCase], setup: Setup, contenders: Sequence[Contender], effort: Effort,
    tell: Callable[[str], None] = lambda line: None,
) -> list[TraceResult]:  # fmt: skip
    """One result per case.

    Raises:
        TwinError: a trace does not do.
    """
    cut = [parts(case.name, case.series, setup) for case in cases]
    at = [(case, *both) for case, both in zip(cases, cut, strict=True)]
    tuning = [scenario(c.name, c.series, tune, setup, range(TUNE_SEED, TUNE_SEED + 1), c.said) for c, tune, _ in at]
    tests = [scenario(c.name, c.series, test, setup, range(effort.seeds), c.said) for c, _, test in at]
    found = [TraceResult(test, {}) for test in tests]
    swept = max(effort.knobs - effort.knobs // 2, 2)  # between two values others can be placed, beside one they cannot
    for contender in contenders:
        lanes = tuned(contender, tuning, swept)
        upstream = CATALOGUE[contender.policy].upstream if contender.name == contender.policy else None
        lanes = moved(lanes, tests, upstream)
        sheets = compete(contender, lanes)
        left = effort.knobs - swept
        while left:
            some = min(ROUND, left)
            closer = [
                replace(lane, knobs=refined(sheet.knobs, sheet.violation.mean(axis=1), some))
                for lane, sheet in zip(lanes, sheets, strict=True)
            ]
            sheets = [sheet.plus(more) for sheet, more in zip(sheets, compete(contender, closer), strict=True)]
            left -= some
        for one, lane, sheet in zip(found, lanes, sheets, strict=True):
            one.sheets[contender.name], one.settings[contender.name] = sheet, lane.setting
        tell(contender.name)
    for one in found if effort.yardsticks else []:
        one.sheets[OPTIMUM] = optimum(one.scenario, min(effort.yardsticks, effort.seeds))
        one.bound.update(zip(ALLOWED, least_hours(one.scenario, 1, ALLOWED).tolist(), strict=True))
        tell(f"optimum of {one.scenario.name}")
    return found


def near(sheet: Sheet, allowed: float) -> float:
    """The knob value that came nearest to a violation, on a logarithmic scale."""
    share = np.log(np.maximum(sheet.violation.mean(axis=1), 1e-6))
    return float(sheet.knobs[int(np.argmin(np.abs(share - np.log(allowed))))])


def followed(contender: Contender, one: TraceResult, allowed: float) -> Sheet:
    """The policy once more, with one seed and the knob value that came nearest to a violation, its targets kept."""
    alone = replace(one.scenario, arrived=one.scenario.arrived[:1])
    knob = np.array([near(one.sheets[contender.name], allowed)])
    return compete(contender, [Lane(alone, one.settings[contender.name], knob)], keep=True)[0]
