"""Autoscaler, serving and ingest as applications of a real YARN: its containers do the work, and none stays behind."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from configs.settings import ROOT, load
from pipelines.bench.site.hadoop import Hadoop
from pipelines.bench.site.neighbours import read_metrics_table
from pipelines.bench.site.ports import free_ports
from pipelines.kafka.broker import Follower
from pipelines.kafka.publisher import Publisher
from pipelines.spark.query_session import kept_partitions
from tests.fakes.forecasters import STEP
from tests.fakes.spark_serving import TwoJobs, ended, epoch_of
from tests.fakes.waiting import wait_until
from tidecast.messages import MetricSample

JOBS = [f"word_count_{number}" for number in range(4)]
EXECUTORS = 2
CONTAINERS = 1 + EXECUTORS
"""With the application's master; the node has cores for so many."""
PATIENCE_S = 300.0
HOUR = "2014-10-22T04"


@pytest.fixture(scope="module")
def hadoop(tmp_path_factory):
    with Hadoop(tmp_path_factory.mktemp("hadoop")) as started, pytest.MonkeyPatch.context() as patch:
        started.add_node()
        patch.delenv("PYSPARK_SUBMIT_ARGS")
        for name, value in started.environment.items():
            patch.setenv(name, value)
        yield started


def nothing_runs(hadoop):
    """YARN counts an application until its master's process is gone."""
    wait_until(lambda: hadoop.metrics()["appsRunning"] == 0, "an empty queue", PATIENCE_S, every_s=0.2)


class Autoscaler:
    """The command on YARN, and the jobs that it decides for."""

    def __init__(self, kafka, folder):
        contracts = folder / "contracts"
        contracts.mkdir()
        for job in JOBS:
            (contracts / f"{job}.yaml").write_text(f"job: {job}\n")
        self.kafka, self.checkpoint, self.log = kafka, folder / "query", folder / "autoscaler.log"
        self.began = 0.0
        given = {
            "VAR": folder / "var", "CONTRACTS": contracts, "KAFKA__BOOTSTRAP": kafka.bootstrap,
            "KAFKA__PREFIX": kafka.prefix, "AUTOSCALER__MASTER": "yarn", "AUTOSCALER__CORES": EXECUTORS,
        }  # fmt: skip
        self.env = {**os.environ, **{f"TIDECAST_{name}": str(value) for name, value in given.items()}}

    def start(self):
        self.began = time.time()
        argv = [sys.executable, "-m", "tidecast", "autoscale", "--checkpoint", str(self.checkpoint)]
        with self.log.open("w") as sink:
            return subprocess.Popen(argv, env=self.env, cwd=ROOT, stdout=sink, stderr=sink, start_new_session=True)

    def decide(self, process):
        """Say something of each job until each has a decision, a new one or one that stands since an earlier start."""
        publisher, decided = Publisher(self.kafka), set()
        answers = Follower(self.kafka, ["decisions", "heartbeats"], start="latest")

        def all_decided():
            assert process.poll() is None, self.log.read_text()
            now = time.time()
            for job in JOBS:
                sample = MetricSample(job, "interval", now - 1, now, arrival_rps=20.0, executors=1, task_ceiling=8)
                publisher.send("metrics", job, sample)
            for record in answers.poll(0.5):
                said = json.loads(record.value)
                if record.topic == "decisions" or (said.get("since") or self.began) < self.began:
                    decided.add(said["job"])
            return decided == set(JOBS)

        try:
            wait_until(all_decided, "a decision for each job", PATIENCE_S, every_s=0.1)
        finally:
            publisher.close()
            answers.close()

    def planned(self):
        """The number of the newest micro-batch in the checkpoint."""
        return max(int(file.name) for file in (self.checkpoint / "offsets").iterdir() if file.name.isdigit())


def killed(process):
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_each_job_is_decided_on_in_containers_and_a_restart_goes_on_from_the_checkpoint(hadoop, empty_topics, tmp_path):
    autoscaler, queries, planned = Autoscaler(empty_topics, tmp_path), set(), [-1]
    for _ in range(2):
        process = autoscaler.start()
        try:
            autoscaler.decide(process)
            assert hadoop.metrics()["containersAllocated"] == CONTAINERS
            assert kept_partitions(autoscaler.checkpoint) == EXECUTORS
            planned.append(autoscaler.planned())
            queries.add((autoscaler.checkpoint / "metadata").read_text())
            os.killpg(process.pid, signal.SIGTERM)
            assert process.wait(PATIENCE_S) == 0, autoscaler.log.read_text()
            nothing_runs(hadoop)
        finally:
            killed(process)
    assert len(queries) == 1 and planned == sorted(planned)  # a micro-batch that was planned is run again


