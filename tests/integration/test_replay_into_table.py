"""A range counted again into the live query's table, on a real broker and real Delta: exact, once, only the range."""

import json
import time
from collections import Counter
from dataclasses import replace

import pytest

from pipelines.backfill.asked import TimeRange
from pipelines.backfill.orders import newest_progress, read_orders, send_order
from pipelines.backfill.tables import find_range
from pipelines.kafka.publisher import Publisher
from pipelines.kafka.topics import create_topic
from tests.fakes import driver
from tests.fakes.result_tables import standing, version
from tests.fakes.waiting import wait_until
from tidecast.backfill import replay_into
from tidecast.connection.environment import ORDER
from tidecast.merge import MergeSink
from tidecast.orders import ReplayOrder, ReplayProgress, order_key
from tidecast.replay.apart import replay_apart
from tidecast.replay.driver import Replays
from tidecast.replay.dry_run import NAME
from tidecast.signed import count, signed

pytestmark = pytest.mark.integration

MINUTE, MINUTES, EACH, PARTITIONS = 60_000, 6, 20, 2
BEGIN, END = 2 * MINUTE, 4 * MINUTE
"""Of the replay: two of six windows."""
REFUNDS = [("k1", BEGIN + 500), ("k2", 5 * MINUTE)]
"""On the job's other topic."""


def _events():
    """Key and event time, ms; twenty in each minute."""
    return [(f"k{n % 3}", minute * MINUTE + 1_000 * n) for minute in range(MINUTES) for n in range(EACH)]


