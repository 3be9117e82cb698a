"""A job that starts again after an outage with the newest records first: exact, whoever is killed, and never half."""

import json
import time
from collections import Counter
from contextlib import ExitStack, closing
from dataclasses import replace

import pytest
from kafka import KafkaAdminClient

from pipelines.kafka.broker import topic_offsets
from pipelines.kafka.publisher import Publisher
from tests.fakes import driver
from tests.fakes.result_tables import standing
from tests.fakes.waiting import wait_until
from tidecast.backfill import into
from tidecast.merge import MergeSink
from tidecast.orders import ReplayOrder, ReplayProgress
from tidecast.recovery import recover
from tidecast.recovery.epochs import write_epochs
from tidecast.replay.driver import Replays
from tidecast.signed import count, signed

pytestmark = pytest.mark.integration

WINDOW_MS, PARTITIONS, LATE_S = 4_000, 2, 3.0


class Killed(RuntimeError):
    """What a process would not live to see."""


def plan(records):
    """Events per key and window of four seconds."""
    from pyspark.sql import functions as F

    event = F.from_json(F.col("value").cast("string"), "key STRING, at BIGINT")
    events = records.select(event.alias("event")).select("event.key", "event.at")
    return signed(events, "at", ["key"], delay_ms=int(LATE_S * 1000)).window(WINDOW_MS).totals(n=count())


