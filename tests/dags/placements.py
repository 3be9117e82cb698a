"""Has the DAG `plan_placement` plan in a folder without topologies, then of a broken one; writes what it said."""

import json
import sys
from pathlib import Path
from typing import Any

from airflow.sdk.exceptions import AirflowSkipException

from configs.errors import FinalError
from dags.defaults import SETTINGS
from dags.plan_placement import plan_placement

DAG: Any = plan_placement()


def planned(params: dict[str, Any]) -> list[str]:
    """What becomes of the task that plans, and what is said."""
    try:
        DAG.get_task("plan").python_callable(params=params)
    except (AirflowSkipException, FinalError) as raised:
        return ["skipped" if isinstance(raised, AirflowSkipException) else "failed", str(raised)]
    return ["planned", ""]


every_morning = DAG.params.dump()
found = {"folder": str(SETTINGS.topologies_dir), "none": planned(every_morning)}
(SETTINGS.topologies_dir / "broken.yaml").write_text("name: broken\n")
found["broken"] = planned(every_morning | {"topology": "broken"})
Path(sys.argv[1]).write_text(json.dumps(found))
