"""Sets runs of the DAG `backfill` to failed at some moments, in Airflow's own database; writes what then is due."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from airflow import settings
from airflow.api.common.mark_tasks import set_dag_run_state_to_failed
from airflow.dag_processing.bundles.manager import DagBundlesManager
from airflow.dag_processing.dagbag import BundleDagBag, sync_bag_to_db
from airflow.models.dagrun import get_or_create_dagrun
from airflow.serialization.serialized_objects import DagSerialization
from airflow.utils import timezone
from airflow.utils.types import DagRunTriggeredByType

ROOT = Path(__file__).parent.parent.parent
RANGE = {"begin": "2026-03-01T00:00", "end": "2026-03-02T00:00"}
ORDERED = {"plan": "success", "dear": "skipped", "approve": "skipped", "order": "success"}
MOMENTS: dict[str, dict[str, str]] = {
    "for an approval": {"plan": "success", "dear": "success", "approve": "deferred"},
    "after the order died": {**ORDERED, "order": "failed", "follow": "upstream_failed"},
    "for a slot": {**ORDERED, "follow": "queued"},
    "for a new try": {**ORDERED, "follow": "up_for_retry"},
    "as it runs": {**ORDERED, "follow": "running"},
    "by itself": {**ORDERED, "follow": "failed"},
    "rejected": {"plan": "success", "dear": "success", "approve": "success", "order": "skipped", "follow": "skipped"},
    "set to success": {**ORDERED, "follow": "success"},
    "well": {**ORDERED, "follow": "success"},
}
"""States of tasks when a person sets the run to failed."""
ENDED = ("after the order died", "by itself", "rejected", "set to success", "well")
"""Those that come to their end themselves."""


def look(moment: str, states: dict[str, str], session: Any) -> dict[str, Any]:
    """What is due once a run is ended, what the teardown does then, and what becomes of the run."""
    now, name_of_run = timezone.utcnow(), moment.replace(" ", "_")
    run = get_or_create_dagrun(
        dag=kept, run_id=name_of_run, logical_date=None, data_interval=None, run_after=now, conf=RANGE, start_date=now,
        triggered_by=DagRunTriggeredByType.TEST, triggering_user_name="somebody", session=session,
    )  # fmt: skip
    tasks = {one.task_id: one for one in run.get_task_instances(session=session)}
    for task, state in states.items():
        tasks[task].state = state
    session.commit()
    if moment not in ENDED:
        set_dag_run_state_to_failed(dag=kept, run_id=name_of_run, commit=True, session=session)
        session.commit()
    run.refresh_from_db(session=session)
    run.dag = kept
    due, _ = run.update_state(session=session)
    session.commit()
    states = {one.task_id: one.state and str(one.state) for one in run.get_task_instances(session=session)}
    told = {"by itself": {"failed": True}, "well": {"return_value": {"state": "done"}}}.get(moment, {})
    asked = SimpleNamespace(
        dag_id="backfill", run_id=name_of_run, get_task_states=lambda *_, **__: {name_of_run: states},
        xcom_pull=lambda task_ids, key="return_value": told.get(key),
    )  # fmt: skip
    cancelled: list[str] = []
    unnamed = f"fix-{backfills.mark_of(name_of_run)}"
    there = unnamed if states["order"] == "failed" else "fix"
    backfills.read_orders = lambda kafka, job: {there: SimpleNamespace(id=there, wanted="run")}  # type: ignore[assignment]
    backfills.cancel_order = lambda settings, job, name: cancelled.append(name[:3])  # type: ignore[assignment]
    name = "fix" if states["order"] == "success" else None
    (last,) = (one for one in run.get_task_instances(session=session) if one.task_id == "end")
    last.state = "success"
    try:
        dag.get_task("end").python_callable(name, params={"job": "orders"}, ti=asked)
    except backfills.BackfillRunError:
        last.state = "failed"
    session.commit()
    run.update_state(session=session)
    return {"due": [one.task_id for one in due], "cancelled": cancelled, "run": str(run.state)}


if __name__ == "__main__":
    from dags.backfill import backfill
    from pipelines.backfill import dag as backfills

    dag: Any = backfill()
    kept = DagSerialization.deserialize_dag(DagSerialization.serialize_dag(dag))
    session = settings.Session()  # type: ignore[misc]
    manager = DagBundlesManager()
    manager.sync_bundles_to_db(session=session)
    session.commit()
    bundle = next(iter(manager.get_all_dag_bundles()))
    found = BundleDagBag(dag_folder=ROOT / "dags" / "backfill.py", bundle_path=ROOT / "dags", bundle_name=bundle.name)
    sync_bag_to_db(found, bundle.name, None)
    Path(sys.argv[1]).write_text(json.dumps({name: look(name, states, session) for name, states in MOMENTS.items()}))
