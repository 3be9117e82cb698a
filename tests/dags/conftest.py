"""What scripts beside this file find in Airflow, all run by one process, for importing Airflow takes longest."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from configs.settings import ROOT

NEIGHBOURS = {
    "TIDECAST_KAFKA__BOOTSTRAP": "kafka-1:9092,kafka-2:9092",
    "TIDECAST_KAFKA__PREFIX": "team.",
    "TIDECAST_MLFLOW__TRACKING_URI": "http://mlflow:5000",
    "TIDECAST_LAKE__ADDRESS": "hdfs://namenode:8020/tidecast/lake",
}
"""Of the team whose DAGs tell OpenLineage what they touch."""


@pytest.fixture(scope="session")
def found(tmp_path_factory):
    """What each script found, and when all began."""
    home, dags = tmp_path_factory.mktemp("airflow"), ROOT / "dags"
    (home / "contracts").mkdir()
    (home / "topologies").mkdir()
    runs = {
        "parsed": ("look.py", [dags], {}),
        "nobody": ("look.py", [dags / "backfill.py"], {"TIDECAST_CONTRACTS": str(home / "contracts")}),
        "asking": (
            "look.py",
            [dags / "retrain_forecaster.py", dags / "approve_champion.py"],
            {"TIDECAST_TRAINING__APPROVAL_S": "60"},
        ),
        "console": (
            "console.py",
            [],
            {"TIDECAST_KAFKA__BOOTSTRAP": "127.0.0.1:1", "AIRFLOW__TIDECAST__LOOPBACK_ONLY": "True"},
        ),
        "ingests": ("ingests.py", [], {}),
        "ended": ("ended.py", [], {}),
        "unreturned": ("unreturned.py", [], {}),
        "neighbours": ("neighbours.py", [], {}),
        "named": ("named.py", [], {}),
        "trainings": (
            "trainings.py",
            [],
            {
                "TIDECAST_RETRAINING__BEGIN_S": "60",
                "TIDECAST_RETRAINING__AT_ONCE": "3",
                "TIDECAST_RETRAINING__LONGEST_S": "600",
                "TIDECAST_TRAINING__APPROVAL_S": "60",
            },
        ),
        "lineage": (
            "lineage.py",
            [],
            {
                **NEIGHBOURS,
                "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
                "AIRFLOW__OPENLINEAGE__EXECUTE_IN_THREAD": "True",
                "AIRFLOW__OPENLINEAGE__NAMESPACE": "tidecast",
                "AIRFLOW__OPENLINEAGE__EXECUTION_TIMEOUT": "300",  # the endpoint is judged, not this machine
            },
        ),
        "unplanned": (
            "placements.py",
            [],
            {
                "TIDECAST_TOPOLOGIES": str(home / "topologies"),
                "TIDECAST_VAR": str(home / "var"),
                "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            },
        ),
    }
    asked = [
        (script, [*map(str, parsed), str(home / f"{name}.json")], more) for name, (script, parsed, more) in runs.items()
    ]
    env = os.environ | {
        "AIRFLOW_HOME": str(home),  # which airflow reads at its first import
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(dags / "plugins"),
        "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": "300",  # parsing is to be light, not this machine quick
    }
    command = [sys.executable, str(Path(__file__).parent / "forks.py"), json.dumps(asked)]
    began = time.time()
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, env=env, cwd=ROOT, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    ) as process:
        try:
            said, wrong = process.communicate(timeout=1200)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)  # with the fork that runs a script
            raise
    assert process.returncode == 0, said[-3000:] + wrong[-3000:]
    return {"began": began} | {name: json.loads((home / f"{name}.json").read_text()) for name in runs}
