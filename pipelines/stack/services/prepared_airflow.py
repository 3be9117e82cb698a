"""A program of Airflow in a process that has imported most of what it needs: `python -P` this file and its arguments.

Nearly all that is made while modules are imported stays. Python's collector looks through all of it again and again, a
fifth of the CPU of a start; here not at all, and later neither, so that forks share what they never change.

The scheduler's LocalExecutor forks every task from it. Without this each task imports its libraries anew, up to 10 s of
CPU. None of our own packages is among them, so that a task runs the code as it is when the task begins.
"""

from __future__ import annotations

import gc
import os
import runpy
import sys
from importlib import import_module

TASKS = (
    "pyspark.sql.functions", "great_expectations", "mlflow.tracking",
    "mlflow.pytorch", "sklearn.linear_model", "river.drift", "matplotlib.figure",
    "torch._dynamo",  # torch imports it when the first optimizer is made: 6 s of CPU on a busy computer
)  # fmt: skip
"""What tasks import by the settings as they are shipped. None of them starts a thread; a fork would lose it."""
LIBRARIES = {
    "api-server": ("airflow.api_fastapi.main",),  # which makes the application that the server serves
    "scheduler": (*TASKS, "airflow.__main__", "airflow.cli.commands.scheduler_command"),
    "dag-processor": ("airflow.__main__", "airflow.cli.commands.dag_processor_command"),
}


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
        import_module(name)
    gc.freeze()
    gc.enable()
    sys.argv[0] = "airflow"
    runpy.run_module("airflow", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