@pytest.fixture
def topic(empty_topics, monkeypatch):
    driver.begin_large(monkeypatch, MINUTES * EACH // 4 // 2 + 1)  # of four partitions: two batches of half the records
    _send(empty_topics, _events())
    create_topic(empty_topics, "refunds")
    _send(empty_topics, REFUNDS, "refunds")
    return empty_topics


def _send(kafka, events, name="events"):
    publisher = Publisher(kafka)
    for n, (key, at) in enumerate(events):
        publisher.send_bytes(name, None, json.dumps({"key": key, "at": at}).encode(), partition=n % PARTITIONS)
    publisher.close()


def _plan(left_out=""):
    """Events per key and minute; the first version of the plan lost a key."""

    def plan(records):
        from pyspark.sql import functions as F

        event = F.from_json(F.col("value").cast("string"), "key STRING, at BIGINT")
        events = records.select(event.alias("event")).select("event.key", "event.at").where(F.col("key") != left_out)
        return signed(events, "at", ["key"], delay_ms=60 * MINUTE).window(MINUTE).totals(n=count())

    return plan


class Job:
    """A live query that merges what two topics hold into a table, and the side of its agent that runs replays."""

    def __init__(self, spark, kafka, folder):
        self.spark, self.kafka, self.folder = spark, kafka, folder
        self.topics, now = (kafka.topic("events"), kafka.topic("refunds")), time.time() + 1  # all were sent before
        self.range = find_range(kafka, self.topics, TimeRange(now - 3600, now, 0.0, now))
        self.table = str(folder / "counts")
        self.source = {"kafka.bootstrap.servers": kafka.bootstrap, "kafka.fetch.max.wait.ms": "20"}
        self.job = driver.job(topics=self.topics)
        self.job.mode = "act"
        self.again = replay_into(spark, self.table, _plan(), self.source, "2", "update", "200 milliseconds")

    def live(self, plan, version):
        """Run the live query until it has all that there is."""
        records = (
            self.spark.readStream.format("kafka").options(**self.source)
            .option("subscribe", ",".join(self.topics)).option("startingOffsets", "earliest").load()
        )  # fmt: skip
        query = (
            plan(records).writeStream.foreachBatch(MergeSink(self.table, ["key"], plan=version)).outputMode("update")
            .option("checkpointLocation", str(self.folder / "live")).start()
        )  # fmt: skip
        try:
            query.processAllAvailable()
        finally:
            query.stop()

    def replay(self, name, **fields):
        """Order the range again and poll until the replay is over; what was said of it."""
        self.job.outbox.clear()
        self.job.orders = {name: self.order(name, **fields)}
        replays = Replays(self.job, self.again)
        try:
            over = ("done", "failed", "cancelled", "compared")
            wait_until(lambda: replays.poll() or self.state(name) in over, "its end", 240.0, every_s=0.25)
        finally:
            replays.close()
        return [one for one in self.job.outbox.of(ReplayProgress) if one.id == name]

    def order(self, name, **fields):
        return ReplayOrder(
            name, "orders", time.time(), "run", most_rps=1e4, task_s=60.0,
            **{"starts": self.range.starts, "ends": self.range.ends, "begin_ms": BEGIN, "end_ms": END, **fields},
        )  # fmt: skip

    def state(self, name):
        said = [one.state for one in self.job.outbox.of(ReplayProgress) if one.id == name]
        return said[-1] if said else ""

    def rows(self):
        return {(row["key"], row["_window_start"]): row["n"] for row in standing(self.table)}

    def commits(self):
        return version(self.table)


def _truth(left_out=""):
    return Counter((key, at // MINUTE * MINUTE) for key, at in [*_events(), *REFUNDS] if key != left_out)


def test_a_corrected_plan_counts_ranges_of_two_topics_again_beside_live_and_apart_and_readers_see_each_at_once(
    one_partition, topic, tmp_path, monkeypatch
):
    """And nothing of a dry run, or of one topic; an application of its own reads what is ordered apart, and ends."""
    job = Job(one_partition, topic, tmp_path)
    job.live(_plan("k1"), "1")
    before = job.commits()
    job.again.dry_run(job.order(NAME))
    assert job.rows() == _truth("k1") and job.commits() == before
    assert not (tmp_path / "counts.backfills" / NAME).exists()

    events, refunds = job.topics
    said = job.replay("half", starts={events: job.range.starts[events]}, ends={events: job.range.ends[events]})
    assert said[-1].state == "failed" and f"leaves out {refunds}, without" in said[-1].reason
    said = job.replay("early")
    assert said[-1].state == "failed" and "until that plan is promoted" in said[-1].reason
    assert {one.done for one in said} == {0}  # before anything was read
    said = job.replay("early", then="compare")
    assert said[-1].state == "compared" and said[-1].reason.startswith("2 of 6 windows differ"), said[-1].reason
    assert "worst key k1" in said[-1].reason
    assert job.rows() == _truth("k1")  # another plan than live's is compared, not published

    more = [("k1", 5 * MINUTE + 500), ("k0", 5 * MINUTE + 600)]
    _send(topic, more)
    job.live(_plan(), "2")  # the corrected plan goes on from where the other stood
    assert job.rows()["k1", 5 * MINUTE] == 1  # and knows nothing of what that one left out

    before = job.commits()
    said = job.replay("early")  # the same replay goes on
    assert said[-1].state == "done", said[-1]
    inside = {group: n for group, n in _truth().items() if BEGIN <= group[1] < END}
    outside = {group: n for group, n in _truth("k1").items() if not BEGIN <= group[1] < END}
    outside["k1", 5 * MINUTE], outside["k0", 5 * MINUTE] = 1, outside["k0", 5 * MINUTE] + 1
    assert inside["k1", BEGIN] == 8 and job.rows() == inside | outside
    assert job.commits() == before + 1
    _apart(job, topic, monkeypatch)


def _apart(job, topic, monkeypatch):
    """The minutes before, by applications of their own."""
    driver.begin_large(monkeypatch, MINUTES * EACH)  # that it goes on from batch to batch was shown above
    rows, span = job.rows(), {"begin_ms": 0, "end_ms": BEGIN}
    apart, other = job.order("apart", apart=2, **span), job.order("other", apart=1, **span)
    for order in (job.order("beside"), apart, other):
        send_order(topic, order)
    monkeypatch.setenv(ORDER, order_key("orders", "apart"))
    assert replay_apart("orders", job.again, topic.bootstrap, topic.security, topic.prefix) == {"apart": "done"}
    inside = {group: n for group, n in _truth().items() if group[1] < BEGIN}
    assert inside.keys() - rows.keys() == {("k1", 0), ("k1", MINUTE)}
    assert job.rows() == rows | inside
    said = newest_progress(topic, "orders")
    assert [*said] == ["apart"] and (said["apart"].state, said["apart"].apart) == ("done", 2)
    assert said["apart"].done == said["apart"].records == apart.records
    assert {name: one.wanted for name, one in read_orders(topic, "orders").items()} == {
        "beside": "run",
        "apart": "done",
        "other": "run",
    }
    send_order(topic, replace(other, wanted="cancel", wall_time=time.time()))
    monkeypatch.delenv(ORDER)  # for any order
    assert replay_apart("orders", job.again, topic.bootstrap, topic.security, topic.prefix) == {"other": "cancelled"}
    assert job.rows() == rows | inside
    assert replay_apart("orders", job.again, topic.bootstrap, topic.security, topic.prefix) == {}  # nothing is left
