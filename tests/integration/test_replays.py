"""Replays on a real broker and a real engine: paced, paused, gone on with, published once, or left without a trace."""

import json
import time

import pytest

from pipelines.kafka.publisher import Publisher
from tests.fakes import driver
from tests.fakes.waiting import wait_until
from tidecast.orders import ReplayOrder, ReplayProgress
from tidecast.replay.driver import Replays
from tidecast.replay.replayable import Replayable
from tidecast.replay.source import replay_stream

pytestmark = pytest.mark.integration

PARTITIONS, EACH = 4, 650


@pytest.fixture
def topic(empty_topics, monkeypatch):
    monkeypatch.setattr("tidecast.replay.pace.APART_S", 0.0)  # there are no live records to be left alone
    publisher = Publisher(empty_topics)
    for n in range(PARTITIONS * EACH):
        publisher.send_bytes("events", None, str(n).encode(), partition=n % PARTITIONS)
    publisher.close()
    return empty_topics


class Rerun:
    """A job's side of replays: sequence numbers go to files of the replay's own."""

    def __init__(self, spark, kafka, folder):
        self.spark, self.kafka, self.folder = spark, kafka, folder
        self.published, self.cancelled, self.started = [], [], 0

    def start(self, order):
        self.started += 1
        source = {"kafka.bootstrap.servers": self.kafka.bootstrap, "kafka.fetch.max.wait.ms": "20"}
        stream = replay_stream(self.spark, order, source)
        self.query = (
            stream.selectExpr("partition", "offset", "CAST(value AS STRING) AS seq").writeStream.format("parquet")
            .option("path", str(self.folder / order.id))
            .option("checkpointLocation", str(self.folder / "at" / order.id))
            .trigger(processingTime="200 milliseconds").start()
        )  # fmt: skip
        return self.query

    def replayable(self):
        return Replayable(self.start, self.published.append, self.cancelled.append)

    def read(self, order):
        found = self.spark.read.parquet(str(self.folder / order.id)).collect()
        return sorted((row["partition"], row["offset"]) for row in found)


def _order(kafka, name, first=100, past=350, **changes):
    topic = kafka.topic("events")
    starts, ends = ({topic: {str(p): at for p in range(PARTITIONS)}} for at in (first, past))
    fields = {"id": name, "job": "orders", "wall_time": time.time(), "wanted": "run", "starts": starts, "ends": ends}
    return ReplayOrder(**{**fields, **changes})


def _wanted(order, wanted):
    return ReplayOrder(**{**vars(order), "wanted": wanted, "wall_time": time.time()})


def _last(job):
    said = job.outbox.of(ReplayProgress)
    return said[-1] if said else None


def _rests(replays, job, query):
    """Whether no batch runs, and it gets no further in a second."""
    at, ran = _last(job).done, query.status["isTriggerActive"]
    time.sleep(1.0)
    replays.poll()
    return not ran and _last(job).done == at


def _poll_until(replays, condition, what):
    def met():
        replays.poll()
        return condition()

    wait_until(met, what, every_s=0.05)


def test_a_replay_keeps_to_its_rate_pauses_and_is_published_once_with_just_its_range(spark, topic, tmp_path):
    rerun = Rerun(spark, topic, tmp_path)
    job = driver.job(topics=(topic.topic("events"),))
    job.mode = "act"
    # After 200 records or more a batch may hold four times the last one's, and not all that are left.
    replays, order = Replays(job, rerun.replayable()), _order(topic, "again", past=550, most_rps=800.0)
    job.orders["again"] = order
    try:
        _poll_until(replays, lambda: (p := _last(job)) and p.done >= 200, "a part of the range")
        said = [p for p in job.outbox.of(ReplayProgress) if p.state == "running" and p.rps]
        assert said and {p.admitted_rps for p in said} == {800.0}

        job.orders["again"] = _wanted(order, "pause")
        _poll_until(replays, lambda: _last(job).state == "paused", "a pause")
        _poll_until(replays, lambda: _rests(replays, job, rerun.query), "the end of the batch that was planned before")
        assert _last(job).done < order.records

        job.orders["again"] = _wanted(order, "run")
        _poll_until(replays, lambda: _last(job).state == "done", "the end of the range")
    finally:
        replays.close()
    assert [one.id for one in rerun.published] == ["again"] and not rerun.cancelled and rerun.started == 1
    assert rerun.read(order) == [(p, at) for p in range(PARTITIONS) for at in range(100, 550)]
    (said,) = job.outbox.of(ReplayOrder)
    assert (said.wanted, said.id) == ("done", "again") and _last(job).done == order.records == 1_800
    ends = list({p.done: p.wall_time for p in reversed(job.outbox.of(ReplayProgress)) if p.done}.items())[::-1]
    assert len(ends) > 3  # and what a batch read is waited for before the next one
    for (before, began), (done, _), (_, next_end) in zip(ends, ends[1:], ends[2:], strict=False):
        assert next_end - began > 0.8 * (done - before) / 800


