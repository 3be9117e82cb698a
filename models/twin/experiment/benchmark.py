"""A whole contest: every entrant is tuned on the first part of the traces and judged on the last."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from models.forecast.core.series import Series
from models.policy.catalogue import CATALOGUE
from models.twin.experiment.evaluation import Entrant, Lane, Sheet, compete
from models.twin.experiment.foresight import FORECASTERS, Told, coarseness, told
from models.twin.experiment.references import least_hours, optimum
from models.twin.experiment.results import ALLOWED, OPTIMUM, Judged
from models.twin.experiment.scenario import ground, parts, told_from
from models.twin.experiment.setup import Terms
from models.twin.experiment.tuning import moved, refined, tuned

TUNE_SEED = 1000
"""Of the arrivals on the tuning part; the test part has those from 0 on."""


ROUND = 2
"""Further values of a knob that are tried at once; the next ones learn from what these came to."""


@dataclass(frozen=True, eq=False)
class Case:
    """A trace that policies are judged on, and what forecasters said of it (by `listened`)."""

    name: str
    series: Series
    said: dict[str, Told]


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


def listened(name: str, series: Series, terms: Terms, forecasters: Sequence[str] = FORECASTERS) -> dict[str, Told]:
    """What forecasters say from the tuning part on, and before it as far as peaks are learned from.

    Raises:
        TwinError: see `ground.parts`.
    """
    tune, _ = parts(name, series, terms)
    many = coarseness(terms.step_s(series), sum(terms.planned_s))
    return {forecaster: told(forecaster, series, told_from(series, tune, terms), many) for forecaster in forecasters}


def judged(
    cases: Sequence[Case], terms: Terms, entrants: Sequence[Entrant], effort: Effort,
    tell: Callable[[str], None] = lambda line: None,
) -> list[Judged]:  # fmt: skip
    """One result per case.

    Raises:
        TwinError: a trace does not do.
    """
    cut = [parts(case.name, case.series, terms) for case in cases]
    at = [(case, *both) for case, both in zip(cases, cut, strict=True)]
    tuning = [ground(c.name, c.series, tune, terms, range(TUNE_SEED, TUNE_SEED + 1), c.said) for c, tune, _ in at]
    tests = [ground(c.name, c.series, test, terms, range(effort.seeds), c.said) for c, _, test in at]
    found = [Judged(test, {}) for test in tests]
    swept = max(effort.knobs - effort.knobs // 2, 2)  # between two values others can be placed, beside one they cannot
    for entrant in entrants:
        lanes = tuned(entrant, tuning, swept)
        upstream = CATALOGUE[entrant.policy].upstream if entrant.name == entrant.policy else None
        lanes = moved(lanes, tests, upstream)
        sheets = compete(entrant, lanes)
        left = effort.knobs - swept
        while left:
            some = min(ROUND, left)
            closer = [
                replace(lane, knobs=refined(sheet.knobs, sheet.violation.mean(axis=1), some))
                for lane, sheet in zip(lanes, sheets, strict=True)
            ]
            sheets = [sheet.plus(more) for sheet, more in zip(sheets, compete(entrant, closer), strict=True)]
            left -= some
        for one, lane, sheet in zip(found, lanes, sheets, strict=True):
            one.sheets[entrant.name], one.settings[entrant.name] = sheet, lane.setting
        tell(entrant.name)
    for one in found if effort.yardsticks else []:
        one.sheets[OPTIMUM] = optimum(one.ground, min(effort.yardsticks, effort.seeds))
        one.bound.update(zip(ALLOWED, least_hours(one.ground, 1, ALLOWED).tolist(), strict=True))
        tell(f"optimum of {one.ground.name}")
    return found


def near(sheet: Sheet, allowed: float) -> float:
    """The knob value that came nearest to a violation, on a logarithmic scale."""
    share = np.log(np.maximum(sheet.violation.mean(axis=1), 1e-6))
    return float(sheet.knobs[int(np.argmin(np.abs(share - np.log(allowed))))])


def followed(entrant: Entrant, one: Judged, allowed: float) -> Sheet:
    """The policy once more, with one seed and the knob value that came nearest to a violation, its targets kept."""
    alone = replace(one.ground, arrived=one.ground.arrived[:1])
    knob = np.array([near(one.sheets[entrant.name], allowed)])
    return compete(entrant, [Lane(alone, one.settings[entrant.name], knob)], keep=True)[0]
