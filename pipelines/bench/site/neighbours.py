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
from pipelines.bench.site.rings import WAVE, close_ring, shortened, write_wave
from pipelines.bench.site.servers import mlflow_with_logins, postgres
from pipelines.lake.file_lake import opened_lake
from pipelines.lake.folder import lake_folder
from pipelines.lake.tables import commit_origins
from pipelines.stack.services.airflow import CONNECTION
from pipelines.stack.stack import Stack

NODES = 2
AWAY_S, BACK_S = 20.0, 30.0
"""Wall seconds of the live load after which a node, or a broker, goes away, and after which one comes (back): once
executors run on both nodes, and so early that lost ones are there again before the load falls."""
MOST_ROWS = 1_000_000
"""Of a short ring's metrics, which are some thousands."""
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
    """Close a ring whose job runs on YARN, its state and the lake on HDFS; a node with executors leaves, another comes.

    Ingest, training and the autoscaler keep to local sessions beside YARN; only the job's executors are YARN's.

    Args:
        settings: without addresses of a person's own.
        folder: empty, for all that is written.

    Returns:
        As `close_ring`, and `ceiling` (executors for which there are cores beside the application master's), `nodes`
        (while one was away), `left_running` (applications at the end) and what `read_metrics_table` returns.

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

        sections = {
            "spark": settings.spark.model_copy(update={"master": "yarn"}),
            "lake": settings.lake.model_copy(update={"address": f"{hadoop.filesystem}/tidecast/lake"}),
        }
        own = _short(settings, folder, sections)
        with Stack(own, {"broker", "airflow", "mlflow"}, given=hadoop.environment) as stack:
            found = close_ring(stack, [(AWAY_S, leave), (BACK_S, come)])
        running, lake = hadoop.metrics()["appsRunning"], read_metrics_table(own)
    ceiling = NODES * CORES_PER_NODE - 1
    return {**found, "ceiling": ceiling, "nodes": away.get("activeNodes"), "left_running": running, **lake}


def read_metrics_table(settings: Settings) -> dict[str, Any]:
    """Read the lake's table `metrics` where the settings say that it is; on HDFS by a Spark session of this process.

    Returns:
        `lake_commits`, partitions that ingests wrote; `lake_rows`, rows that are read; `lake_unread`, how many more
        or fewer the commits name; `lake_local`, whether there is a lake under `var`.

    Raises:
        LakeError, LakeAwayError: there is no such table, or nobody answers.
        JavaError, JarsError, OSError: as `opened_lake`.
    """
    root = lake_folder(settings)
    origins = commit_origins(root, "metrics")
    with opened_lake(root, "tidecast-bench-site") as lake:
        rows = len(lake.newest_rows("metrics", ["wall_time"], [("wall_time", "ge", 0.0)], MOST_ROWS))
    return {
        "lake_commits": len(origins), "lake_rows": rows, "lake_unread": sum(one.stored for one in origins) - rows,
        "lake_local": (settings.var_dir / "lake").exists(),
    }  # fmt: skip


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
    wave = settings.replay.model_copy(update=WAVE | {"trace": str(write_wave(folder / "wave.csv"))})
    return shortened(settings, folder, {"replay": wave, **sections})
