"""Load generator and managed job as processes of their own, on a real broker."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from configs.settings import load
from pipelines.jobs.history import publish_history
from pipelines.jobs.launch import read_first_offsets
from pipelines.jobs.truth import compare_counts, read_counts
from pipelines.kafka.broker import read_records
from pipelines.kafka.publisher import Publisher
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
def start(empty_topics, tmp_path):
    """Starts a module of `pipelines.jobs` on the broker; what still runs at the end is killed."""
    environment = {
        **os.environ,
        "TIDECAST_KAFKA__BOOTSTRAP": empty_topics.bootstrap,
        "TIDECAST_KAFKA__PREFIX": empty_topics.prefix,
        "TIDECAST_SPARK__MASTER": "local[2]",
        "TIDECAST_VAR": str(tmp_path / "var"),
        "TIDECAST_JOB__SERVICE_MS": "1",
        "TIDECAST_JOB__TRIGGER": "1 second",
        "TIDECAST_JOB__MAX_OFFSETS_PER_TRIGGER": "1000",
        "TIDECAST_REPLAY__SPEED": "720",
        "TIDECAST_REPLAY__LIVE_HOURS": "1.5",
        "TIDECAST_REPLAY__PEAK_RPS": "1000",
        "TIDECAST_REPLAY__WITHHELD_SHARE": "0",
    }
    started = []

    def run(module, *options, **more):
        command = [sys.executable, "-m", f"pipelines.jobs.{module}", "--run-dir", str(tmp_path), *options]
        started.append(subprocess.Popen(command, env=environment | more, start_new_session=True))
        return started[-1]

    yield run
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def wait_for(happened, what):
    wait_until(happened, what, PATIENCE_S, every_s=0.2)


def test_counts_equal_the_truth_though_the_driver_is_killed_and_bad_events_come(start, empty_topics, tmp_path):
    (tmp_path / "word_count.yaml").write_text(f"job: word_count\nconfigurations: {CONFIGURATIONS}\n")
    job = start("word_count", "--no-agent", TIDECAST_CONTRACTS=str(tmp_path))
    summary = tmp_path / "word_count.json"
    wait_for(lambda: summary.is_file(), "first batch")
    assert start("load_generator", "--warm-up").wait(PATIENCE_S) == 0
    generator = start("load_generator")
    publisher = Publisher(empty_topics)
    for raw, _ in BAD_EVENTS.values():
        publisher.send_bytes("events", b"bad", raw)
    publisher.close()

    def rows():
        *whole, _ = (tmp_path / "word_count.progress.jsonl").read_text().split("\n")  # the job may be at the last one
        return sum(json.loads(line)["numInputRows"] for line in whole)

    wait_for(lambda: rows() > 0, "a batch with records")
    job.kill()
    job.wait()
    job = start("word_count", "--no-agent", TIDECAST_CONTRACTS=str(tmp_path))
    assert generator.wait(PATIENCE_S) == 0
    truth = json.loads((tmp_path / "truth.json").read_text())
    start_at = read_first_offsets(tmp_path, "word_count")["results"]
    exact = {"produced": truth["produced"], "counted": truth["produced"]}
    exact |= {"lost": 0, "duplicated": 0, "late_dropped": 0}
    wait_for(lambda: compare_counts(truth, read_counts(empty_topics, start_at)) == exact, "counts equal to the truth")
    job.terminate()
    assert job.wait(PATIENCE_S) == 0
    noted = [json.loads(line) for line in (tmp_path / "word_count.configurations.jsonl").read_text().splitlines()]
    assert [one["name"] for one in noted] == ["quick", "quick"]  # nothing is changed before thirty intervals
    ran = {json.loads(line)["runId"] for line in (tmp_path / "word_count.progress.jsonl").read_text().splitlines()}
    assert {one["run_id"] for one in noted} == ran
    tasks = read_event_logs(tmp_path / "eventlog").tasks  # of both drivers
    assert (tasks["application"].nunique(), tasks["query"].nunique()) == (2, 1)
    trim_event_logs(tmp_path / "eventlog", 0)
    left = read_event_logs(tmp_path / "eventlog").tasks
    assert set(left["application"]) == {tasks["application"].max()} and len(left) < len(tasks)
    rejects = {
        (r.partition, r.offset): r for r in (decode(Reject, x.value) for x in read_records(empty_topics, "rejects"))
    }
    assert len(rejects) == len(BAD_EVENTS)
    assert {(r.topic, r.by) for r in rejects.values()} == {("events", "word_count")}
    clocks = [clock_of(decode(Control, record.value)) for record in read_records(empty_topics, "control")]
    assert {clock.wall_start for clock in clocks} == {truth["wall_start"]}


def test_sigterm_ends_a_replay_early_with_its_truth(start, empty_topics, tmp_path):
    minutes = {"TIDECAST_REPLAY__LIVE_HOURS": "48", "TIDECAST_REPLAY__PEAK_RPS": "200"}  # not done before it is ended
    generator = start("load_generator", **minutes)
    wait_for(lambda: sum(1 for _ in read_records(empty_topics, "events")) > 0, "first records")
    generator.terminate()
    assert generator.wait(PATIENCE_S) == 0
    truth = json.loads((tmp_path / "truth.json").read_text())
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
