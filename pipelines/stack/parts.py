"""The parts of an embedded stack, in the order in which they are looked at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pipelines.stack import airflow, kafka, mlflow, spark
from pipelines.stack.place import Place


@dataclass(frozen=True)
class Embedded:
    """One embedded service.

    Attributes:
        start: starts it and waits until it is healthy; raises `StackError`.
        address: what child processes are told, a template for `Place.at`.
        page: what a person opens, a template likewise.
        ports: names of the ports it takes, fields of `configs.sections.Ports`.
    """

    start: Callable[[Place], None]
    address: str
    page: str
    ports: tuple[str, ...] = ()


PARTS = {
    "broker": Embedded(kafka.start, kafka.ADDRESS, kafka.ADDRESS, ("broker", "controller")),
    "spark": Embedded(
        spark.start, spark.ADDRESS, spark.PAGE, ("spark_master", "spark_master_ui", "spark_worker", "spark_worker_ui")
    ),
    "airflow": Embedded(airflow.start, airflow.ADDRESS, airflow.ADDRESS, ("airflow",)),
    "mlflow": Embedded(mlflow.start_store, mlflow.ADDRESS, mlflow.ADDRESS),
    "mlflow_ui": Embedded(mlflow.start_ui, mlflow.ADDRESS, mlflow.PAGE, ("mlflow",)),
}
