"""Parses DAGs, of a folder or files, as Airflow's processor does and writes what it found as JSON."""

import json
import sys
from pathlib import Path
from typing import Any

from airflow.dag_processing.dagbag import DagBag
from airflow.serialization.serialized_objects import DagSerialization
from airflow.timetables.base import TimeRestriction


def facts(dag: Any) -> dict[str, Any]:
    """What the rules of the team are about."""
    kept = DagSerialization.from_dict(DagSerialization.to_dict(dag))  # what the scheduler works with
    restriction = TimeRestriction(earliest=kept.start_date, latest=None, catchup=kept.catchup)
    first = kept.timetable.next_dagrun_info(last_automated_data_interval=None, restriction=restriction)
    return {
        "tags": sorted(dag.tags),
        "doc": dag.doc_md,
        "owner": dag.owner,
        "paused": dag.is_paused_upon_creation,
        "max_active_runs": dag.max_active_runs,
        "catchup": dag.catchup,
        "retries": {task.task_id: task.retries for task in dag.tasks},
        "at_most": {task.task_id: most for task in dag.tasks if (most := task.max_active_tis_per_dag)},
        "after": {task.task_id: sorted(task.upstream_task_ids) for task in dag.tasks},
        "waits": {task.task_id: [task.response_timeout and task.response_timeout.total_seconds(), task.defaults]
                  for task in dag.tasks if hasattr(task, "response_timeout")},
        "params": {name: dag.params.get_param(name).description for name in dag.params},
        "filled": [name for name in dag.params if dag.params.get_param(name).has_value],
        "schemas": {name: dag.params.get_param(name).schema for name in dag.params},
        "first_run": first.run_after.timestamp() if first else None,
    }  # fmt: skip


if __name__ == "__main__":
    *sources, target = sys.argv[1:]
    bags = [DagBag(dag_folder=source) for source in sources]
    found = {
        "errors": {file: error for bag in bags for file, error in bag.import_errors.items()},
        "loaded": sorted({name.split(".")[0] for name in sys.modules}),
        "seconds": {Path(stat.file).name: stat.duration.total_seconds() for bag in bags for stat in bag.dagbag_stats},
        "dags": {dag.dag_id: facts(dag) for bag in bags for dag in bag.dags.values()},
    }
    Path(target).write_text(json.dumps(found))