def test_the_next_agent_goes_on_where_the_last_one_stopped(spark, topic, tmp_path, monkeypatch):
    rerun, order = Rerun(spark, topic, tmp_path), _order(topic, "twice", most_rps=1_200.0, task_s=60.0)
    for ending, faster in ((lambda p: p.done >= 90, 4.0), (lambda p: p.state == "done", 1_000.0)):
        monkeypatch.setattr("tidecast.replay.pace.FASTER", faster)  # the second one needs few batches
        job = driver.job(topics=(topic.topic("events"),))
        job.mode, job.orders["twice"] = "act", order
        replays = Replays(job, rerun.replayable())
        try:
            _poll_until(replays, lambda ending=ending, job=job: (p := _last(job)) and ending(p), "its part")
        finally:
            replays.close()
    assert rerun.started == 2 and len(rerun.published) == 1
    assert rerun.read(order) == [(p, at) for p in range(PARTITIONS) for at in range(100, 350)]


def test_a_cancelled_replay_stops_at_once_and_its_own_cleaning_is_called(spark, topic, tmp_path):
    rerun, order = Rerun(spark, topic, tmp_path), _order(topic, "never", most_rps=50.0)
    job = driver.job(topics=(topic.topic("events"),))
    job.mode, job.orders["never"] = "act", order
    replays = Replays(job, rerun.replayable())
    try:
        _poll_until(replays, lambda: (p := _last(job)) and p.done > 0, "its first batch")
        job.orders["never"] = _wanted(order, "cancel")
        _poll_until(replays, lambda: _last(job).state == "cancelled", "its end")
        assert not [query for query in spark.streams.active if "never" in json.dumps(query.lastProgress)]
    finally:
        replays.close()
    assert [one.id for one in rerun.cancelled] == ["never"] and not rerun.published


def test_two_replays_share_a_decided_rate_by_their_weights_and_none_runs_without_one(spark, topic, tmp_path):
    rerun, job = Rerun(spark, topic, tmp_path), driver.job(topics=(topic.topic("events"),))
    job.mode = "act"
    for name, weight in (("heavy", 3.0), ("light", 1.0)):
        job.orders[name] = _order(topic, name, past=250, weight=weight, task_s=60.0)
    replays = Replays(job, rerun.replayable())
    try:
        _poll_until(replays, lambda: len(_newest(job)) == 2, "a word on both")
        assert {(p.state, p.admitted_rps) for p in _newest(job).values()} == {("waiting", 0.0)} and rerun.started == 0

        job.replay_rps, job.heard_at = 1_600.0, time.monotonic() + 3_600
        _poll_until(replays, lambda: {p.state for p in _newest(job).values()} == {"done"}, "both ends")
    finally:
        replays.close()
    for name, share_rps in (("heavy", 1_200.0), ("light", 400.0)):
        first, *later = [p.admitted_rps for p in job.outbox.of(ReplayProgress) if p.id == name and p.admitted_rps]
        assert first == share_rps and {*later} <= {share_rps, 1_600.0}  # all of it once the other one is over
        assert len(rerun.read(job.orders[name])) == 600


def _newest(job):
    return {p.id: p for p in job.outbox.of(ReplayProgress)}


def test_a_range_that_the_topic_no_longer_holds_fails_and_nothing_is_published(spark, topic, tmp_path):
    rerun, job = Rerun(spark, topic, tmp_path), driver.job(topics=(topic.topic("events"),))
    job.mode, job.orders["gone"] = "act", _order(topic, "gone", past=400, most_rps=100.0)
    _drop_before(topic, 250)
    replays = Replays(job, rerun.replayable())
    try:
        _poll_until(replays, lambda: (p := _last(job)) and p.state == "failed", "its failure")
    finally:
        replays.close()
    assert not rerun.published and _last(job).reason


def _drop_before(kafka, offset):
    from kafka import KafkaAdminClient, TopicPartition

    admin = KafkaAdminClient(bootstrap_servers=kafka.bootstrap)
    admin.delete_records({TopicPartition(kafka.topic("events"), part): offset for part in range(PARTITIONS)})
    admin.close()
