"""The versions of a forecaster that have served: how right they were, and which one may serve again."""

from __future__ import annotations

import pandas as pd

from models.forecast.baselines.naive import Naive
from models.forecast.core.forecaster import Task
from pipelines.figures.written import find_commit
from pipelines.lake.load import LakeSeries
from pipelines.registry import Registry, TrackedRun
from pipelines.registry.aliases import PREVIOUS
from pipelines.registry.artifacts import UnreadableError
from pipelines.registry.way_back import served_before
from pipelines.report.accuracy import error_by_version, match_forecasts
from pipelines.train.forecaster.card import model_card
from pipelines.train.promotion import load_champion

LATELY_STEPS, LATELY_S = 4, 3600.0
"""A champion serves if a forecast of it came in so many of the load's newest steps, or seconds of job time."""


def let_one_serve(registry: Registry, run: TrackedRun, job: str, task: Task, source: LakeSeries) -> None:
    """Where a job has no champion that servers take, make the version champion that served before (`reinstate`).

    Where that cannot be either, a seasonal naive forecast is registered and made champion. Servers refuse a champion
    that cannot be read, or is for steps of another length than the task's; these would have no forecast after a start.
    One whose forecasts came lately stays: it may be only here that it cannot be read, as by an older release.

    Raises:
        RegistryError, MlflowException, OSError: MLflow does not answer, or the model is not this deployment's.
        MessageError: no job can have the name.
    """
    version, champion, _ = load_champion(registry, job)
    if champion is not None and champion.step_s == task.step_s:
        return
    if version is not None and _forecasts_lately(registry, job, version, task, source):
        return
    if reinstate(registry, job, task) is None:
        naive = Naive(task)
        note = "It needs no training; it is registered first, so that the job is never without a forecast."
        card = model_card(job, naive, source, {}, note, run.id, find_commit())
        registry.succeed(job, registry.register(run, job, naive, card, source.lineage()), version)


def _forecasts_lately(registry: Registry, job: str, version: str, task: Task, source: LakeSeries) -> bool:
    if (served := source.served) is None:
        return False
    since = source.series.end - max(LATELY_STEPS * task.step_s, LATELY_S)
    its = served[(served["version"] == version) & (served["step_s"] == task.step_s) & (served["time"] > since)]
    return not _of_registered(registry, job, its).empty


def reinstate(registry: Registry, job: str, task: Task) -> str | None:
    """Make the version champion again that served before the present one, which was deleted in MLflow or cannot serve.

    It is none that a person took back; what a rollback holds is held on (`taken_back`).

    Args:
        registry: of forecasters.
        job: its name; it has no champion, or one that is to serve no more.
        task: what is forecast now; a version for another step, horizon or levels is not taken.

    Returns:
        The version, or the one that a person let serve meanwhile; None where none is left that has served, or that one
        is of another task or cannot be read, and nothing has changed.

    Raises:
        RegistryError, MlflowException, OSError: MLflow does not answer, or the model is not this deployment's.
        MessageError: no job can have the name.
    """
    present, previous = registry.champion_version(job), registry.alias_version(job, PREVIOUS)
    last = served_before(registry.versions(job), present or "", previous)
    if last is None:
        return None
    try:
        made = registry.load(job, last)
    except UnreadableError:
        return None
    if (made.step_s, made.horizon, made.levels) != (task.step_s, task.horizon, task.levels):
        return None
    return last if registry.succeed(job, last, present) else registry.champion_version(job)


def score_served_versions(
    registry: Registry, run: TrackedRun, job: str, source: LakeSeries
) -> dict[str, dict[str, float]]:
    """Score the forecasts that each registered version served against the load that followed.

    Writes each figure as tag `live.<figure>` of the version and as metric `live.v<version>.<figure>` of the run.
    Left out are versions that are not registered, those of whose forecast steps no load is known yet, forecasts in
    steps of another length than the load's, as from before `training.step_s` was changed, and those issued before their
    version was registered: they are of another one, whose model was deleted since, or its whole MLflow.

    Returns:
        By version, as text: `n` (forecast steps whose load is known), `wape` (Σ|median - load| / Σ load), `rmse` (of
        the median, records/s), `coverage_90` (share 0..1 at or under the quantile nearest to 0.9), `wape_last_value`
        (WAPE of the load before the forecast as forecast); an undefined one is missing. Empty where nothing was served.

    Raises:
        RegistryError, MlflowException: MLflow does not answer.
        MessageError: no job can have the name.
    """
    if source.served is None:
        return {}
    served = _of_registered(registry, job, source.served[source.served["step_s"] == source.series.step_s])
    found = {}
    for version, errors in error_by_version(match_forecasts(served, source.series)).items():
        figures = {k: float(v) for k, v in errors.items() if isinstance(v, int | float) and k != "level"}
        if not figures["n"]:
            continue  # nothing has come yet of what it forecast
        registry.set_version_tags(job, version, {f"live.{name}": f"{value:g}" for name, value in figures.items()})
        run.metrics({f"live.v{version}.{name}": value for name, value in figures.items()})
        found[version] = figures
    return found


def _of_registered(registry: Registry, job: str, served: pd.DataFrame) -> pd.DataFrame:
    """Forecasts by versions that are registered, issued since they are: both by the wall clock."""
    made = {version: registry.made_at(job, version) for version in served["version"].unique()}
    since = served["version"].map({version: at for version, at in made.items() if at is not None})
    return served[served["wall_time"] >= since.astype(float)]
