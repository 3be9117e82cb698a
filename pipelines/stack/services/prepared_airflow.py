"""A program of Airflow in a process that has imported most of what it needs: `python -P` this file and its arguments.

Nearly all that is made while modules are imported stays. Python's collector looks through all of it again and again, a
fifth of the CPU of a start; here not at all, and later neither, so that forks share what they never change.

The scheduler's LocalExecutor forks every task from it, and the processor of DAGs each look at a file. Without this each
of them imports its libraries anew, a task up to 10 s of CPU. None of our own packages is among them, so that a task
runs the code as it is when the task begins.
"""

from __future__ import annotations

import gc
import os
import runpy
import sys
from pkgutil import resolve_name

TASKS = (
    "pyspark.sql.functions", "great_expectations", "mlflow.tracking",
    "mlflow.pytorch", "sklearn.linear_model", "river.drift", "matplotlib.figure", "torch", "numba", "kafka",
    # What MLflow imports once it opens a database, as the one that is embedded.
    "mlflow.store.tracking.sqlalchemy_workspace_store", "mlflow.store.model_registry.sqlalchemy_workspace_store",
)  # fmt: skip
"""What tasks import by the settings as they are shipped. None of them starts a thread; a fork would lose it."""
FILES = (
    "pydantic_settings",
    "airflow.providers.standard.operators.hitl",
    "airflow.providers.standard.operators.trigger_dagrun",
    "airflow.sdk:task.python",  # by whoever asks for `@task` first all of Airflow's providers are looked through
)
"""What our files of DAGs need, which each task runs, too."""
LIBRARIES = {
    "api-server": ("airflow.api_fastapi.main",),  # which makes the application that the server serves
    "scheduler": (
        *TASKS, "airflow.__main__", "airflow.cli.commands.scheduler_command",
        # What each worker of its executor imports once it has a task.
        "airflow.sdk.execution_time.supervisor", "airflow.sdk.execution_time.task_runner",
        "airflow.dag_processing.dagbag", *FILES,
    ),
    "dag-processor": ("airflow.__main__", "airflow.cli.commands.dag_processor_command", *FILES),
    "db": ("airflow.__main__", "airflow.cli.commands.db_command", "airflow.models.dagrun", "alembic.command"),
}  # fmt: skip
"""By program, modules, or behind a colon what is looked up in one."""


def main() -> None:
    """Import the `LIBRARIES` of the program that the arguments name, then run `airflow` with these in this process.

    Switches off the telemetry of two packages, here and in all tasks, where the environment does not say otherwise.

    Raises:
        ImportError: a library is missing.
        SystemExit: Airflow's, when it ends.
    """
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")  # these two are read when the packages are imported
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    gc.disable()
    for name in LIBRARIES[sys.argv[1]]:
        resolve_name(name if ":" in name else f"{name}:")  # without one it hides why a module cannot be imported
    gc.freeze()
    gc.enable()
    sys.argv[0] = "airflow"
    runpy.run_module("airflow", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
