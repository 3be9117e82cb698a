"""Has the DAG `plan_placement` plan without topologies, a broken one, and jobs that were begun; writes what it did."""

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from airflow.models.dagrun import DagRun
from airflow.sdk.exceptions import AirflowSkipException
from airflow.utils.session import create_session
from sqlalchemy import select

from configs.errors import FinalError
from dags.defaults import SETTINGS
from dags.plan_placement import plan_placement
from tests.dags.lineage import use_bundle

DAG: Any = plan_placement()


def came(task: str, params: dict[str, Any]) -> list[Any]:
    """What becomes of a task, and what it says or returns."""
    try:
        told = DAG.get_task(task).python_callable(params=params)
    except (AirflowSkipException, FinalError) as raised:
        return ["skipped" if isinstance(raised, AirflowSkipException) else "failed", str(raised)]
    return ["done", told]


def a_morning() -> dict[str, Any]:
    """How the tasks of a run end, under which names Airflow shows the mapped one, and which runs it has started."""
    with TemporaryDirectory() as folder, patch("time.sleep"):  # it pauses for a second after each task that is skipped
        use_bundle(folder, "plan_placement")
        run = DAG.test()
    ends: dict[str, list[str]] = {}
    instances = sorted(run.get_task_instances(), key=lambda one: one.map_index)
    for one in instances:
        ends.setdefault(one.task_id, []).append(str(one.state))
    started = select(DagRun).where(DagRun.dag_id == DAG.dag_id, DagRun.run_id != run.run_id).order_by(DagRun.run_id)
    with create_session() as session:
        runs = [
            [one.run_id.replace(run.run_id, "ID"), {name: one.conf[name] for name in DAG.params}]
            for one in session.scalars(started)
        ]
    labels = [one.rendered_map_index for one in instances if one.task_id == "each"]
    return {"run": str(run.state), "ends": ends, "labels": labels, "runs": runs}


every_morning = DAG.params.dump()
found = {"folder": str(SETTINGS.topologies_dir), "none": came("begun", every_morning)}
(SETTINGS.topologies_dir / "broken.yaml").write_text("name: broken\n")
found["broken"] = came("plan", every_morning | {"topology": "broken"})
found["none begun"] = came("begun", every_morning)
found["by name"] = came("begun", every_morning | {"topology": "broken"})
for begun in ("orders", "clicks"):
    (SETTINGS.topologies_dir / f"{begun}.yaml").write_text(f"name: {begun}\n")
    job = SETTINGS.var_dir / "jobs" / begun
    job.mkdir(parents=True)
    (job / "placement.json").write_text("{}")
found["a morning"] = a_morning()
Path(sys.argv[1]).write_text(json.dumps(found))
