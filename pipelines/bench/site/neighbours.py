"""Rows: a ring on YARN with HDFS; a ring beside three brokers with logins and ACLs, PostgreSQL and MLflow's server."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from configs.settings import ROOT, Settings
from pipelines.bench.site.brokers import Brokers
from pipelines.bench.site.hadoop import Hadoop
from pipelines.bench.site.hadoop_configuration import CORES_PER_NODE
from pipelines.bench.site.rings import REPLAY, TRAINING, close_ring
from pipelines.bench.site.servers import mlflow_with_logins, postgres
from pipelines.stack.services.airflow import CONNECTION
from pipelines.stack.stack import Stack

NODES = 2
AWAY_S, BACK_S = 20.0, 35.0
"""Wall seconds of the live minute after which a node, or a broker, goes away, and after which one comes (back)."""
OTHERS = 110
OTHER = """\
from datetime import UTC, datetime

from airflow.sdk import dag, task


@dag(dag_id="team_{number}", schedule="@daily", start_date=datetime(2025, 1, 1, tzinfo=UTC), catchup=False)
def team():
    @task
    def work():
        return {number}

    work()


team()
"""
"""A DAG of somebody else."""


def ring_on_yarn(settings: Settings, folder: Path) -> dict[str, Any]:
    """Close a ring whose job runs on YARN and keeps its state on HDFS; a node with executors leaves, another one comes.

    Args:
        settings: without addresses of a person's own.
        folder: empty, for all that is written.

    Returns:
        As `close_ring`, and `ceiling` (executors for which there are cores beside the application master's), `nodes`
        (while one was away) and `left_running` (applications at the end).

    Raises:
        JarsError, JavaError, StackError, ...: as `close_ring`, and where a daemon does not start.
    """
    with Hadoop(folder / "hadoop") as hadoop:
        for _ in range(NODES):
            hadoop.add_node()
        away: dict[str, Any] = {}

        def leave() -> None:
            hadoop.remove_node(hadoop.without_master())

        def come() -> None:
            away.update(hadoop.metrics())
            hadoop.add_node()

        own = _short(settings, folder, {"spark": settings.spark.model_copy(update={"master": "yarn"})})
        with Stack(own, {"broker", "airflow", "mlflow"}, given=hadoop.environment) as stack:
            found = close_ring(stack, [(AWAY_S, leave), (BACK_S, come)])
        running = hadoop.metrics()["appsRunning"]
    ceiling = NODES * CORES_PER_NODE - 1
    return {**found, "ceiling": ceiling, "nodes": away.get("activeNodes"), "left_running": running}


def ring_beside_services(settings: Settings, folder: Path) -> dict[str, Any]:
    """Close a ring on brokers, a database and an MLflow with logins, beside other people's DAGs; a broker is killed.

    Args:
        settings: without addresses of a person's own.
        folder: empty, for all that is written.

    Returns:
        As `close_ring`, and `dags` of others, one of them broken, and `replicas` (fewest of a topic's partitions).

    Raises:
        SiteError, JarsError, JavaError, StackError, ...: as `close_ring`, and where a neighbour does not start.
    """
    dags = folder / "dags"
    shutil.copytree(ROOT / "dags", dags, ignore=shutil.ignore_patterns("__pycache__"))
    for number in range(OTHERS):
        (dags / f"team_{number}.py").write_text(OTHER.format(number=number))
    (dags / "broken.py").write_text("import no_such_module\n")
    with (
        postgres(folder) as database,
        mlflow_with_logins(folder, database) as mlflow,
        Brokers(folder / "brokers") as brokers,
    ):
        sections = {
            "kafka": settings.kafka.model_copy(update=brokers.section()),
            "mlflow": settings.mlflow.model_copy(update={"tracking_uri": mlflow}),
        }
        own, given = _short(settings, folder, sections), {CONNECTION: f"{database}/airflow"}
        with Stack(own, {"broker", "spark", "airflow", "mlflow"}, dags=dags, given=given) as stack:
            found = close_ring(stack, [(AWAY_S, lambda: brokers.kill(2)), (BACK_S, lambda: brokers.start(2))])
        replicas = min(len(one["replica_nodes"]) for one in brokers.describe("tidecast.metrics")["partitions"])
    return {**found, "dags": OTHERS + 1, "replicas": replicas}


def _short(settings: Settings, folder: Path, sections: Mapping[str, Any]) -> Settings:
    update = {
        "var": folder / "var", "replay": settings.replay.model_copy(update=REPLAY),
        "training": settings.training.model_copy(update=TRAINING), **sections,
    }  # fmt: skip
    return settings.model_copy(update=update)
