"""Worker processes end with the process that began them, however that ended."""

import os
import signal
import subprocess
import sys
import time

import psutil

from pipelines.workers import usable_cores, worker_pool
from tests.fakes.waiting import wait_until


def remember(value):
    os.environ["REMEMBERED"] = value


def recall():
    return os.environ["REMEMBERED"], os.getpid()


def work_for_long(file):
    with open(file, "w") as out:
        out.write(str(os.getpid()))
    until = time.monotonic() + 120
    while time.monotonic() < until:
        pass  # busy, as what computes is


def test_each_worker_is_initialised_and_a_process_of_its_own():
    with worker_pool(1, remember, ("a",)) as pool:
        value, pid = pool.submit(recall).result()
    assert value == "a" and pid != os.getpid()


def test_a_worker_ends_in_mid_work_when_its_parent_is_killed(tmp_path):
    file = tmp_path / "pid"
    code = (
        "from pipelines.workers import worker_pool\nfrom tests.unit.test_workers import work_for_long\n"
        f"if __name__ == '__main__':\n    worker_pool(1).submit(work_for_long, {str(file)!r}).result()\n"
    )
    script = tmp_path / "parent.py"
    script.write_text(code)
    parent = subprocess.Popen([sys.executable, str(script)], env={**os.environ, "PYTHONPATH": os.getcwd()})
    try:
        wait_until(lambda: file.exists() and file.read_text(), "the worker's id")
        worker = psutil.Process(int(file.read_text()))
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        wait_until(lambda: not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE, "its end")
    finally:
        parent.kill()
        parent.wait()


def test_the_usable_cores_are_counted_where_the_system_does_not_name_them(monkeypatch):
    named = usable_cores()
    monkeypatch.delattr(os, "sched_getaffinity")
    assert 1 <= named <= usable_cores() == os.cpu_count()
