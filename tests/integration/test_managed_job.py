"""Load generator and managed job as processes of their own, on a real broker, in a run that began on another one."""

import json
import multiprocessing
import os
import runpy
import shlex
import signal
import subprocess
import sys
import time

import pytest

from configs.settings import load
from pipelines.jobs.history import publish_history
from pipelines.jobs.launch import TOPICS, read_first_offsets
from pipelines.jobs.restarts.same_topics import refuse_other_topics
from pipelines.jobs.truth import compare_counts, read_counts
from pipelines.kafka.broker import read_records
from pipelines.kafka.publisher import Publisher
from pipelines.kafka.topics import create_topic
from pipelines.report.recorded.eventlog import read_event_logs
from pipelines.spark.event_log import trim_event_logs
from pipelines.traces.trace import load_trace
from tests.fakes.bad_events import BAD_EVENTS
from tests.fakes.waiting import wait_until
from tidecast.control import clock_of
from tidecast.messages import Control, MetricSample, Reject, decode

pytestmark = pytest.mark.integration

PATIENCE_S = 300
"""A job's session alone takes half a minute where other tests share two cores with it."""
CONFIGURATIONS = (
    "{quick: {trigger: 500 milliseconds, spark.sql.streaming.stateStore.rocksdb.blockCacheSizeMB: 16}, usual: {}}"
)


@pytest.fixture
def another(empty_topics):
    """What a run sees of another cluster than that of all tests: topics of the same names with ids of their own."""
    other = empty_topics.model_copy(update={"prefix": f"{empty_topics.prefix}another."})
    for topic in TOPICS:
        create_topic(other, topic)
    return other


@pytest.fixture
def folder(tmp_path):
    """Of the run."""
    (tmp_path / "run").mkdir()
    return tmp_path / "run"


@pytest.fixture
def environment(tmp_path):
    """Settings of a process, as variables."""
    (tmp_path / "word_count.yaml").write_text(f"job: word_count\nconfigurations: {CONFIGURATIONS}\n")
    return {
        "TIDECAST_SPARK__MASTER": "local[2]",
        "TIDECAST_VAR": str(tmp_path / "var"),
        "TIDECAST_CONTRACTS": str(tmp_path),
        "TIDECAST_JOB__SERVICE_MS": "1",
        "TIDECAST_JOB__TRIGGER": "1 second",
        "TIDECAST_JOB__STATE_PARTITIONS": "1",
        "TIDECAST_JOB__MAX_OFFSETS_PER_TRIGGER": "1000",
        "TIDECAST_REPLAY__SPEED": "720",
        "TIDECAST_REPLAY__LIVE_HOURS": "1.5",
        "TIDECAST_REPLAY__PEAK_RPS": "500",
        "TIDECAST_REPLAY__WITHHELD_SHARE": "0",
    }


def named(kafka):
    return {"TIDECAST_KAFKA__BOOTSTRAP": kafka.bootstrap, "TIDECAST_KAFKA__PREFIX": kafka.prefix}


@pytest.fixture
def start(folder, environment):
    """Starts the job on a cluster; what still runs at the end is killed."""
    started = []

    def run(kafka):
        command = [sys.executable, "-m", "pipelines.jobs.word_count", "--run-dir", str(folder), "--no-agent"]
        own = {**os.environ, **environment, **named(kafka)}
        started.append(subprocess.Popen(command, env=own, start_new_session=True))
        return started[-1]

    yield run
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture
def fork(folder, environment):
    """Runs a module of `pipelines.jobs` on a cluster in a fork that has all imported; complaints go to a file."""
    started = []

    def run(kafka, module, *options, words=None, **more):
        def become():
            os.environ.update(environment | named(kafka) | more)
            sys.argv = [module, "--run-dir", str(folder), *options]
            if words is not None:
                sys.stderr = words.open("w")
            runpy.run_module(f"pipelines.jobs.{module}", run_name="__main__")

        started.append(multiprocessing.get_context("fork").Process(target=become))
        started[-1].start()
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.join()


def status(process):
    """Of a fork, once it has ended."""
    process.join(PATIENCE_S)
    return process.exitcode


def wait_for(happened, what, every_s=0.2):
    wait_until(happened, what, PATIENCE_S, every_s=every_s)


def counts_are_exact(folder, kafka):
    """Whether all that was produced in a run stands in its counts, once."""
    truth = json.loads((folder / "truth.json").read_text())
    exact = {"produced": truth["produced"], "counted": truth["produced"]}
    exact |= {"lost": 0, "duplicated": 0, "late_dropped": 0}
    first = read_first_offsets(folder, "word_count")["results"]
    return truth["produced"] > 0 and compare_counts(truth, read_counts(kafka, first)) == exact


