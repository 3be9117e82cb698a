"""`tidecast autoscale` as a process beside a stack that is up, which it finds by the `var` folder alone.

Its contracts change, and the registry never answers.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from functools import partial

import pytest

from configs.settings import ROOT
from pipelines.kafka.broker import Follower
from pipelines.kafka.publisher import Publisher
from tests.fakes.waiting import PATIENCE_S, wait_until
from tidecast.messages import MetricSample

pytestmark = pytest.mark.spark


@pytest.fixture
def silent_registry():
    """The address of a server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def contracts(tmp_path):
    folder = tmp_path / "contracts"
    folder.mkdir()
    for job in ("orders", "rides"):
        (folder / f"{job}.yaml").write_text(f"job: {job}\n")
    return folder


class Reporting:
    """Each says twice a second how it is; what was decided for whom is kept."""

    def __init__(self, kafka):
        self._publisher, self._follower = Publisher(kafka), Follower(kafka, ["decisions", "heartbeats"])
        self._stop, self._lock = threading.Event(), threading.Lock()
        self.reporting, self.heard = {"orders", "rides"}, []
        self._threads = [threading.Thread(target=run) for run in (self._report, self._listen)]
        for thread in self._threads:
            thread.start()

    def _report(self):
        while not self._stop.wait(0.5):
            now = time.time()
            for job in tuple(self.reporting):
                sample = MetricSample(job, "interval", now - 1, now, arrival_rps=20.0, executors=1, task_ceiling=8)
                self._publisher.send("metrics", job, sample)

    def _listen(self):
        while not self._stop.is_set():
            for record in self._follower.poll(0.5):
                if (message := json.loads(record.value)).get("job"):
                    self.heard.append((record.topic, message))

    def send_nobodys(self):
        """Records under keys that are no job's name; those who read on read on."""
        for topic in ("metrics", "forecasts", "heartbeats"):
            for key in (None, b"", b"a b", b"\xff"):
                self._publisher.send_bytes(topic, key, b"{}")

    def decided(self, job, since=0.0):
        return [m for topic, m in self.heard if topic == "decisions" and m["job"] == job and m["wall_time"] > since]

    def said(self, job, since):
        """Decisions, and heartbeats that repeat one."""
        return [m for _, m in self.heard if m["job"] == job and m["wall_time"] > since]

    def close(self):
        self._stop.set()
        for thread in self._threads:
            thread.join()
        self._publisher.close()
        self._follower.close()


@pytest.fixture
def jobs(empty_topics):
    found = Reporting(empty_topics)
    yield found
    found.close()


@contextmanager
def autoscaler(kafka, var, tmp_path, contracts, registry, python, policy):
    """The process and its log; it must end by itself when it is asked to, in silence."""
    log = tmp_path / f"autoscale-{time.time_ns()}.log"
    env = {
        **os.environ, "TIDECAST_KAFKA__PREFIX": kafka.prefix, "TIDECAST_CONTRACTS": str(contracts),
        "TIDECAST_MLFLOW__TRACKING_URI": registry, "TIDECAST_VAR": str(var),
        "TIDECAST_AUTOSCALER__TRIGGER": "2 seconds", "PYSPARK_PYTHON": python,
    }  # fmt: skip
    command = [sys.executable, "-m", "pipelines.cli", "autoscale", "--policy", policy, "--checkpoint", "checkpoint/a"]
    with log.open("w") as sink:
        process = subprocess.Popen(
            command, env={**env, "PYTHONPATH": os.getcwd()}, cwd=tmp_path, stdout=sink, stderr=sink,
            start_new_session=True,
        )  # fmt: skip
    said = _Log(process, log)
    try:
        yield said
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


class _Log:
    def __init__(self, process, path):
        self.process, self._path = process, path

    def text(self):
        return self._path.read_text(errors="replace")

    def wait_for(self, words):
        def found():
            assert self.process.poll() is None, self.text()
            return words in self.text()

        wait_until(found, words, 300, every_s=0.1)  # a session alone takes half a minute on busy cores

    def end(self, number):
        """Ask it to end together with its JVM, as a terminal or a service manager does."""
        os.killpg(self.process.pid, number)
        assert self.process.wait(PATIENCE_S) == 0, self.text()
        assert "Traceback" not in self.text() and "py4j" not in self.text(), self.text()


def test_contracts_change_and_the_next_one_decides_only_once_it_has_ended_and_none_of_them_ends_it(
    empty_topics, broker_var, tmp_path, contracts, silent_registry, jobs, forking_python
):
    start = partial(autoscaler, empty_topics, broker_var, tmp_path, contracts, silent_registry, forking_python)
    with start("static") as first:  # which asks no registry: its client takes seconds to import
        first.wait_for("rides: contract")  # it has the turn: both start side by side
        with start("mpc") as second:
            first.wait_for("autoscaler: ready\n")
            jobs.send_nobodys()
            change_contracts(jobs, contracts, first)  # while the other one gets ready
            second.wait_for("ready to take over")
            before, _ = _batches(tmp_path)
            wait_until(lambda: _batches(tmp_path)[0] > before + 1, "the first one to go on", every_s=0.1)
            assert "rides: contract" not in second.text()  # it touches nothing
            first.end(signal.SIGTERM)
            (ended, query), since = _batches(tmp_path), time.time()
            second.wait_for("autoscaler: ready\n")
            wait_until(lambda: jobs.said("rides", since), "its word", every_s=0.1)
            last, same = _batches(tmp_path)
            assert last > ended and same == query and "begun anew" not in second.text()
            commits = tmp_path / "checkpoint" / "a" / "commits"  # which the container's health check looks at
            subprocess.run([sys.executable, ROOT / "docker" / "fresh.py", commits, "60"], check=True)
            second.end(signal.SIGINT)  # the first one had SIGTERM; what a restart knows `test_accepted_contracts` has


def _batches(folder):
    """The newest batch that was committed, and the id of the query."""
    checkpoint = folder / "checkpoint" / "a"
    commits = [int(file.name) for file in (checkpoint / "commits").iterdir() if file.name.isdigit()]
    return max(commits), (checkpoint / "metadata").read_text()


def change_contracts(jobs, contracts, log):
    """Contracts go, come, are changed and become wrong while it runs."""
    first = wait_until(lambda: jobs.decided("rides"), "a decision", every_s=0.1)[0]
    (contracts / "orders.yaml").unlink()
    (contracts / "rides.yaml").write_text("job: [")
    log.wait_for("rides.yaml")
    broken = time.time() + 2
    wait_until(lambda: jobs.said("rides", broken), "a decision by the last good contract", every_s=0.1)
    (contracts / "rides.yaml").write_text("job: rides\nexecutors: {max: 2}\n")
    (contracts / "trips.yaml").write_text("job: trips\n")
    jobs.reporting.add("trips")
    bounded = wait_until(
        lambda: [d for d in jobs.decided("rides", broken) if d["executors"] == 2], "the new bounds", every_s=0.1
    )[0]
    assert bounded["inputs"]["contract_hash"] != first["inputs"]["contract_hash"]
    log.wait_for(bounded["inputs"]["contract_hash"])
    log.wait_for("orders: its contract is gone")
    gone = time.time() + 2
    wait_until(lambda: jobs.decided("trips"), "a decision of the newcomer", every_s=0.1)
    wait_until(lambda: jobs.said("rides", gone), "decisions of the others", every_s=0.1)
    assert jobs.said("orders", gone) == []
