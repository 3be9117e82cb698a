"""What the retrain DAG calls: train a forecaster on the lake, compare it with what serves, judge it, promote it."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from configs.sections import Training
from configs.settings import Settings, load
from models.forecast.selection.gate import Rival, Verdict, decide_promotion
from pipelines.lake import tables as lake
from pipelines.lake.folder import lake_folder
from pipelines.registry import Registry, RegistryError
from pipelines.train.form import with_form_values
from pipelines.train.promotion import (
    decide,
    is_settled,
    promote_winner,
    reject_winner,
    verdict_record,
)
from pipelines.train.turns import longest_waiting_first


class UnchangedError(Exception):
    """A training that would only repeat that of the newest version; nothing is wrong."""


def jobs_with_training_data(
    jobs: Iterable[str], drifted: Collection[str] = (), settings: Settings | None = None
) -> list[str]:
    """Return those jobs of whose load the lake holds a training step, who waits longest first; starts no Spark.

    Args:
        jobs: names.
        drifted: those whose load has drifted; they come first.
        settings: as `load()` reads them, where not given.

    Raises:
        SettingsError: a setting is wrong.
        OSError, ValueError: the log of the table `metrics` cannot be read.
        RegistryError: MLflow does not answer, where there are several jobs.
    """
    settings = settings or load()
    spans = lake.job_spans_s(lake_folder(settings))
    found = [job for job in jobs if spans.get(job, 0.0) >= settings.training.step_s]
    return longest_waiting_first(found, drifted, lambda: Registry(settings).last_trained())


def train(job: str, because: Sequence[str] = (), settings: Settings | None = None, **form: Any) -> str:
    """Fit forecasters to a job's load in the lake, register the best as `challenger`; returns the MLflow run's id.

    Blocks for minutes. A job without a champion (a version that serves) gets the
    seasonal naive forecast as one. `train_challenger` says what is written to MLflow.

    Args:
        job: whose load.
        because: in words, what has drifted; kept as the run's tag `because`.
        settings: as `load()` reads them, where not given.
        form: keys of `training` and their values, which override the settings.

    Raises:
        UnchangedError: without `because` and form, see `refuse_unchanged`.
        SettingsError, MessageError: a setting, a value of the form, the contract or the job's name is wrong.
        LakeError: nothing was ever ingested.
        SeriesError, TwinError: the times of the job span over a million steps, or a load is negative or infinite.
        RegistryError, MlflowException: MLflow does not answer, or refuses what is written.
        JavaError, JarsError: the lake is read by Spark, as on HDFS; no usable Java, or Delta's jars are missing.
        OSError, ValueError: the lake or `var/mlflow` cannot be read or written.
    """
    # Each task is a process of its own, and only this one needs the libraries that fit: 9 s of CPU to import.
    from pipelines.lake.load import read_lake
    from pipelines.train.forecaster.challenge import train_challenger
    from pipelines.train.forecaster.rehearsal import read_live_job

    settings = settings or load()
    training = with_form_values(settings.training, "training", form)
    source = read_lake(settings, job, training.step_s)
    registry = Registry(settings)
    if not form and not because:
        refuse_unchanged(registry, job, training, source.lineage()["data.digest"])
    live = read_live_job(settings, job, source)
    return train_challenger(registry, job, training, source, because, live)


def refuse_unchanged(registry: Registry, job: str, training: Training, digest: str) -> None:
    """Raise where a training would repeat the newest version's, as after each ingest of other jobs.

    Args:
        registry: of forecasters.
        job: whose load.
        training: the settings in force.
        digest: of the load, as `LakeSeries.lineage` has it.

    Raises:
        UnchangedError: the newest version is of this load and these settings, was judged, and is the champion (the
            version that serves) or was compared with it; and it is no winner that is still to be promoted.
        RegistryError: MLflow does not answer.
        KeyError, ValueError: the stored verdict is malformed.
    """
    last = registry.newest_version(job)
    if last is None or last.tags.get("data.digest") != digest:
        return
    made, newest = last.creation_timestamp / 1000, str(last.version)
    try:
        _, parameters, tags = registry.figures(str(last.run_id))
    except RegistryError:  # the run was deleted; an outage stops the training itself
        return
    if tags.get("challenger") != newest or "verdict" not in tags:
        return
    same = parameters == {name: str(value) for name, value in training.model_dump().items()}
    compared = registry.champion_version(job) in (newest, tags.get("champion"))
    if same and compared and is_settled(registry, json.loads(tags["verdict"]), made, training.approval_s):
        remedy = "Fill in a field of the form to train all the same."
        raise UnchangedError(f"{job}: version {newest} was trained on this load with these settings. {remedy}")


def decide_on_challenger(job: str, run_id: str, settings: Settings | None = None) -> dict[str, Any]:
    """Decide whether a run's challenger becomes champion (the version that serves); stores the verdict, moves no alias.

    It is kept as tag `verdict` of run, model and version; one that the run has already is returned as it is.

    Args:
        job: whose load.
        run_id: that `train` returned.
        settings: as `load()` reads them, where not given.

    Returns:
        `job`, `promoted` (bool), `reason` (words), `version` (text; None without a challenger), `champion` (version
        compared with, text; None without one), `run`, and `challenger_loss`, `champion_loss`, `naive_loss`: mean
        pinball loss over all forecasts on the newest `holdout_steps` steps, records/s, None where unknown.

    Raises:
        RegistryError: MLflow does not answer, or the run is gone.
        MlflowException: MLflow refuses to store the verdict, e.g. where the job has no registered model.
        KeyError, ValueError: the run lacks the parameter `improvement`, or it or the stored verdict is malformed.
        SettingsError, MessageError, OSError: a setting or the job's name is wrong, or `var/mlflow` cannot be written.
    """
    registry = Registry(settings or load())
    metrics, parameters, tags = registry.figures(run_id)
    if said := tags.get("verdict"):
        return dict(json.loads(said))
    losses = {name: metrics.get(f"{name}.pinball") for name in ("challenger", "champion", "seasonal_naive")}

    def by_figures() -> Verdict:
        least = 1 - float(parameters["improvement"]) - 1e-9  # as good as the champion is no reason to change
        held = (("champion", "champion", least), ("seasonal_naive", "seasonal naive forecast", 1.0))
        rivals = {
            name: Rival(metrics.get(f"{key}.pinball", math.nan), metrics.get(f"gate.{key}", math.nan), allowed)
            for key, name, allowed in held
        }
        return decide_promotion(metrics.get("challenger.pinball", math.nan), rivals, "loss ")

    decided = decide(registry, job, tags, by_figures)
    record = verdict_record(
        job, run_id, tags, decided, challenger_loss=losses["challenger"], champion_loss=losses["champion"],
        naive_loss=losses["seasonal_naive"],
    )  # fmt: skip
    registry.write_verdict(job, run_id, record)
    return record


def promote(verdict: Mapping[str, Any], settings: Settings | None = None) -> Mapping[str, Any]:
    """Point the alias `champion` at a verdict's challenger if it won, see `pipelines.train.promotion.promote_winner`.

    Returns:
        The verdict as it stands: `promoted` says whether the challenger serves.

    Raises:
        RegistryError, MlflowException: MLflow does not answer, or there is no such version.
        KeyError: the verdict lacks a key of `decide_on_challenger`.
        SettingsError, OSError: a setting is wrong, or `var/mlflow` cannot be written.
    """
    return promote_winner(Registry(settings or load()), verdict)


def reject(verdict: Mapping[str, Any], by: str, settings: Settings | None = None) -> Mapping[str, Any]:
    """Write that a person said no to a winner, see `pipelines.train.promotion.reject_winner`.

    Raises:
        ServesAlreadyError: it serves already.
        RegistryError, MlflowException: MLflow does not answer, or there is no such version.
        KeyError: the verdict lacks a key of `decide_on_challenger`.
        SettingsError, OSError: a setting is wrong, or `var/mlflow` cannot be written.
    """
    return reject_winner(Registry(settings or load()), verdict, by)
