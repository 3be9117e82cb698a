"""What the retrain DAG calls: train a forecaster on the lake, compare it with what serves, judge it, promote it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from configs.settings import Settings, load
from models.forecast.selection.gate import Rival, verdict
from pipelines.lake import tables as lake
from pipelines.registry import Registry
from pipelines.train.decided import formed, let_serve, refused, ruling


def enough(job: str, settings: Settings | None = None) -> bool:
    """Whether the lake holds at least one step of the job to go by; starts no Spark."""
    settings = settings or load()
    return lake.known_span(settings.lake_dir, job) >= settings.training.step_s


def train(job: str, because: Sequence[str] = (), settings: Settings | None = None, **form: Any) -> str:
    """Train, evaluate and register a challenger on all the lake knows of a job; returns the MLflow run's id.

    Args:
        job: whose load.
        because: what has drifted, in words; kept with the run.
        settings: as `load()` gives them, where not given.
        form: settings of `training` to be used instead, as a trigger form gives them.

    Raises:
        SettingsError: a value of the form is wrong.
        LakeError: nothing was ever ingested.
    """
    # Each task is a process of its own, and only this one needs the libraries that fit: 9 s of CPU to import.
    from pipelines.lake.load import read_lake
    from pipelines.train.forecaster.challenge import train_on
    from pipelines.train.forecaster.peaks import live

    settings = settings or load()
    training = formed(settings.training, "training", form)
    source = read_lake(settings, job, training.step_s)
    return train_on(Registry(settings), job, training, source, because, live(settings, job))


def judge(job: str, run_id: str, settings: Settings | None = None) -> dict[str, Any]:
    """Let the gate decide on a run's challenger; asked again it says the same.

    Returns:
        `job`, `promoted` (whether it won), `reason`, `version` (None without a challenger), `champion` (the version
        compared with), `run`, and the mean pinball losses `challenger_loss`, `champion_loss`, `naive_loss` in
        records/s, None where unknown.

    Raises:
        RegistryError: no such run.
    """
    registry = Registry(settings or load())
    metrics, parameters, tags = registry.figures(run_id)
    if said := tags.get("verdict"):
        return dict(json.loads(said))
    losses = {name: metrics.get(f"{name}.pinball") for name in ("challenger", "champion", "seasonal_naive")}
    decided = refused(registry, job, tags)
    if decided is None:
        least = 1 - float(parameters["improvement"]) - 1e-9  # as good as the champion is no reason to change
        held = (("champion", "champion", least), ("seasonal_naive", "seasonal naive forecast", 1.0))
        rivals = {
            name: Rival(metrics.get(f"{key}.pinball", math.nan), metrics.get(f"gate.{key}", math.nan), allowed)
            for key, name, allowed in held
        }
        decided = verdict(metrics.get("challenger.pinball", math.nan), rivals, "loss ")
    found = ruling(
        job, run_id, tags, decided, challenger_loss=losses["challenger"], champion_loss=losses["champion"],
        naive_loss=losses["seasonal_naive"],
    )  # fmt: skip
    registry.keep_verdict(job, run_id, found)
    return found


def promote(verdict: dict[str, Any], settings: Settings | None = None) -> str | None:
    """`decided.let_serve`, for what this module trains."""
    return let_serve(Registry(settings or load()), verdict)