def test_serving_forecasts_in_containers_and_swaps_the_champion(hadoop, empty_topics, tmp_path):
    site = TwoJobs(empty_topics, tmp_path)
    server, log = site.start(EXECUTORS, TIDECAST_SERVING__MASTER="yarn")
    try:
        epoch = epoch_of(server, log)
        site.say(40)
        site.forecast(epoch=epoch, version="1")
        assert hadoop.metrics()["containersAllocated"] == CONTAINERS
        site.promote("2")
        site.forecast(epoch=epoch, version="2")
        assert kept_partitions(tmp_path / "var" / "serving" / f"{STEP:g}" / "query") == EXECUTORS
        ended(server, log)
        nothing_runs(hadoop)
    finally:
        site.close()
        killed(server)


INGEST = f"""\
import json
from pipelines.ingest.run import ingest
print(json.dumps(ingest({HOUR!r})[0]["metrics"]))
"""


@pytest.fixture
def argv(tmp_path):
    """Of an ingest; a process without a file of its own PySpark takes for a test of itself, and ends."""
    (tmp_path / "run_ingest.py").write_text(INGEST)
    return [sys.executable, str(tmp_path / "run_ingest.py")]


@pytest.fixture
def lake(hadoop, empty_topics, tmp_path):
    """Settings of a lake on HDFS that an ingest on YARN fills, and the variables that say so."""
    given = {
        "VAR": str(tmp_path / "var"), "LAKE__ADDRESS": f"{hadoop.filesystem}/{tmp_path.name}/lake",
        "KAFKA__BOOTSTRAP": empty_topics.bootstrap, "KAFKA__PREFIX": empty_topics.prefix, "INGEST__MASTER": "yarn",
    }  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        for name, value in given.items():
            patch.setenv(f"TIDECAST_{name}", value)
        yield load()


def send_metrics(kafka, number):
    publisher = Publisher(kafka)
    for at in range(number):
        sample = MetricSample(JOBS[0], "interval", float(at), float(at) + 1, arrival_rps=20.0, executors=1)
        publisher.send("metrics", JOBS[0], sample)
    publisher.close()


def test_an_ingest_in_containers_writes_rows_to_hdfs_that_are_read_there(hadoop, lake, empty_topics, argv):
    send_metrics(empty_topics, 120)
    done = hadoop.metrics()["appsCompleted"]
    with subprocess.Popen(argv, env=os.environ, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        had_all = False
        while process.poll() is None:
            had_all |= hadoop.metrics()["containersAllocated"] == CONTAINERS
            time.sleep(0.2)
        assert process.returncode == 0 and had_all
        counts = json.loads(process.stdout.read().splitlines()[-1])
    assert (counts["read"], counts["stored"], counts["quarantined"]) == (120, 120, 0)
    nothing_runs(hadoop)
    assert hadoop.metrics()["appsCompleted"] == done + 1
    found = read_metrics_table(lake)
    assert found == {"lake_commits": 1, "lake_rows": 120, "lake_unread": 0, "lake_local": False}


def said_by(argv, env, log, what):
    """Start something that waits for YARN, and return whether it says so; it is ended then."""
    with log.open("w") as sink:
        process = subprocess.Popen(argv, env=env, cwd=ROOT, stdout=sink, stderr=sink, start_new_session=True)
    try:
        wait_until(lambda: what in log.read_text() or process.poll() is not None, what, PATIENCE_S, every_s=0.2)
    finally:
        killed(process)
    return log.read_text()


@pytest.mark.usefixtures("lake")
def test_a_resource_manager_that_is_away_is_named_with_what_helps(hadoop, empty_topics, argv, tmp_path):
    send_metrics(empty_topics, 1)
    conf, (port,) = tmp_path / "conf", free_ports(1)
    conf.mkdir()
    for file in hadoop.conf.iterdir():
        (conf / file.name).write_text(file.read_text())
    site = (hadoop.conf / "yarn-site.xml").read_text()
    (line,) = [one for one in site.splitlines() if "<name>yarn.resourcemanager.address</name>" in one]
    moved = f"<property><name>yarn.resourcemanager.address</name><value>127.0.0.1:{port}</value></property>"
    (conf / "yarn-site.xml").write_text(site.replace(line, moved))
    env = {**os.environ, "HADOOP_CONF_DIR": str(conf), "SPARK_CONF_DIR": str(conf)}
    said = said_by(argv, env, tmp_path / "log", "YARN has not started")
    assert f"Nobody accepts connections at 127.0.0.1:{port}" in said
    assert f"{conf}/yarn-site.xml: start it, or name another configuration by HADOOP_CONF_DIR" in said
    assert "Traceback" not in said


@pytest.mark.usefixtures("lake")
def test_a_queue_without_room_is_named_with_what_helps(hadoop, empty_topics, argv, tmp_path):
    send_metrics(empty_topics, 1)
    hadoop.remove_node(0)  # for good: what waits is YARN's until there is room, and would take it from other tests
    said = said_by(argv, os.environ, tmp_path / "log", "YARN has not started")
    assert "Is its queue full? `yarn application -list` shows who has it" in said and "Traceback" not in said
