"""What the retrain DAG calls: train a forecaster on the lake, compare it with what serves, judge it, promote it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from configs.settings import Settings, load
from models.forecast.selection.gate import Rival, decide_promotion
from pipelines.lake import tables as lake
from pipelines.registry import Registry
from pipelines.train.promotion import promote_winner, verdict_record, verdict_without_figures, with_form_values


def has_training_data(job: str, settings: Settings | None = None) -> bool:
    """Return whether the lake holds at least one training step of the job's load; starts no Spark.

    Raises:
        SettingsError: a setting is wrong.
        OSError, ValueError: the log of the table `metrics` cannot be read.
    """
    settings = settings or load()
    return lake.job_span_s(settings.lake_dir, job) >= settings.training.step_s


def train(job: str, because: Sequence[str] = (), settings: Settings | None = None, **form: Any) -> str:
    """Fit forecasters to a job's load in the lake, register the best as `challenger`; returns the MLflow run's id.

    Starts Spark to read, and stops it; blocks for minutes. A job without a champion (a version that serves) gets the
    seasonal naive forecast as one. `train_challenger` says what is written to MLflow.

    Args:
        job: whose load.
        because: in words, what has drifted; kept as the run's tag `because`.
        settings: as `load()` reads them, where not given.
        form: keys of `training` and their values, which override the settings.

    Raises:
        SettingsError, MessageError: a setting, a value of the form, the contract or the job's name is wrong.
        LakeError: nothing was ever ingested.
        SeriesError, TwinError: the times of the job span over a million steps, or a load is negative or infinite.
        RegistryError, MlflowException: MLflow does not answer, or refuses what is written.
        JavaError, JarsError: no usable Java, or Delta's jars are missing.
        OSError, ValueError: the lake's log or `var/mlflow` cannot be read or written.
    """
    # Each task is a process of its own, and only this one needs the libraries that fit: 9 s of CPU to import.
    from pipelines.lake.load import read_lake
    from pipelines.train.forecaster.challenge import train_challenger
    from pipelines.train.forecaster.rehearsal import read_live_job

    settings = settings or load()
    training = with_form_values(settings.training, "training", form)
    source = read_lake(settings, job, training.step_s)
    live = read_live_job(settings, job, source)
    return train_challenger(Registry(settings), job, training, source, because, live)


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
    decided = verdict_without_figures(registry, job, tags)
    if decided is None:
        least = 1 - float(parameters["improvement"]) - 1e-9  # as good as the champion is no reason to change
        held = (("champion", "champion", least), ("seasonal_naive", "seasonal naive forecast", 1.0))
        rivals = {
            name: Rival(metrics.get(f"{key}.pinball", math.nan), metrics.get(f"gate.{key}", math.nan), allowed)
            for key, name, allowed in held
        }
        decided = decide_promotion(metrics.get("challenger.pinball", math.nan), rivals, "loss ")
    record = verdict_record(
        job, run_id, tags, decided, challenger_loss=losses["challenger"], champion_loss=losses["champion"],
        naive_loss=losses["seasonal_naive"],
    )  # fmt: skip
    registry.write_verdict(job, run_id, record)
    return record


def promote(verdict: dict[str, Any], settings: Settings | None = None) -> str | None:
    """Point the alias `champion` at a verdict's challenger if it won, see `pipelines.train.promotion.promote_winner`.

    Returns:
        The version that is champion (serves) afterwards, as text; None for none.

    Raises:
        RegistryError, MlflowException: MLflow does not answer, or there is no such version.
        KeyError: the verdict lacks a key of `decide_on_challenger`.
        SettingsError, OSError: a setting is wrong, or `var/mlflow` cannot be written.
    """
    return promote_winner(Registry(settings or load()), verdict)
