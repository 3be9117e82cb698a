"""Airflow's scheduler in a process that has imported what tasks import, started with `python -m` and this module.

Its LocalExecutor forks every task from it. Without this each task imports them anew, up to 10 s of CPU. None of our own
packages is among them, so that a task runs the code as it is when the task begins.
"""

from __future__ import annotations

import os
import runpy
import sys
from importlib import import_module

LIBRARIES = (
    "pyspark.sql.functions", "great_expectations", "mlflow.tracking",
    "mlflow.pytorch", "sklearn.linear_model", "river.drift", "matplotlib.figure",
    "torch._dynamo",  # torch imports it when the first optimizer is made: 6 s of CPU on a busy computer
)  # fmt: skip
"""What tasks import by the settings as they are shipped. None of them starts a thread; a fork would lose it."""


def main() -> None:
    """Import `LIBRARIES`, then run `airflow scheduler` in this process, whose `sys.argv` it replaces.

    Switches off the telemetry of two packages, here and in all tasks, where the environment does not say otherwise.

    Raises:
        ImportError: a library is missing.
        SystemExit: Airflow's, when it ends.
    """
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")  # these two are read when the packages are imported
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    for name in LIBRARIES:
        import_module(name)
    # Without the flag it and every worker serve their logs on all interfaces.
    sys.argv = ["airflow", "scheduler", "--skip-serve-logs"]
    runpy.run_module("airflow", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
