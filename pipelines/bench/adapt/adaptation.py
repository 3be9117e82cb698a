"""Every shipped load as a source for every other: what the training chooses for a short history, and its bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import cast

import numpy as np

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
from pipelines.registry import TrackedRun
from pipelines.traces.shipped import list_shipped
from pipelines.train.forecaster.candidates import Candidates
from pipelines.train.transfer.sources import TARGET

STEP_S = 300.0
SOURCE_DAYS = 14
"""A source is its first two weeks: no shipped target is served while its source still learns."""
SERVED_DAYS = 3
SEED = 4


@dataclass(frozen=True)
class Study:
    """What is compared.

    Attributes:
        days: lengths of the target's history.
        cuts: moments per target at which serving begins.
        training: the settings by which a forecaster is chosen.
        plan: how networks are pre-trained, adapted and fine-tuned.
    """

    days: tuple[float, ...] = (0.5, 1, 2)
    cuts: int = 2
    training: Training = field(default_factory=lambda: Training(step_s=STEP_S))
    plan: TransferPlan = field(default_factory=TransferPlan)

    @property
    def task(self) -> Task:
        """Step, horizon and quantile levels of the training settings."""
        return Task(self.training.step_s, self.training.horizon, self.training.levels)

    def choose_forecaster(self, known: Series, others: Mapping[str, Series]) -> ChampionChoice:
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
    """How models forecast a target from one moment on, with one source to learn from.

    Attributes:
        source: name of the load that others learn from.
        target: name of the load that is forecast.
        days: of the target's history.
        transfer: the adapted forecaster where the source's shape was near enough, and whether it beat the target's own
            models.
        chosen: the kind of forecaster that serves.
        errors: by model, (served steps, steps ahead) outcome minus median in the load's unit: those of
            `summary.MODELS` that could be made, and `target_only`, the best model from the target's own history.
    """

    source: str
    target: str
    days: float
    transfer: TransferResult
    chosen: str
    errors: dict[str, Floats]


class _Unlogged:
    """A run that keeps nothing of what it is given."""

    def metrics(self, values: Mapping[str, float]) -> None: ...

    def tags(self, values: Mapping[str, str]) -> None: ...


def read_loads() -> dict[str, Series]:
    """Read each shipped series of 5-minute steps, by name; missing steps are filled from a week, day or step before.

    Raises:
        TraceError, SeriesError: a file is gone or damaged, see `read_series`.
    """
    task = Task(STEP_S, 1, (0.5,))
    found = {one.name: one.series() for one in list_shipped() if one.step_s == STEP_S}
    return {name: Series(s.start, s.step_s, fill_gaps(s.values, task)) for name, s in found.items()}


def evaluate_pairs(
    loads: Mapping[str, Series], study: Study, report_progress: Callable[[str], None]
) -> Iterator[TransferCase]:
    """Forecast every load from a short history with every other load as the source, at every cut and length of history.

    Left out are pairs whose source (its first 14 days) covers any of the 3 days that the target is served, and
    histories that begin before the target does. Lazy: a network per source is trained at the first `next`; every case
    adapts one and chooses a forecaster.

    Args:
        loads: by name, records/s or any other unit, all of one step, no step missing (see `read_loads`).
        study: cuts, lengths of history and settings.
        report_progress: called with a line of text once all sources are trained, then as each target is done.

    Yields:
        One case per target, cut (latest first), length of history and source, in this order.

    Raises:
        SeriesError: fewer than two loads, or steps that differ; a load is constant, too short to learn from or has a
            NaN.
    """
    if len(loads) < 2 or len({load.step_s for load in loads.values()}) > 1:
        raise SeriesError(f"{list(loads)}: at least two series of one step are expected")
    day = study.task.day
    sources = {name: older_part(load, day) for name, load in loads.items()}
    learned = {
        name: pretrain_source([old.values], study.task.horizon, study.plan, SEED) for name, old in sources.items()
    }
    report_progress(f"{len(learned)} sources have learned")
    for name, load in loads.items():
        for cut in place_cuts(len(load), day, study.cuts):
            for days in study.days:
                if cut >= days * day:
                    yield from _cases_at(name, load, cut, days, sources, learned, study)
        report_progress(f"{name} was served")


def older_part(load: Series, day: int) -> Series:
    """Return the first 14 days of a load, or all of it, from which others may learn; a day has `day` steps."""
    return load.split(len(load) - SOURCE_DAYS * day)[0]


def place_cuts(steps: int, day: int, count: int) -> list[int]:
    """Place cuts between history and served steps evenly, from mid-series (a week at least) to 3 days before its end.

    Args:
        steps: of the series.
        day: steps per day.
        count: of cuts, at most.

    Returns:
        Index of the first served step of each cut, latest first; [] where the series has 4 days or fewer.
    """
    last = steps - SERVED_DAYS * day
    first = min(max(7 * day, steps // 2), last)
    return sorted({round(cut) for cut in np.linspace(last, first, count)}, reverse=True) if last > day else []


def _cases_at(
    name: str, load: Series, cut: int, days: float, sources: Mapping[str, Series],
    learned: Mapping[str, TransferSource], study: Study,
) -> Iterator[TransferCase]:  # fmt: skip
    day = study.task.day
    steps = round(days * day)
    values = load.values[cut - steps : cut + SERVED_DAYS * day]
    known, held = Series(load.start + (cut - steps) * load.step_s, load.step_s, values).split(SERVED_DAYS * day)
    target = TargetLoad(values, len(known), day, study.task.horizon)
    own = fit_own_candidates(target, study.plan, SEED)
    served = slice(target.history - 1, -1)
    errors = {model: one.errors[served] for model, one in own.items()}
    alone = study.choose_forecaster(known, {})
    errors |= {
        "target_only": errors[best_own_candidate(target, own)],
        "no_source": errors_while_served(alone.forecaster, known, held),
    }
    for other, older in sources.items():
        if other == name or (older.start < held.end and known.end < older.end):
            continue  # a source must not have lived through the days it is judged on
        transfer = transfer_from_sources(study.task, known, {other: older}, study.plan, SEED)
        # A refused source changes nothing.
        chosen = study.choose_forecaster(known, {other: older}) if transfer.forecasters else alone
        as_is = score_source_only(target, learned[other])
        theirs = {"source_only": as_is.errors[served], "served": errors_while_served(chosen.forecaster, known, held)}
        if transfer.forecasters:
            theirs[TARGET] = errors_while_served(transfer.forecasters[other], known, held)
        yield TransferCase(other, name, days, transfer, chosen.name, errors | theirs)


def errors_while_served(forecaster: Forecaster, known: Series, held: Series) -> Floats:
    """Return (rows, p) outcomes minus medians, in the load's unit, served from the end of the history on."""
    made = roll(forecaster, known, held)
    return made.actual - made.median
