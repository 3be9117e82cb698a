"""Imports Airflow, then runs scripts beside this file, each in a fork of its own, as Airflow runs parsing and tasks."""

import json
import os
import runpy
import sys
import traceback
from pathlib import Path

import airflow.dag_processing.dagbag
import airflow.sdk
import airflow.serialization.serialized_objects  # noqa: F401  it takes a second, once for all that are run here

for script, arguments, more in json.loads(sys.argv[1]):
    sys.stdout.flush()
    if (pid := os.fork()) == 0:
        try:
            os.environ.update(more)
            sys.argv = [script, *arguments]
            runpy.run_path(str(Path(__file__).parent / script), run_name="__main__")
            sys.stdout.flush()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    assert status == 0, f"{script} {arguments}: its traceback is above"
