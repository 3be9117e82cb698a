"""Imports Airflow, then runs scripts beside this file, each in a fork of its own, as Airflow runs parsing and tasks."""

import gc
import importlib
import json
import os
import runpy
import sys
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import airflow.dag_processing.dagbag
import airflow.sdk
import airflow.serialization.serialized_objects  # noqa: F401  it takes a second, once for all that are run here
from airflow.models import import_all_models

from tests.fakes.unsynced import leave_unsynced

PARSED = ("airflow.providers.standard.operators.hitl", "airflow.providers.standard.operators.trigger_dagrun")
"""What files of DAGs import of Airflow beside `airflow.sdk`, nearly each of the scripts."""
UNUSED = ("look.py", "console.py")
"""Scripts that look at what is imported; they come first."""
USED = ("pipelines.backfill.dag", "pipelines.ingest", "pipelines.train.agent.run", "pipelines.train.forecaster.run")
"""What tasks of the others import, with NumPy and pandas: seconds, once for all of them."""


def in_fork(call: Callable[[], object], what: str) -> None:
    """Call it in a fork and wait for its end."""
    sys.stdout.flush()
    if (pid := os.fork()) == 0:
        try:
            call()
            sys.stdout.flush()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    assert status == 0, f"{what}: its traceback is above"


def make_database() -> None:
    """Airflow's, for all scripts; without the stamp of its newest migration, for which all of these are imported."""
    from airflow.models.base import Base
    from airflow.utils.db import add_default_pool_if_not_exists, synchronize_log_template
    from airflow.utils.session import create_session

    with create_session() as session:
        Base.metadata.create_all(session.get_bind())
    add_default_pool_if_not_exists()
    synchronize_log_template()


def make_decorators() -> object:
    """`@task`: by whoever asks for it first all of Airflow's providers are looked through."""
    sdk: Any = importlib.import_module("airflow.sdk")
    return sdk.task.python  # which is kept, too


def make_api() -> object:
    """Airflow's API for tasks, of which each fork that runs a DAG would put all versions together: seconds."""
    supervisor: Any = importlib.import_module("airflow.sdk.execution_time.supervisor")
    return supervisor.in_process_api_server().app  # which keeps it


def run(script: str, arguments: list[str], more: dict[str, str]) -> None:
    """Run a script as the main one, with more environment variables."""
    os.environ.update(more)
    sys.argv = [script, *arguments]
    runpy.run_path(str(Path(__file__).parent / script), run_name="__main__")


if __name__ == "__main__":
    gc.disable()  # no fork lives for long, and each look for garbage goes through, and copies, all that is imported
    leave_unsynced()
    import_all_models()
    for module in PARSED:
        importlib.import_module(module)
    make_decorators()
    in_fork(make_database, "Airflow's database")
    for script, arguments, more in json.loads(sys.argv[1]):
        if script not in UNUSED:
            for module in USED:
                importlib.import_module(module)
            make_api()
        in_fork(partial(run, script, arguments, more), f"{script} {arguments}")