class World:
    """A topic whose events are stamped when they happen, a job that comes and goes, and what readers have seen."""

    def __init__(self, spark, kafka, folder, ends):
        self.spark, self.kafka, self.folder, self.ends = spark, kafka, folder, ends
        self.table, self.events, self.seen = str(folder / "counts"), [], Counter()
        self.partitions = list(range(PARTITIONS))
        self.source = {
            "kafka.bootstrap.servers": kafka.bootstrap, "subscribe": kafka.topic("events"),
            "startingOffsets": "earliest", "maxOffsetsPerTrigger": "400", "kafka.fetch.max.wait.ms": "20",
        }  # fmt: skip

    def happen(self, begin, end, each_s=0.25, late_s=0.0):
        """Events from one wall time to another; they are produced as they happen, or later."""
        publisher = Publisher(self.kafka)
        for n in range(int((end - begin) / each_s)):
            at = begin + n * each_s
            event = f"k{n % 3}", int(at * 1000)
            publisher.send_bytes(
                "events", None, json.dumps(dict(zip(("key", "at"), event, strict=True))).encode(),
                partition=self.partitions[len(self.events) % len(self.partitions)], timestamp_s=at + late_s,
            )  # fmt: skip
            self.events.append(event)
        publisher.close()

    def grow(self):
        """Add a partition to the topic, to which all events go from now on."""
        self.partitions = [len(topic_offsets(self.kafka, "events"))]
        with closing(KafkaAdminClient(bootstrap_servers=self.kafka.bootstrap)) as admin:
            admin.create_partitions({self.kafka.topic("events"): self.partitions[0] + 1})

    def start(self, order="live_first", **options):
        given = {"least_s": 2.0, "ahead_s": 0.0, "rps": 2_000.0, "late_s": LATE_S, **options}
        sink = MergeSink(self.table, ["key"])
        return recover(self.spark, "orders", sink, self.source, str(self.folder / "live"), order, **given)

    def live(self, recovery):
        """Run the live query until it has all that there is."""
        query = recovery.start(plan(recovery.records).writeStream.outputMode("update"))
        try:
            query.processAllAvailable()
        finally:
            query.stop()
        self.look()

    def agent(self, recovery):
        job = driver.job(topics=(self.kafka.topic("events"),))
        job.mode = "act"
        into = recovery.replay_into(plan, output_mode="update", trigger="200 milliseconds")
        unhurried = tuple(replace(order, task_s=60.0) for order in into.orders)  # on a busy machine tasks are long
        replays = Replays(job, replace(into, orders=unhurried))
        self.ends.callback(replays.close)  # where the test fails; a second time nothing is left to be done
        return job, replays

    def look(self):
        """What readers see of a window never falls: events are only ever added."""
        now = {(row["key"], row["_window_start"]): row["n"] for row in standing(self.table)}
        assert all(now.get(group, 0) >= n for group, n in self.seen.items()), "a reader saw a window go back"
        assert all(n <= self.truth()[group] for group, n in now.items()), "more than there is"
        self.seen = Counter(now)
        return now

    def comes_back(self, recovery):
        """Run live behind an outage; readers see no window of it in part. From when on it saw events, wall seconds."""
        known, epoch = self.look(), recovery.epochs[-1]
        resumed = epoch.whole_from / 1000  # whenever it was in fact: its window is straddled
        self.happen(resumed, resumed + 0.5)
        self.happen(resumed - 1.5, resumed - 0.5, late_s=1.6)  # late ones, of windows that live sees a part of
        self.live(recovery)
        partly = self.look()
        assert {group: n for group, n in partly.items() if group in known} == known  # nothing half, nothing back
        assert all(start >= epoch.whole_from or (key, start) in known for key, start in partly)
        return resumed

    def truth(self):
        return Counter((key, at // WINDOW_MS * WINDOW_MS) for key, at in self.events)


def said(job, name):
    return [one for one in job.outbox.of(ReplayProgress) if one.id == name]


def states(job, name):
    return [one.state for one in said(job, name)]


@pytest.fixture
def world(one_partition, empty_topics, tmp_path, monkeypatch):
    monkeypatch.setattr("tidecast.replay.driver.AGAIN_S", 1.0)  # nobody polls while live goes on
    with ExitStack() as ends:
        yield World(one_partition, empty_topics, tmp_path, ends)


def test_newest_first_then_the_gaps_and_every_window_is_right_in_the_end(world, monkeypatch):
    """Two outages, the second one before the gap of the first is filled; the driver is killed in both gaps."""
    begin = time.time() - 60
    world.happen(begin, begin + 21)
    first = world.start()
    assert "starts for the first time" in first.text and not first.epochs
    world.live(first)
    assert world.look() == world.truth()

    # A short stop is no outage: the job goes on where it was, and knows all of its windows.
    again = world.start(least_s=1e6)
    assert "in order" in again.text and not again.epochs and again.checkpoint == first.checkpoint

    world.happen(begin + 21, time.time())  # while nobody counts; the window of begin + 20 is counted in part
    first = world.start()
    (epoch,) = first.epochs
    assert epoch.number == 1 and first.sink.epoch == 1 and "gap-1" in first.text
    assert first.checkpoint != again.checkpoint
    assert epoch.gap.records < len(world.events)  # windows that were final before are not read again
    resumed = world.comes_back(first)

    # The driver is killed in the middle of the gap, and is away so long that the next gap takes this one over.
    job, replays = world.agent(first)
    wait_until(lambda: replays.poll() or any(one.done for one in said(job, "gap-1")), "a part of the gap", 300, 0.1)
    assert [one.id for one in job.outbox.of(ReplayOrder)][:1] == ["gap-1"]  # so that it can be paused and cancelled
    replays.close()
    time.sleep(max(resumed + 4 - time.time(), 0))
    world.happen(resumed + 0.5, time.time())
    out = world.start()
    assert [(one.number, one.gap.wanted) for one in out.epochs] == [(1, "cancel"), (2, "run")]
    epoch = out.epochs[1]
    assert epoch.gap.begin_ms <= first.epochs[0].gap.begin_ms
    resumed, partly = world.comes_back(out), world.look()

    # A round of the gap is published while live still has windows of it open.
    driver.begin_large(monkeypatch, len(world.events))  # one batch of all records
    write_epochs(world.folder / "live", [out.epochs[0], replace(epoch, final_s=time.time() + 3_600)])
    out = world.start(least_s=1e6)
    assert "in order" in out.text and [one.number for one in out.epochs] == [1, 2]
    job, replays = world.agent(out)
    job.orders["gap-1"] = first.epochs[0].gap  # as it stands on control
    publish_round, rounds = into.publish_round, []

    def failing_in_the_second(*given, **named):
        told = publish_round(*given, **named)
        rounds.append(told)
        if len(rounds) == 2:
            raise Killed
        return told

    monkeypatch.setattr(into, "publish_round", failing_in_the_second)
    wait_until(
        lambda: replays.poll() or any("may come until" in one.reason for one in said(job, "gap-2")), "a round", 300, 0.1
    )
    assert states(job, "gap-1") == ["cancelled"] and states(job, "gap-2")[-1] == "read"
    shown = world.look()
    assert len(shown) > len(partly) and rounds[0].committed

    # Live goes on, on a partition more; what is straddled is told again, and shown as the gap's round has it.
    world.grow()
    now = time.time()
    world.happen(resumed + 0.5, now, each_s=2.0)
    world.live(out)
    kept = {group: n for group, n in shown.items() if group[1] < epoch.whole_from}
    assert {group: n for group, n in world.look().items() if group[1] < epoch.whole_from} == kept

    # A further round fails: the gap is published again, by nobody's order. The driver is killed after that.
    wait_until(lambda: replays.poll() or len(rounds) > 2, "a further try", 300, 0.1)
    assert "failed" not in states(job, "gap-2") and any("is tried again" in one.reason for one in said(job, "gap-2"))
    replays.close()
    world.happen(now, max(time.time(), epoch.final_s) + 1, each_s=2.0)
    world.live(out)

    # At last no record of its windows is to come any more.
    write_epochs(world.folder / "live", [out.epochs[0], epoch])
    out = world.start(least_s=1e6)
    job, replays = world.agent(out)
    wait_until(lambda: replays.poll() or "done" in states(job, "gap-2"), "its end", 300, 0.1)
    replays.close()
    assert world.look() == world.truth()
    assert {one.wanted for one in out.replay_into(plan).orders} == {"cancel"}  # and none to fill
