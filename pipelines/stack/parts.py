"""The parts of an embedded stack, in the order in which they are looked at, and the environment that they share."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

from pipelines.stack.context import StackContext
from pipelines.stack.ports import HOST
from pipelines.stack.processes import MARKER
from pipelines.stack.services import airflow, kafka, mlflow, spark


@dataclass(frozen=True)
class EmbeddedService:
    """One embedded service.

    Attributes:
        start: starts it and waits until it is healthy; raises `StackError`.
        address: what child processes are told, a template for `StackContext.fill`.
        page: what a person opens, a template likewise.
        ports: names of the ports it takes, fields of `configs.sections.Ports`.
    """

    start: Callable[[StackContext], None]
    address: str
    page: str
    ports: tuple[str, ...] = ()


PARTS = {
    "broker": EmbeddedService(kafka.start, kafka.ADDRESS, kafka.ADDRESS, ("broker", "controller")),
    "spark": EmbeddedService(
        spark.start, spark.ADDRESS, spark.PAGE, ("spark_master", "spark_master_ui", "spark_worker", "spark_worker_ui")
    ),
    "airflow": EmbeddedService(airflow.start, airflow.ADDRESS, airflow.ADDRESS, ("airflow",)),
    "mlflow": EmbeddedService(mlflow.start_store, mlflow.ADDRESS, mlflow.ADDRESS),
    "mlflow_ui": EmbeddedService(mlflow.start_ui, mlflow.ADDRESS, mlflow.PAGE, ("mlflow",)),
}


def child_environment(context: StackContext) -> dict[str, str]:
    """Return the variables that every child of a stack gets besides the addresses: one Java, Spark and Python for all.

    Raises:
        RuntimeError: PySpark is not installed.
    """
    var = context.settings.var_dir
    return {
        MARKER: context.id,
        "TIDECAST_VAR": str(var),
        "TIDECAST_FILE": str(var / "settings.yaml"),
        "JAVA_HOME": str(context.java.home),
        "SPARK_HOME": spark.spark_home(),  # a SPARK_HOME of another release would be preferred to PySpark's own
        "SPARK_LOCAL_IP": HOST,
        "SPARK_LOCAL_DIRS": str(var / "spark-local"),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONUNBUFFERED": "1",
        "MPLCONFIGDIR": str(var / "cache" / "matplotlib"),
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "GX_ANALYTICS_ENABLED": "false",
    }
