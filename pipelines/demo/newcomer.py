"""A job with a short history that a run meets after its live load, and what the retrain DAG makes of it.

The job does not run. Its history is ingested like any other; where it is worth it, other jobs' loads help to train its
forecaster (transfer learning).
"""

from __future__ import annotations

from typing import Any

from configs.contract import load_contract
from configs.errors import SettingsError
from configs.settings import Settings
from models.adapt.target import LONG_DAYS
from pipelines.demo.progress import Screen
from pipelines.jobs.history import newcomer_load, publish_newcomer
from pipelines.registry import Registry
from pipelines.train.transfer.sources import SOURCE, WHY


def check_newcomer(settings: Settings) -> None:
    """Check the settings of the job with a short history (`replay.newcomer`), which may be None; starts nothing.

    Raises:
        SettingsError: the job has no contract or runs live; it has 14 days (`LONG_DAYS`) of history or more; its trace
            is unknown, too short, zero, or the main job's.
        SeriesError, TraceError: the file of its trace is gone or damaged.
    """
    newcomer = settings.replay.newcomer
    if newcomer is None:
        return
    try:
        load_contract(newcomer.job, settings.contracts_dir)
    except SettingsError as error:
        raise SettingsError(f"replay.newcomer.job: {error} Or set replay.newcomer to null.") from None
    if newcomer.job in settings.replayed:
        raise SettingsError(
            f"replay.newcomer.job={newcomer.job!r}: this job runs live and has a load of its own. "
            "Name another with a contract, or set replay.newcomer to null."
        )
    if newcomer.days >= LONG_DAYS:
        raise SettingsError(
            f"replay.newcomer.days={newcomer.days:g}: with {LONG_DAYS} days and more a job learns alone. Choose fewer."
        )
    newcomer_load(settings.replay, newcomer)


def publish_newcomer_history(settings: Settings, screen: Screen) -> None:
    """Publish the history of the job `replay.newcomer`, if there is one, as back-dated records on the topic `metrics`.

    Raises:
        SettingsError, SeriesError: its trace cannot be used or read.
        BrokerError: no broker, no topic `metrics`, or a record was not acknowledged.
    """
    if newcomer := settings.replay.newcomer:
        rows = publish_newcomer(settings, newcomer)
        screen.note(f"{rows} back-dated records of {newcomer.trace} on `metrics`, for the newcomer {newcomer.job}")


def collect_newcomer_results(settings: Settings, registry: Registry) -> dict[str, Any] | None:
    """Collect what the retrain DAG made of the job with a short history (`replay.newcomer`); None where there is none.

    Returns:
        `job`, `trace`, `days` (of history); `version` (text) of the model that was judged, None: none was; `chosen`
        (its name among the candidates); `promoted` (whether it serves); `reason`; `challenger_loss`, `champion_loss`,
        `naive_loss` (mean pinball loss on held-out steps, records/s; None where unknown); `source` (the job whose load
        its network was first trained on, or "none") and `why`; `champion`, the version that serves now (None: none).

    Raises:
        RegistryError: MLflow does not answer, or the run is gone.
    """
    newcomer = settings.replay.newcomer
    if newcomer is None:
        return None
    verdict = registry.read_verdict(newcomer.job) or {"reason": "the retrain DAG has no verdict on it"}
    tags = registry.figures(verdict["run"])[2] if "run" in verdict else {}
    kept = ("version", "promoted", "reason", "challenger_loss", "champion_loss", "naive_loss")
    return {
        **newcomer.model_dump(),
        **{key: verdict.get(key) for key in kept},
        "chosen": tags.get("chosen"),
        "source": tags.get(SOURCE, "none"),
        "why": tags.get(WHY, ""),
        "champion": registry.champion_version(newcomer.job),
    }
