"""Airflow's programs, each in a process that has its libraries before it begins; the ring runs them."""

import json
import subprocess
import sys

import pytest

from pipelines.stack.services.prepared_airflow import LIBRARIES

RUN = """
import gc, json, runpy, sys
from pipelines.stack.services import prepared_airflow

loaded, began = [], gc.get_freeze_count()
prepared_airflow.resolve_name = lambda name: loaded.append((name.removesuffix(":"), gc.isenabled()))
runpy.run_module = lambda name, **how: print(
    json.dumps([loaded, name, sys.argv, gc.isenabled(), gc.get_freeze_count() > began])
)
prepared_airflow.main()
"""


@pytest.mark.parametrize("arguments", [["scheduler", "--skip-serve-logs"], ["api-server", "--port", "1"]])
def test_its_libraries_come_first_while_no_garbage_is_looked_for_and_what_they_made_stays(arguments):
    ran = subprocess.run([sys.executable, "-c", RUN, *arguments], capture_output=True, text=True, check=True)
    loaded, program, told, looked_for, frozen = json.loads(ran.stdout)
    assert loaded == [[name, False] for name in LIBRARIES[arguments[0]]]
    assert (program, told, looked_for, frozen) == ("airflow", ["airflow", *arguments], True, True)
