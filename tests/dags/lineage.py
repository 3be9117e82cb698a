"""Runs DAGs in Airflow, with OpenLineage's events sent to a receiver of its own; writes what came as JSON.

The receiver answers the event of the first task's start only when that task has run, or after half a minute: a task
that waited for the answer would have run after it.
"""

import json
import os
import shutil
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from airflow.providers.openlineage.plugins.listener import get_openlineage_listener

from configs.settings import ROOT

EVENTS: list[dict[str, Any]] = []
RAN = threading.Event()
WAITED: list[bool] = []
COUNTS = {"stored": 10, "again": False, "version": 4, "trouble": ""}


class Receiver(BaseHTTPRequestHandler):
    """What a backend of OpenLineage is to a client."""

    def do_POST(self) -> None:
        event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        EVENTS.append({**event, "path": self.path})
        if event["eventType"] == "START":
            WAITED.append(RAN.wait(30))
        self.send_response(201)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


def took(*_: Any) -> Any:
    """The ingest, without a broker."""
    RAN.set()
    return {"metrics": COUNTS}, []


def use_bundle(folder: str, *dags: str) -> None:
    """Make a folder of these DAGs' files the bundle: each `DAG.test` parses and stores all that a bundle has."""
    for dag in dags:
        shutil.copy(ROOT / "dags" / f"{dag}.py", folder)
    local = "airflow.dag_processing.bundles.local.LocalDagBundle"
    bundle = {"name": "two", "classpath": local, "kwargs": {"path": folder}}
    os.environ["AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST"] = json.dumps([bundle])


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    once = {"total": 1}  # by default a client whose receiver is gone tries for five seconds at the end of each task
    os.environ["AIRFLOW__OPENLINEAGE__TRANSPORT"] = json.dumps({"type": "async_http", "url": url, "retry": once})

    import pipelines.ingest
    import pipelines.train.forecaster.run as forecaster
    from dags.ingest_metrics import ingest_metrics
    from dags.retrain_forecaster import retrain_forecaster

    pipelines.ingest.ingest = took  # type: ignore[assignment]
    forecaster.jobs_with_training_data = lambda jobs, drifted: ["orders"]  # type: ignore[assignment]
    forecaster.train = lambda job, because, **form: "r1"  # type: ignore[assignment]
    forecaster.decide_on_challenger = lambda job, run: {"job": job, "version": "7", "promoted": True}  # type: ignore[assignment]
    forecaster.promote = lambda verdict: verdict  # type: ignore[assignment]
    states = {}
    with TemporaryDirectory() as folder:
        use_bundle(folder, "ingest_metrics", "retrain_forecaster")
        for made in (ingest_metrics, retrain_forecaster):
            dag: Any = made()
            run = dag.test()
            states[dag.dag_id] = str(run.state)
        labels = {one.task_id: one.rendered_map_index for one in run.get_task_instances()}
        ends = {one.task_id: str(one.state) for one in run.get_task_instances()}
        server.shutdown()  # whoever sends now is refused
        server.server_close()
        states["without a receiver"] = str(ingest_metrics().test().state)
    get_openlineage_listener().executor.shutdown()  # what sends a run's events outlives a fork, which ends at once
    told = {"events": EVENTS, "ran first": WAITED, "states": states, "labels": labels, "ends": ends}
    Path(sys.argv[1]).write_text(json.dumps(told))
