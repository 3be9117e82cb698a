"""Every shipped load as a source for every other: what the training chooses for a short history, and its bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import pandas as pd

from configs.sections import Training
from models.adapt.candidates import (
    TransferSource,
    best_own_candidate,
    fit_own_candidates,
    pretrain_source,
    score_source_only,
)
from models.adapt.sources import TransferResult, transfer_from_sources
from models.adapt.target_load import TargetLoad
from models.adapt.training import TransferPlan
from models.forecast.core.forecaster import Forecaster, Task, fill_gaps
from models.forecast.core.series import Floats, Series, SeriesError
from models.forecast.selection.backtest import roll
from models.forecast.selection.catalogue import default_kind
from models.forecast.selection.champion import ChampionChoice, choose_champion
from pipelines.html.columns import of_rows
from pipelines.registry import TrackedRun
from pipelines.traces.shipped import list_shipped
from pipelines.train.forecaster.candidates import Candidates
from pipelines.train.transfer.sources import TARGET

STEP_S = 300.0
SOURCE_DAYS = 14
"""A source is its first two weeks: no shipped target is served while its source still learns."""
SERVED_DAYS = 3
MODELS = {
    "served": "served: what the training chooses",
    "no_source": "the same without a source",
    TARGET: "adapted network, ungated",
    "source_only": "source as is",
    "ridge": "target only: ridge",
    "gru": "target only: GRU",
    "last_value": "last value",
}
_SEED = 4


@dataclass(frozen=True)
class Study:
    """What is compared.

    Attributes:
        days: lengths of the target's history.
        cuts: moments per target at which serving begins.
        training: the settings by which a forecaster is chosen.
        plan: how networks are pre-trained, adapted and fine-tuned.
    """

    days: tuple[int, ...] = (1, 3, 7)
    cuts: int = 2
    training: Training = field(default_factory=lambda: Training(step_s=STEP_S))
    plan: TransferPlan = field(default_factory=TransferPlan)

    @property
    def task(self) -> Task:
        """Step, horizon and quantile levels of the training settings."""
        return Task(self.training.step_s, self.training.horizon, self.training.levels)

    def choose(self, known: Series, others: Mapping[str, Series]) -> ChampionChoice:
        """Choose the forecaster that a training would choose for a history.

        Args:
            known: the history.
            others: loads of other jobs, by name, from which a network may be adapted.

        Raises:
            SeriesError: no candidate can be fitted to the history.
        """
        candidates = Candidates(cast(TrackedRun, _Unlogged()), self.training, others, "", plan=self.plan)
        default = default_kind(self.training.models)
        return choose_champion(self.task, known, candidates.fit_functions(self.task, known), default)


@dataclass(frozen=True, eq=False)
class TransferCase:
    """What a source was worth for a target from one moment on.

    Attributes:
        source: name of the load that others learn from.
        target: name of the load that is forecast.
        days: of the target's history.
        asked: the adapted forecaster where the source's shape was near enough, and whether it beat the target's own
            models.
        chosen: the kind of forecaster that serves.
        errors: by model, (served steps, steps ahead) outcome minus median in the load's unit: those of MODELS that
            there are, and `target_only`, the best model from the target's own history.
    """

    source: str
    target: str
    days: int
    asked: TransferResult
    chosen: str
    errors: dict[str, Floats]


class _Unlogged:
    """A run that keeps nothing of what it is given."""

    def metrics(self, values: Mapping[str, float], step: int = 0) -> None: ...

    def tags(self, values: Mapping[str, str]) -> None: ...


def read_loads() -> dict[str, Series]:
    """Read each shipped series of 5-minute steps, by name; missing steps are filled from a week, day or step before."""
    task = Task(STEP_S, 1, (0.5,))
    found = {one.name: one.series() for one in list_shipped() if one.step_s == STEP_S}
    return {name: Series(s.start, s.step_s, fill_gaps(s.values, task)) for name, s in found.items()}


def evaluate_pairs(loads: Mapping[str, Series], study: Study, tell: Callable[[str], None]) -> Iterator[TransferCase]:
    """Try every load as a source for every other, at every moment and length of history.

    Left out are pairs in which the source covers any of the time that the target is served, and histories that begin
    before the target does. Slow: every case adapts a network and chooses a forecaster.

    Args:
        loads: by name, all of one step, none missing.
        study: moments, lengths of history and settings.
        tell: is called with a line of progress now and then.

    Yields:
        One result per source, target, moment and length, as they are found; nothing is done before the first is asked.

    Raises:
        SeriesError: fewer than two loads, or steps that differ; a load is constant or too short to learn from.
    """
    if len(loads) < 2 or len({load.step_s for load in loads.values()}) > 1:
        raise SeriesError(f"{list(loads)}: at least two series of one step are expected")
    day = study.task.day
    olds = {name: load.split(len(load) - SOURCE_DAYS * day)[0] for name, load in loads.items()}
    learned = {name: pretrain_source(old.values, study.task.horizon, study.plan, _SEED) for name, old in olds.items()}
    tell(f"{len(learned)} sources have learned")
    for name, load in loads.items():
        for cut in place_cuts(len(load), day, study.cuts):
            for days in study.days:
                if cut >= days * day:
                    yield from _at(name, load, cut, days, olds, learned, study)
        tell(f"{name} was served")


def place_cuts(steps: int, day: int, count: int) -> list[int]:
    """Spread moments at which serving begins evenly from half the series (a week at least) to 3 days before its end.

    Args:
        steps: of the series.
        day: steps per day.
        count: how many, at most.

    Returns:
        Indices, latest first; empty where the series has 4 days or fewer.
    """
    last = steps - SERVED_DAYS * day
    first = min(max(7 * day, steps // 2), last)
    return sorted({round(cut) for cut in np.linspace(last, first, count)}, reverse=True) if last > day else []


def _at(
    name: str, load: Series, cut: int, days: int, olds: Mapping[str, Series], learned: Mapping[str, TransferSource],
    study: Study,
) -> Iterator[TransferCase]:  # fmt: skip
    day = study.task.day
    values = load.values[cut - days * day : cut + SERVED_DAYS * day]
    known, held = Series(load.start + (cut - days * day) * load.step_s, load.step_s, values).split(SERVED_DAYS * day)
    target = TargetLoad(values, len(known), day, study.task.horizon)
    own = fit_own_candidates(target, study.plan, _SEED)
    served = slice(target.history - 1, -1)
    errors = {model: one.errors[served] for model, one in own.items()}
    alone = study.choose(known, {})
    errors |= {
        "target_only": errors[best_own_candidate(target, own)],
        "no_source": _errors(alone.forecaster, known, held),
    }
    for other, older in olds.items():
        if other == name or (older.start < held.end and known.end < older.end):
            continue  # a source must not have lived through the days it is judged on
        asked = transfer_from_sources(study.task, known, {other: older}, study.plan, _SEED)
        chosen = study.choose(known, {other: older}) if asked.forecasters else alone  # a refused source changes nothing
        as_is = score_source_only(target, learned[other])
        theirs = {"source_only": as_is.errors[served], "served": _errors(chosen.forecaster, known, held)}
        if asked.forecasters:
            theirs[TARGET] = _errors(asked.forecasters[other], known, held)
        yield TransferCase(other, name, days, asked, chosen.name, errors | theirs)


def _errors(forecaster: Forecaster, known: Series, held: Series) -> Floats:
    """(rows, p) outcomes minus medians, served from the end of the history on."""
    made = roll(forecaster, known, held)
    return made.actual - made.median


def summarise_pairs(found: Sequence[TransferCase], study: Study) -> dict[str, Any]:
    """Summarise pairs as RMSE ÷ that of `target_only`, the best model from the target's own history.

    Returns:
        `horizon`, `cuts`, `served_days`; `days`: by length of history `pairs`, `cases` (pairs × moments), `kept` (cases
        whose source had a shape near enough), `accepted` (adapted networks that beat the target's own models), `chosen`
        (cases in which one serves), and `models`: by model `pairs` and, for "1" step ahead and "all", `geometric_mean`,
        `worse_than_1.05` (share of pairs) and `worst`; `models`: the same as rows of a table.

    Raises:
        KeyError: there is no pair.
    """
    logs = pd.DataFrame(
        {"days": str(pair.days), "target": pair.target, "source": pair.source, "model": model}
        | _log_ratios(pair, model)
        for pair in found
        for model in pair.errors
    )
    pairs = logs.groupby(["days", "target", "source", "model"]).mean()  # over a pair's moments
    by_days = {}
    for days, here in pairs.groupby("days"):
        cases = [pair for pair in found if str(pair.days) == days]
        by_days[str(days)] = {
            "pairs": here.groupby(["target", "source"]).ngroups,
            "cases": len(cases),
            "kept": sum(bool(pair.asked.forecasters) for pair in cases),
            "accepted": sum(one.accepted for pair in cases for one in pair.asked.verdicts.values()),
            "chosen": sum(pair.chosen == TARGET for pair in cases),
            "models": {str(model): _summary(of_model) for model, of_model in here.groupby("model")},
        }
    return {
        "horizon": study.task.horizon, "cuts": study.cuts, "served_days": SERVED_DAYS, "days": by_days,
        "models": [_line(model, words, by_days, study.task.horizon) for model, words in MODELS.items()],
    }  # fmt: skip


def format_summary(found: Mapping[str, Any]) -> str:
    """Format `summarise_pairs` as text: a line per model with its geometric means, then what became of the sources."""
    lines = of_rows(found["models"])
    for days, data in found["days"].items():
        lines.append(
            f"{days} day{'s' * (days != '1')} of history: {data['pairs']} pairs, {data['cases']} cases; "
            f"shape kept {data['kept']}, network accepted {data['accepted']}, chosen {data['chosen']}"
        )
    return "\n".join(lines)


def _log_ratios(pair: TransferCase, model: str) -> dict[str, float]:
    """Logarithm of RMSE one step ahead and over all steps ahead, ÷ that of target only."""
    mine, own = (np.square(pair.errors[name]) for name in (model, "target_only"))
    parts = {"1": slice(1), "all": slice(None)}
    return {name: float(np.log(np.nanmean(mine[:, h]) / np.nanmean(own[:, h]))) / 2 for name, h in parts.items()}


def _summary(logs: pd.DataFrame) -> dict[str, Any]:
    """Of a model's log ratios, a row per pair."""
    return {
        horizon: {
            "geometric_mean": float(np.exp(logs[horizon].mean())),
            "worse_than_1.05": float((logs[horizon] > np.log(1.05)).mean()),
            "worst": float(np.exp(logs[horizon].max())),
        }
        for horizon in ("1", "all")
    } | {"pairs": len(logs)}


def _line(model: str, words: str, by_days: Mapping[str, Any], horizon: int) -> dict[str, Any]:
    """A model's line of the table."""
    line: dict[str, Any] = {"RMSE ÷ target only": words}
    for days, data in by_days.items():
        known = data["models"].get(model)
        for part, ahead in (("1", "1 step"), ("all", f"1-{horizon}")):
            line[f"{days} d: {ahead}"] = round(known[part]["geometric_mean"], 3) if known else None
        line[f"{days} d: pairs, worst"] = f"{known['pairs']}, {known['all']['worst']:.3f}" if known else None
    return line
