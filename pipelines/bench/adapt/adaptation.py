"""Every shipped load as a source for every other: what a short history is served, between its two bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from models.adapt.candidates import CandidateErrors, Target, TransferSource, adapted, learn, of_source, of_target
from models.adapt.dtw import ShapeDistance as Likeness
from models.adapt.dtw import compare
from models.adapt.served import OWN, ServedForecasts, serve
from models.adapt.transfer import TransferPlan
from models.forecast.core.forecaster import DAY_S, Task, fill
from models.forecast.core.scores import rmse
from models.forecast.core.series import Floats, Series, SeriesError
from pipelines.traces.shipped import shipped

STEP_S = 300.0
SOURCE_DAYS = 14
"""A source teaches by its first two weeks: no shipped target is served while its source still learns."""
SERVED_DAYS = 3
_SEED = 4


@dataclass(frozen=True, eq=False)
class Domain:
    """A load of the comparison, gaps filled."""

    name: str
    series: Series


@dataclass(frozen=True)
class Study:
    """What is compared.

    Attributes:
        days: lengths of the target's history.
        cuts: moments per target at which serving begins.
        everywhere: whether the network is adapted also where the source's shape was refused, for the ungated figures of
            the shortest history at the first moment.
        horizon: steps ahead.
        plan: how networks travel.
    """

    days: tuple[int, ...] = (1, 3, 7)
    cuts: int = 2
    everywhere: bool = True
    horizon: int = 12
    plan: TransferPlan = field(default_factory=TransferPlan)


@dataclass(frozen=True, eq=False)
class Pair:
    """One source for one target at one moment.

    Attributes:
        source, target: names.
        days: of the target's history.
        cut: which moment, counted from 0.
        likeness: how near the source's shape lies.
        served: what the gates let through.
        errors: (rows, p) per model: candidates as they are, `served`, `frozen`, `no_source`.
    """

    source: str
    target: str
    days: int
    cut: int
    likeness: Likeness
    served: ServedForecasts
    errors: dict[str, Floats]


def domains() -> list[Domain]:
    """Every shipped series with steps of 5 minutes; missing steps hold what was a week, a day or a step before."""
    task = Task(STEP_S, 1, (0.5,))
    found = [(one.name, one.series()) for one in shipped() if one.step_s == STEP_S]
    return [Domain(name, Series(s.start, s.step_s, fill(s.values, task))) for name, s in found]


def pairs(loads: Sequence[Domain], study: Study, tell: Callable[[str], None]) -> Iterator[Pair]:
    """Every ordered pair at every cut and length of history.

    Raises:
        SeriesError: fewer than two loads, or steps that differ.
    """
    if len(loads) < 2 or len({load.series.step_s for load in loads}) > 1:
        raise SeriesError(f"{[load.name for load in loads]}: at least two series of one step are expected")
    day = round(DAY_S / loads[0].series.step_s)
    sources: dict[str, tuple[Series, TransferSource]] = {}
    for number, load in enumerate(loads):
        older = Series(load.series.start, load.series.step_s, load.series.values[: SOURCE_DAYS * day])
        sources[load.name] = older, learn(older.values, day, study.horizon, study.plan, _SEED + number)
    tell(f"{len(sources)} sources have learned")
    for load in loads:
        for index, cut in enumerate(cuts(len(load.series), day, study.cuts)):
            for days in study.days:
                if cut >= days * day:
                    yield from _at(load, cut, index, days, day, sources, study)
        tell(f"{load.name} was served")


def cuts(steps: int, day: int, count: int) -> list[int]:
    """Steps at which serving begins: evenly over what leaves a week (else half) before and the served days after."""
    last = steps - SERVED_DAYS * day
    first = min(max(7 * day, steps // 2), last)
    return sorted({round(cut) for cut in np.linspace(last, first, count)}, reverse=True) if last > day else []


def _at(
    load: Domain,
    cut: int,
    index: int,
    days: int,
    day: int,
    sources: dict[str, tuple[Series, TransferSource]],
    study: Study,
) -> Iterator[Pair]:
    series, step_s = load.series, load.series.step_s
    first = cut - days * day
    target = Target(series.values[first : cut + SERVED_DAYS * day], days * day, day, study.horizon)
    known = Series(series.start + first * step_s, step_s, target.past)
    own = of_target(target, study.plan, _SEED)
    without = serve(target, own, {}, np.zeros(4))
    for name, (older, source) in sources.items():
        served_from, served_to = known.end, known.end + SERVED_DAYS * DAY_S
        if name == load.name or (older.start < served_to and served_from < older.end):
            continue  # a source must not have lived through the days it is judged on
        likeness = compare(older, known, np.random.default_rng(_SEED))
        theirs = of_source(target, source)
        if likeness.kept or (study.everywhere and index == 0 and days == min(study.days)):
            theirs["adapted"] = adapted(target, source, study.plan, _SEED)
        given = serve(target, own, theirs if likeness.kept else {}, source.rule if likeness.kept else source.rule * 0)
        yield Pair(name, load.name, days, index, likeness, given, _errors(target, own, theirs, given, without))


def _errors(
    target: Target,
    own: dict[str, CandidateErrors],
    theirs: dict[str, CandidateErrors],
    given: ServedForecasts,
    without: ServedForecasts,
) -> dict[str, Floats]:
    rows = slice(target.history - 1, None)
    plain = {name: one.errors[rows] for name, one in {**own, **theirs}.items()}
    return {
        **plain,
        "target_only": plain[given.target_only],
        "frozen": plain[given.frozen],
        "no_source": without.errors,
        "served": given.errors,
    }


def figures(found: Sequence[Pair], study: Study) -> dict[str, Any]:
    """Ratios of RMSE to target only, per pair and over all pairs, one step ahead and over all steps ahead."""
    by_days: dict[str, Any] = {}
    for days in study.days:
        here = [pair for pair in found if pair.days == days]
        if here:
            by_days[str(days)] = _of_days(here)
    return {"horizon": study.horizon, "cuts": study.cuts, "served_days": SERVED_DAYS, "days": by_days}


def _of_days(found: Sequence[Pair]) -> dict[str, Any]:
    names = sorted({(pair.target, pair.source) for pair in found})
    rows = [_row([pair for pair in found if (pair.target, pair.source) == name]) for name in names]
    measured = {model: _summary(rows, model) for model in _models(rows)}
    own = [one for pair in found for one in (_hindsight(pair),)]
    return {
        "pairs": len(rows),
        "cases": len(found),
        "kept": sum(pair.likeness.kept for pair in found),
        "accepted": sum(pair.served.verdict is not None and pair.served.verdict.accepted for pair in found),
        "begun_with_source": sum(pair.served.frozen not in OWN for pair in found),
        "rows_from_source": float(np.mean([pair.served.from_source for pair in found])),
        "hindsight": {horizon: _geometric([one[horizon] for one in own]) for horizon in ("1", "all")},
        "models": measured,
        "table": rows,
    }


def _row(cases: Sequence[Pair]) -> dict[str, Any]:
    """One pair: ratios are geometric means over its moments."""
    ratios = {}
    for model in dict.fromkeys(model for case in cases for model in case.errors):
        both = [_ratio(case.errors, model) for case in cases if model in case.errors]
        ratios[model] = {"1": _geometric([one for one, _ in both]), "all": _geometric([whole for _, whole in both])}
    return {
        "target": cases[0].target,
        "source": cases[0].source,
        "likeness": float(np.median([case.likeness.ratio for case in cases])),
        "kept": sum(case.likeness.kept for case in cases),
        "cases": len(cases),
        "rows_from_source": float(np.mean([case.served.from_source for case in cases])),
        "ratios": ratios,
    }


def _ratio(errors: dict[str, Floats], model: str, against: str = "target_only") -> tuple[float, float]:
    """RMSE one step ahead and over all steps ahead, ÷ that of another model."""
    zero = np.zeros_like(errors[model])
    one = rmse(errors[model][:, 0], zero[:, 0]) / rmse(errors[against][:, 0], zero[:, 0])
    return one, rmse(errors[model], zero) / rmse(errors[against], zero)


def _hindsight(pair: Pair) -> dict[str, float]:
    """Served ÷ the best of the target's own models as the test rows themselves would choose it."""
    both = [_ratio(pair.errors, "served", name) for name in OWN]
    return {"1": max(one for one, _ in both), "all": max(whole for _, whole in both)}


def _models(rows: Sequence[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(model for row in rows for model in row["ratios"]))


def _summary(rows: Sequence[dict[str, Any]], model: str) -> dict[str, Any]:
    known = [row["ratios"][model] for row in rows if model in row["ratios"]]
    return {
        horizon: {
            "geometric_mean": _geometric([one[horizon] for one in known]),
            "worse_than_1.05": float(np.mean([one[horizon] > 1.05 for one in known])),
            "worst": max(one[horizon] for one in known),
        }
        for horizon in ("1", "all")
    } | {"pairs": len(known)}


def _geometric(values: Sequence[float]) -> float:
    return math.exp(float(np.mean(np.log(values))))
