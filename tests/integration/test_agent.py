"""The agent in a job of its own on a real broker, master and worker: it measures, obeys, refuses, outlives accidents.

One job serves all tests; they follow each other as a day in its life.
"""

import collections
import itertools
import json
import re
import sys
import threading
import time

import psutil
import pytest

from configs.settings import load
from pipelines.backfill.asked import TimeRange
from pipelines.backfill.orders import (
    OrderError,
    change_order,
    follow_progress,
    newest_progress,
    read_orders,
    send_order,
)
from pipelines.backfill.ranges import find_offsets
from pipelines.kafka.broker import Follower, read_records
from pipelines.kafka.publisher import Publisher
from pipelines.kafka.topics import create_topics
from pipelines.stack.stack import Stack
from tests.conftest import EVENT_PARTITIONS
from tests.fakes.waiting import PATIENCE_S, wait_until
from tests.integration.attached_job import BESIDE, JOB
from tidecast import control
from tidecast.messages import Decision, Heartbeat, MetricSample, Outcome, Reject, decode
from tidecast.orders import ReplayOrder

pytestmark = pytest.mark.integration

RPS = 50
KINDS = {"metrics": MetricSample, "outcomes": Outcome, "rejects": Reject}


class Life:
    """The job, its load, and everything its agent has said so far."""

    def __init__(self, stack, run_dir):
        self.stack, self.kafka, self.run_dir = stack, stack.settings.kafka, run_dir
        create_topics(self.kafka)
        self.publisher, self.said, self.began = Publisher(self.kafka), [], time.time()
        self.beside = []
        self.follower, self._unread = Follower(self.kafka, list(KINDS)), collections.deque()
        self.rps, self.produced, self._ids, self._over = RPS, 0, itertools.count(1), threading.Event()
        self.set_mode("observe")  # kept on its topic before the job is there
        self._loader = threading.Thread(target=self._load, daemon=True)
        self._loader.start()
        argv = [sys.executable, "-m", "tests.integration.attached_job", "--run-dir", str(run_dir)]
        self.job = stack.spawn("attached", argv)

    def _load(self):
        while not self._over.wait(0.2):
            now = time.time()
            self.publisher.send("heartbeats", JOB, Heartbeat(JOB, "autoscaler", now, now, 1.0))
            for _ in range(self.rps // 5):
                key = str(self.produced % 17).encode()
                self.publisher.send_bytes("events", key, b"{}", partition=self.produced % 3)
                self.produced += 1

    def set_mode(self, mode):
        control.set_mode(self.kafka.bootstrap, JOB, mode, prefix=self.kafka.prefix)

    def decide(self, executors, age=0.0, id=None, **rates):
        """Publish a decision; its id."""
        made = time.time() - age
        id = id or f"d{next(self._ids)}"
        self.publisher.send(
            "decisions",
            JOB,
            Decision(id, JOB, made, made, 1.0, "act", "test", executors, "told to", [], {}, {}, **rates),
        )
        return id

    def until(self, wanted, what, timeout_s=PATIENCE_S):
        """The next thing said for which `wanted` holds."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            assert self.job.running(), f"the job has ended:\n{self.job.last_lines(30)}"
            self._unread.extend(self.follower.poll(0.1))
            while self._unread:
                record = self._unread.popleft()
                message = decode(KINDS[record.topic], record.value)
                mine = getattr(message, "job", JOB) == JOB
                (self.said if mine else self.beside).append(message)
                if mine and wanted(message):
                    return message
        last = "\n".join(map(str, self.said[-5:]))
        pytest.fail(f"no {what} within {timeout_s} s; the last that was said:\n{last}\n{self.job.last_lines(20)}")

    def outcome(self, id):
        return self.until(lambda m: isinstance(m, Outcome) and m.decision_id == id, f"outcome of {id}")

    def interval(self, wanted, what):
        return self.until(lambda m: isinstance(m, MetricSample) and m.kind == "interval" and wanted(m), what)

    def executors(self):
        """Executor processes, oldest first."""
        found = []
        for process in psutil.process_iter(["cmdline", "create_time"]):
            if "org.apache.spark.executor.CoarseGrainedExecutorBackend" in (process.info["cmdline"] or []):
                try:
                    if process.environ().get("TIDECAST_STACK") == self.stack.id:
                        found.append(process)
                except psutil.Error:
                    continue
        return sorted(found, key=lambda p: p.info["create_time"])

    def end(self):
        self._over.set()
        self.stack.end("attached")
        self.follower.close()


@pytest.fixture(scope="module")
def life(tmp_path_factory, broker):
    folder = tmp_path_factory.mktemp("agent")
    own = {"bootstrap": broker.bootstrap, "prefix": "life.", "event_partitions": EVENT_PARTITIONS}
    job = {"state_partitions": 1}  # a task and a state store fewer in each of its batches
    with Stack(load(var=folder / "var", kafka=own, job=job), {"broker", "spark"}) as stack:
        made = Life(stack, folder / "run")
        yield made
        made.end()


def test_observing_measures_and_touches_nothing(life):
    batch = life.until(
        lambda m: isinstance(m, MetricSample) and m.kind == "batch" and m.latency_p95_s is not None, "batch", 240
    )
    assert batch.mode == "observe" and batch.application.startswith("app-")  # as a standalone master names it
    assert batch.batch_rows > 0 and batch.batch_s > 0 and batch.stage_s <= batch.batch_s
    assert batch.latency_p50_s <= batch.latency_p95_s <= batch.latency_max_s
    assert batch.state_rows == 17
    assert batch.planning_s > 0 and batch.log_s > 0 and batch.state_commit_s is not None
    assert 0 <= batch.gc_s <= batch.run_s and 0 <= batch.sink_wait_s <= batch.run_s and batch.spilled_bytes == 0
    ignored = life.decide(3)
    seen = [life.interval(lambda m: m.lag_records is not None, "second of metrics") for _ in range(3)]
    # Of four partitions three have records, once batches have told; Spark owns its executors.
    assert all(m.task_ceiling in (None, 4, 3) and m.pending_executors is None for m in seen)
    assert not any(isinstance(m, Outcome) and m.decision_id == ignored for m in life.said)
    told = [m for m in life.said if isinstance(m, MetricSample) and m.task_max_s is not None]
    later = lambda: life.until(lambda m: getattr(m, "task_max_s", None) is not None, "spread of tasks", 60)  # noqa: E731
    spread = told[0] if told else later()
    assert 0 <= spread.task_median_s <= spread.task_max_s
    assert spread.run_s / spread.executors * 0.9 <= spread.busiest_s  # its tasks took at least the mean one's


def test_a_scale_up_is_confirmed_by_use(life):
    life.set_mode("act")
    life.interval(lambda m: m.mode == "act", "acting agent")
    up = life.outcome(life.decide(2))
    assert (up.status, up.target, up.executors_after) == ("confirmed", 2, 2), up
    assert up.decided_at <= up.applied_at <= up.confirmed_at
    assert up.useful_at > up.applied_at
    assert life.interval(lambda m: m.executors == 2, "metric of 2 executors").pending_executors == 0


def test_a_range_is_read_again_beside_live_records_at_the_rate_that_is_decided(life):
    now, topic = time.time(), life.kafka.topic("events")
    found = find_offsets(life.kafka, topic, TimeRange(now - 3600, life.began + 5, 1.0, now))
    assert sorted(found.starts[topic].values()) == [0] * EVENT_PARTITIONS and found.records > 100
    ahead = now + 120  # by the clock of whoever orders it
    order = ReplayOrder("first", JOB, ahead, "run", found.starts, found.ends, most_rps=1200.0)
    running = life.interval(lambda m: m.pending_executors == 0, "executors as decided").executors
    send_order(life.kafka, order)
    said = []
    for one in itertools.takewhile(lambda one: one is not None, follow_progress(life.kafka, order)):
        if one.state == "waiting" and not said:
            life.decide(running, replay_rps=900.0)
        said.append(one)
    assert said[0].admitted_rps in (None, 0.0)  # nothing is read before somebody has decided
    assert (said[-1].state, said[-1].done) == ("done", order.records), said[-3:]
    assert {one.admitted_rps for one in said if one.state == "running"} == {900.0}
    again = life.run_dir / "again"
    assert (again / "first.published").is_file()
    rows = [json.loads(line) for file in (again / "first").glob("*.json") for line in file.open()]
    expected = {
        (place, at) for (_, place), first in order.first.items() for at in range(first, order.past[topic, place])
    }
    assert len(rows) == order.records and {(row["partition"], row["offset"]) for row in rows} == expected
    assert newest_progress(life.kafka, JOB)["first"].state == "done"
    assert read_orders(life.kafka, JOB)["first"].wanted == "done"
    with pytest.raises(OrderError, match="'first' of job 'attached' is over"):
        change_order(life.kafka, JOB, "first", "pause")
    with pytest.raises(OrderError, match="no replay 'second'; known are first"):
        change_order(life.kafka, JOB, "second", "cancel")


def test_live_records_wait_on_their_topic_while_they_are_held_back(life):
    running = life.interval(lambda m: m.pending_executors == 0, "executors as decided").executors
    held = life.decide(running, admission_rps=RPS / 50)
    wait_until(lambda: f"held back to {RPS / 50:.0f}/s by {held}" in life.job.log.read_text(), "held back", every_s=0.1)
    life.rps = 2 * RPS  # more waits sooner
    since = time.time()  # a batch that is under way was planned before
    batches = [
        life.until(lambda m: isinstance(m, MetricSample) and m.kind == "batch" and m.time > since, "batch")
        for _ in range(2)
    ]
    assert all(0 < batch.batch_rows < RPS for batch in batches), batches  # unbounded it would take those of two seconds
    life.interval(lambda m: (m.lag_records or 0) > 8 * RPS, "records that wait")
    life.rps = RPS
    life.decide(running)
    life.until(lambda m: isinstance(m, MetricSample) and m.kind == "batch" and m.batch_rows > 4 * RPS, "larger batch")
    life.interval(lambda m: (m.lag_records or 0) < 8 * RPS, "backlog that is read")
    assert "no longer held back" in life.job.log.read_text()


def test_what_must_not_be_applied_is_refused(life):
    beyond, old = life.decide(9), life.decide(1, age=60)
    assert "out of bounds" in life.outcome(beyond).reason
    assert "stale" in life.outcome(old).reason
    life.publisher.send_bytes("decisions", JOB.encode(), b'{"executors": NaN')
    reject = life.until(lambda m: isinstance(m, Reject), "reject")
    assert (reject.topic, reject.value) == ("decisions", '{"executors": NaN')
    assert life.interval(lambda m: True, "metric").executors == 2


def test_a_killed_executor_is_replaced(life):
    life.executors()[-1].kill()
    life.interval(lambda m: m.executors == 1 and m.pending_executors == 1, "metric of 1 executor")
    life.interval(lambda m: m.executors == 2, "replacement")


def test_frozen_executors_stay(life):
    life.set_mode("freeze")
    life.interval(lambda m: m.mode == "freeze", "frozen agent")
    life.decide(1)
    life.publisher.send_bytes("decisions", JOB.encode(), b"after it")
    life.until(lambda m: isinstance(m, Reject) and m.value == "after it", "reject of what came after it")
    assert all(life.interval(lambda m: True, "metric").executors == 2 for _ in range(2))
    life.set_mode("act")
    life.interval(lambda m: m.mode == "act", "acting agent")


def test_a_scale_down_is_confirmed_when_they_are_gone(life):
    down = life.outcome(life.decide(1))
    assert (down.status, down.target) == ("confirmed", 1), down
    wait_until(lambda: len(life.executors()) == 1, "one executor alone", every_s=0.2)


def test_another_query_of_the_driver_has_executors_of_its_own_and_leaves_them(life):
    (life.run_dir / BESIDE).touch()
    wait_until(lambda: len(life.executors()) == 2, "an executor for the other query", every_s=0.2)

    def told():
        life.interval(lambda m: True, "metric")
        return [m for m in life.beside if isinstance(m, MetricSample) and m.executors == 1 and m.mode == "act"]

    wait_until(told, "metric of the other query", every_s=0.1)
    assert all(life.interval(lambda m: True, "metric").executors == 1 for _ in range(2))
    (life.run_dir / BESIDE).unlink()
    life.interval(lambda m: m.executors == 2, "the executor that the other query has left")
    there = [one.pid for one in life.executors()]
    life.beside.clear()
    (life.run_dir / BESIDE).touch()  # it begins again before a decision has let that executor go
    wait_until(told, "metric of the other query, which has its executor back", every_s=0.1)
    life.interval(lambda m: m.executors == 1, "an executor fewer")
    assert [one.pid for one in life.executors()] == there, "another one was started for it"
    (life.run_dir / BESIDE).unlink()
    life.interval(lambda m: m.executors == 2, "the executor that the other query has left again")
    assert life.outcome(life.decide(1)).status == "confirmed"


def tracebacks(log, package):
    """Those that a package's own files stand in: kafka-python logs one of its own where a socket closes under it."""
    found = []
    for part in log.split("Traceback (most recent call last):\n")[1:]:
        frames = list(itertools.takewhile(lambda line: line.startswith("  "), part.splitlines()))
        found += ["\n".join(frames)] if any(re.search(rf"/{package}/(\w+/)*\w+\.py", line) for line in frames) else []
    return found


def test_every_record_was_seen_once_and_the_agent_ends_with_its_query(life):
    life._over.set()
    life._loader.join()
    life.publisher.flush()
    ended = time.time()
    life.interval(lambda m: m.time >= ended and m.lag_records == 0, "empty backlog")
    life.stack.end("attached")
    assert tracebacks(life.job.log.read_text(), "tidecast") == []

    totals = {r.key: json.loads(r.value)["n"] for r in read_records(life.kafka, "results")}
    assert sum(totals.values()) == life.produced  # through every scale action and the killed executor

    intervals = [m for m in life.said if isinstance(m, MetricSample) and m.kind == "interval"]
    first, last = intervals[0].time, intervals[-1].time + intervals[-1].span_s
    for one, after in itertools.pairwise(intervals):  # no second is missing, none is twice
        assert one.time + one.span_s == pytest.approx(after.time, abs=0.002)
    arrived = sum(first <= r.timestamp < last for r in read_records(life.kafka, "events"))
    assert sum(m.arrival_rps * m.span_s for m in intervals) == pytest.approx(arrived, rel=0.02)
