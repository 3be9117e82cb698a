"""What the DAGs do for a run: event hours into the lake, and the first champion and agent trained on them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from configs.errors import CorrectableError
from configs.settings import Settings
from pipelines.airflow.rest import Orchestrator
from pipelines.demo.progress import Screen
from pipelines.jobs.history import publish_history
from pipelines.registry import AgentRegistry, Registry
from pipelines.traces.trace import load_trace

LEARNING = ("ingest_metrics", "retrain_forecaster")
"""The DAGs by which what was measured becomes a model; one of them runs every hour of the clock."""
DAGS = (*LEARNING, "serve_forecasts")
AGENT_DAG, ASKING_DAG = "retrain_agent", "approve_champion"


class DemoError(CorrectableError, RuntimeError):
    """A run did not get through (history, training, serving, live load); the message says where and what to look at."""


def train_first_champion(
    settings: Settings, dags: Orchestrator, screen: Screen, meanwhile: Callable[[], object] = lambda: None
) -> str | None:
    """Publish the history, ingest it by its DAG, and wait for the forecaster that the retrain DAG makes of it.

    Both DAGs are unpaused for that and paused again: a full hour of the clock would start them in the middle of the
    live load, on the job's cores. Blocks until their runs have ended (each is given 600 s), usually minutes.

    Args:
        settings: of a stack that runs.
        dags: its Airflow.
        screen: shows the two stages.
        meanwhile: called once the history is in the lake, before the training is waited for; it blocks that.

    Returns:
        Version of the champion (the forecaster that serves) in the registry, as text; None where `replay.history_days`
        leaves no history.

    Raises:
        DemoError: there was history, and no champion came of it.
        OrchestratorError: Airflow does not answer, does not know a DAG, or a run failed or did not end in time.
        TraceError: the trace cannot be used.
        BrokerError: no broker, no topic `metrics`, or a record was not acknowledged.
        RegistryError: MLflow does not answer.
        OSError: `var/mlflow` cannot be written.
    """
    registry, name = Registry(settings), settings.job.name
    with screen.stage("history through the ingest DAG into the lake"):
        dags.wait_for_dags(DAGS)
        switch_learning(dags, on=True)
        rows = publish_history(settings)
        screen.note(f"{rows} back-dated records of {settings.replay.trace} on `metrics`")
        if not rows:
            switch_learning(dags, on=False)
            return None
        run_ingest(dags, *history_window(settings))
    with screen.stage("first champion: the retrain DAG, started by the asset event"):
        meanwhile()
        wait_for_training(settings, dags)
        switch_learning(dags, on=False)
        champion = registry.champion_version(name)
        if champion is None:
            raise DemoError(
                f"the retrain DAG made no champion of {name}. It says why in {dag_logs(settings, DAGS[1])}."
            )
        screen.note(f"champion: {registry.model_name(name)} version {champion}")
    return champion


def train_first_agent(settings: Settings, dags: Orchestrator, screen: Screen) -> str | None:
    """Run the DAG that trains and judges an agent (of the policy `dqn`) for the main job, and wait for its end.

    The DAG is unpaused for that and paused again. Blocks for some 900 s at most.

    Returns:
        Version of the agent that serves, in the registry, as text; None where none does, because none won or the load
        is too short.

    Raises:
        OrchestratorError: Airflow does not answer, does not know the DAG, or the run failed or took more than 600 s.
        RegistryError: MLflow does not answer.
        OSError: `var/mlflow` cannot be written.
    """
    registry, name = AgentRegistry(settings), settings.job.name
    with screen.stage(f"first agent: the DAG {AGENT_DAG} trains it in the job's twin and judges it"):
        dags.wait_for_dags((AGENT_DAG,))
        dags.unpause(AGENT_DAG)
        try:
            dags.wait_run(AGENT_DAG, dags.trigger(AGENT_DAG, {"job": name}))
        finally:
            dags.pause(AGENT_DAG)
        if verdict := registry.read_verdict(name):
            screen.note(f"agent: {verdict['reason']}")
        champion = registry.champion_version(name)
        if champion is None:
            screen.note("no agent serves: another policy stands in, and every decision says so")
    return champion


def switch_learning(dags: Orchestrator, on: bool) -> None:
    """Unpause the DAGs that ingest and train, or pause them.

    Raises:
        OrchestratorError: Airflow does not answer, or does not know one of them.
    """
    for dag in reversed(LEARNING):
        (dags.unpause if on else dags.pause)(dag)


def dag_logs(settings: Settings, dag: str) -> Path:
    """Return the folder of a DAG's logs, of the embedded Airflow of these settings' `var`."""
    return settings.var_dir / "airflow" / "logs" / f"dag_id={dag}"


def run_ingest(dags: Orchestrator, start: datetime, end: datetime) -> None:
    """Run the ingest DAG for the event hours [start, end), in UTC, and wait for its end; minutes and less are cut off.

    Raises:
        OrchestratorError: Airflow does not answer, or the run failed or took more than 600 s.
    """
    run_id = dags.trigger("ingest_metrics", {"partition": f"{start:%Y-%m-%dT%H}/{end:%Y-%m-%dT%H}"})
    dags.wait_run("ingest_metrics", run_id)


def wait_for_training(settings: Settings, dags: Orchestrator) -> None:
    """Wait for the training that the newest ingest caused, and for the answers to what it asks a person.

    Raises:
        OrchestratorError: Airflow does not answer, no run came, or one failed or did not end in time.
    """
    dags.wait_caused_run("retrain_forecaster", by="ingest_metrics")
    if settings.training.approval_s:
        for run_id, state in dags.run_states(ASKING_DAG).items():
            if state in ("queued", "running"):
                dags.wait_run(ASKING_DAG, run_id, settings.training.approval_s + 600)


def history_window(settings: Settings) -> tuple[datetime, datetime]:
    """Return event hours [start, end) of the history, in UTC: from `replay.history_days` before the live load on.

    Raises:
        TraceError: the trace cannot be used.
    """
    start = _live_start(settings)
    return _hour(start - timedelta(days=settings.replay.history_days)), _hour(start)


def live_window(settings: Settings) -> tuple[datetime, datetime]:
    """Return event hours [start, end) of the live load, in UTC, with those of its first and last moment.

    Raises:
        TraceError: the trace cannot be used.
    """
    start = _live_start(settings)
    return _hour(start), _hour(start + timedelta(hours=settings.replay.live_hours)) + timedelta(hours=1)


def _live_start(settings: Settings) -> datetime:
    return datetime.fromtimestamp(load_trace(settings.replay).live_start, UTC)


def _hour(time: datetime) -> datetime:
    return time.replace(minute=0, second=0, microsecond=0)
