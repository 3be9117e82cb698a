"""Where the embedded parts are: as settings of their children, and as a person wants to see them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from configs.settings import Settings
from pipelines.spark.java import Java
from pipelines.stack import airflow, kafka, mlflow, ports, spark
from pipelines.stack.processes import MARKER


def told(embedded: Collection[str], chosen: Mapping[str, int], var: Path) -> dict[str, str]:
    """Addresses of the embedded parts as settings of the children."""
    every: dict[str, Callable[[], dict[str, str]]] = {
        "broker": lambda: {"TIDECAST_KAFKA__BOOTSTRAP": kafka.address(chosen)},
        "spark": lambda: {"TIDECAST_SPARK__MASTER": spark.address(chosen)},
        "airflow": lambda: {"TIDECAST_AIRFLOW__URL": airflow.address(chosen)},
        "mlflow": lambda: {"TIDECAST_MLFLOW__TRACKING_URI": mlflow.address(var)},
        "mlflow_ui": lambda: {"TIDECAST_MLFLOW__TRACKING_URI": mlflow.address(var)},
    }
    return {key: value for part in embedded for key, value in every[part]().items()}


def shown(embedded: Collection[str], chosen: Mapping[str, int], var: Path) -> dict[str, str]:
    """Addresses of the embedded parts as a person wants them."""
    every: dict[str, Callable[[], str]] = {
        "broker": lambda: kafka.address(chosen),
        "spark": lambda: spark.ui(chosen),
        "airflow": lambda: airflow.address(chosen),
        "mlflow": lambda: mlflow.address(var),
        "mlflow_ui": lambda: mlflow.ui(chosen),
    }
    return {part: every[part]() for part in embedded}


def environment(stack_id: str, settings: Settings, found: Java, told: Mapping[str, str]) -> dict[str, str]:
    """What every child of a stack is told: the marker, the addresses, and one Java, Spark and Python for all."""
    var = settings.var_dir
    return {
        MARKER: stack_id,
        "TIDECAST_VAR": str(var),
        "TIDECAST_FILE": str(var / "settings.yaml"),
        **told,
        "JAVA_HOME": str(found.home),
        "SPARK_HOME": spark.spark_home(),  # a SPARK_HOME of another release would be preferred to PySpark's own
        "SPARK_LOCAL_IP": ports.HOST,
        "SPARK_LOCAL_DIRS": str(var / "spark-local"),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONUNBUFFERED": "1",
        "MPLCONFIGDIR": str(var / "cache" / "matplotlib"),
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "GX_ANALYTICS_ENABLED": "false",
    }