def test_a_run_of_another_cluster_begins_anew_as_it_says_and_is_exact_though_its_driver_is_killed_and_bad_events_come(
    start, fork, empty_topics, another, folder, tmp_path
):
    checkpoint = folder / "word_count.checkpoint"
    refuse_other_topics(another, folder, "word_count", TOPICS, checkpoint)  # as the run's first start does, there
    assert status(fork(empty_topics, "word_count", "--no-agent", words=tmp_path / "words")) == 1
    said = (tmp_path / "words").read_text()
    names = f"{empty_topics.prefix}events, {empty_topics.prefix}results at {empty_topics.bootstrap}"
    assert f"{names}: not the topics on which" in said
    (command,) = [line.strip() for line in said.splitlines() if line.strip().startswith("mv ")]
    subprocess.run(shlex.split(command), check=True)

    job = start(empty_topics)
    wait_for((folder / "word_count.json").is_file, "first batch")
    generator = fork(empty_topics, "load_generator")
    bad = [raw for raw, _ in BAD_EVENTS.values()]

    def send(events):
        publisher = Publisher(empty_topics)
        for raw in events:
            publisher.send_bytes("events", b"bad", raw)
        publisher.close()

    def batches():
        *whole, _ = (folder / "word_count.progress.jsonl").read_text().split("\n")  # the job may be at the last one
        return [json.loads(line) for line in whole]

    def rejected():
        said = (decode(Reject, one.value) for one in read_records(empty_topics, "rejects"))
        return {(one.partition, one.offset): one for one in said}

    send(bad[:10])
    wait_for(lambda: sum(one["numInputRows"] for one in batches()) > 10, "a batch with records")
    job.kill()
    job.wait()
    send(bad[10:])  # all else may have been counted by now
    job = start(empty_topics)
    wait_for(lambda: len({one["runId"] for one in batches()}) == 2, "a batch of the second driver")
    assert status(generator) == 0
    wait_for(lambda: counts_are_exact(folder, empty_topics), "counts equal to the truth", 0.5)
    wait_for(lambda: len(rejected()) >= len(BAD_EVENTS), "what is wrong of the second driver's events", 0.5)
    job.terminate()
    assert job.wait(PATIENCE_S) == 0
    noted = [json.loads(line) for line in (folder / "word_count.configurations.jsonl").read_text().splitlines()]
    assert [one["name"] for one in noted] == ["quick", "quick"]  # nothing is changed before thirty intervals
    assert {one["run_id"] for one in noted} == {one["runId"] for one in batches()}
    tasks = read_event_logs(folder / "eventlog").tasks  # of both drivers
    assert (tasks["application"].nunique(), tasks["query"].nunique()) == (2, 1)
    trim_event_logs(folder / "eventlog", 0)
    left = read_event_logs(folder / "eventlog").tasks
    assert set(left["application"]) == {tasks["application"].max()} and len(left) < len(tasks)
    rejects = rejected()
    assert len(rejects) == len(BAD_EVENTS)
    assert {(r.topic, r.by) for r in rejects.values()} == {("events", "word_count")}
    clocks = [clock_of(decode(Control, record.value)) for record in read_records(empty_topics, "control")]
    assert {clock.wall_start for clock in clocks} == {json.loads((folder / "truth.json").read_text())["wall_start"]}


def test_sigterm_ends_a_replay_early_with_its_truth(fork, empty_topics, folder):
    minutes = {"TIDECAST_REPLAY__LIVE_HOURS": "48", "TIDECAST_REPLAY__PEAK_RPS": "200"}  # not done before it is ended
    generator = fork(empty_topics, "load_generator", **minutes)
    wait_for(lambda: sum(1 for _ in read_records(empty_topics, "events")) > 0, "first records")
    generator.terminate()
    assert status(generator) == 0
    truth = json.loads((folder / "truth.json").read_text())
    assert 0 < truth["produced"] < truth["planned"]
    assert truth["produced"] == sum(1 for _ in read_records(empty_topics, "events"))


def test_history_is_published_as_intervals_of_trace_time(empty_topics):
    settings = load(kafka=empty_topics.model_dump(), replay={"history_days": 2})
    began = time.time()
    assert publish_history(settings) == 96
    samples = [decode(MetricSample, record.value, time.time()) for record in read_records(empty_topics, "metrics")]
    times, rates = load_trace(settings.replay).history()
    assert [sample.time for sample in samples] == times.tolist()
    assert [sample.arrival_rps for sample in samples] == rates.tolist()
    assert {(s.job, s.kind, s.span_s, s.time_scale) for s in samples} == {
        ("word_count", "interval", 1800, settings.replay.speed)
    }
    assert began <= samples[0].wall_time <= time.time()
