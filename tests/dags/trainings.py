"""Asks the DAGs of the models for trainings early and late in their run, and more; writes what they did as JSON."""

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from airflow.sdk.exceptions import AirflowSkipException, AirflowTaskTimeout

import pipelines.backtest.on_lake as backtests
import pipelines.train.agent.run as agents
import pipelines.train.forecaster.run as forecasters
from configs.errors import FinalError
from dags.approve_champion import approve_champion
from dags.assets import DRIFT
from dags.backtest_policies import backtest_policies
from dags.retrain_agent import retrain_agent
from dags.retrain_forecaster import retrain_forecaster
from models.twin.sim.job import ShortLoadError, TwinError
from tests.fakes.drifts import DRIFTED

asked: list[Any] = []
agents.train = lambda job, **form: "a1"  # type: ignore[assignment]
forecasters.train = lambda job, because, **form: "f1"  # type: ignore[assignment]
forecasters.jobs_with_training_data = lambda jobs, drifted: asked.append(sorted(drifted)) or ["orders"]  # type: ignore[assignment]
BY_HAND = [SimpleNamespace(extra=extra) for extra in ({}, None, {"job": "rides", "text": "looks odd"})]
DRIFTS = {DRIFT: [*BY_HAND, SimpleNamespace(extra=DRIFTED)]}
FORECASTERS: Any = retrain_forecaster()
AGENTS: Any = retrain_agent()


def trained(dag: Any, task: str, since_s: float, attempt: int = 1, cleared_after: int = 0, **more: Any) -> Any:
    """What the task returns so long after its run began, or why it is skipped or fails."""
    run, whole = SimpleNamespace(start_date=datetime.now(UTC) - timedelta(seconds=since_s)), dag.get_task(task)
    instance = SimpleNamespace(try_number=attempt, max_tries=cleared_after + whole.retries, task=whole)
    try:
        return whole.python_callable(
            job="orders", params=dict.fromkeys(dag.params), dag_run=run, ti=instance, **more
        )  # fmt: skip
    except (AirflowSkipException, FinalError) as ended:
        return f"{type(ended).__name__}: {ended}"


PROMOTE: Any = approve_champion().get_task("promote").python_callable
WINNER = {"job": "orders", "promoted": True, "reason": "better"}
LATE = WINNER | {"promoted": False, "reason": "another serves"}


def answered(option: str | None, stands: Any = WINNER, by: Any = None) -> Any:
    """What becomes of a winner once a person has answered, or why it is skipped."""
    forecasters.promote = lambda verdict: stands  # type: ignore[assignment]
    try:
        return PROMOTE(WINNER, option and {"chosen_options": [option], "responded_by_user": by})
    except AirflowSkipException as skipped:
        return str(skipped)


def judged(task: str, verdict: Any) -> str:
    """What becomes of a verdict where this computer's settings have a person asked."""
    try:
        FORECASTERS.get_task(f"one_job.{task}").python_callable(verdict)
    except AirflowSkipException as skipped:
        return f"skipped: {skipped}"
    return "passed"


promoted: list[Any] = []
forecasters.promote = lambda verdict: promoted.append(verdict) or verdict  # type: ignore
forecasters.decide_on_challenger = lambda job, run_id: WINNER  # type: ignore[assignment]
judged("judge", {"job": "orders", "run_id": "f1"})
asked_about = {
    "promoted by judge": bool(promoted),
    "of a winner": judged("won", WINNER),
    "of a loser": judged("won", WINNER | {"promoted": False, "reason": "worse"}),
}
REPLAY: Any = backtest_policies().get_task("replay").python_callable


def replayed(error: Exception) -> str:
    """What becomes of a backtest that raises."""

    def fail(*arguments: Any) -> Any:
        raise error

    backtests.backtest_job = fail
    try:
        return str(REPLAY(job="orders", params={"policies": "all", "days": None}))
    except (AirflowSkipException, TwinError) as raised:
        return f"{type(raised).__name__}: {raised}"


forecasters.reject = lambda verdict, by: verdict | {"promoted": False, "reason": f"rejected by {by}"}  # type: ignore
FORECASTERS.get_task("enough").python_callable(params={"job": "orders"}, triggering_asset_events=DRIFTS)
tasks = {"one_job.train": FORECASTERS, "one_agent.train": AGENTS}
told: dict[str, Any] = {"one_job.train": {"triggering_asset_events": DRIFTS}, "one_agent.train": {}}
answers = {
    "approved": answered("Approve", by={"id": "1", "name": "ann"}),
    "by silence": answered("Approve"),
    "set to success": answered(None),
    "too late": answered("Approve", LATE),
    "rejected": answered("Reject", by={"id": "1", "name": "ann"}),
    "rejected by nobody known": answered("Reject"),
}
replays = [replayed(ShortLoadError("ten steps")), replayed(TwinError("orders.json: no job can be read"))]
found = {"drifted": asked[0], "asked": asked_about, "answers": answers, "replays": replays} | {
    task: {
        "early": trained(dag, task, 50, **told[task]),
        "late": trained(dag, task, 70, **told[task]),
        "again": trained(dag, task, 50, 2, **told[task]),
        "again, late": trained(dag, task, 70, 2, **told[task]),
        "cleared, late": trained(dag, task, 70, 3, 2, **told[task]),
        "at once": dag.get_task(task).max_active_tis_per_dagrun,
        "longest_s": dag.get_task(task).execution_timeout.total_seconds(),
        "too long": dag.get_task(task).retry_policy.evaluate(AirflowTaskTimeout(), 1, 2).action.value,
        "an outage": dag.get_task(task).retry_policy.evaluate(OSError(), 1, 2).action.value,
    }
    for task, dag in tasks.items()
}
Path(sys.argv[1]).write_text(json.dumps(found))
