"""A managed job that merges its results, on a real broker and engine: after an outage the newest records come first."""

import time
from dataclasses import replace

import pytest

from configs.contract import Contract
from configs.settings import load
from pipelines.jobs.launch import Launch
from pipelines.jobs.plans import key_totals
from pipelines.jobs.plans.merged import MergedJob, table_of
from pipelines.kafka.broker import topic_offsets
from pipelines.kafka.publisher import Publisher
from tests.fakes import driver
from tests.fakes.plan_truths import SignedEvent, encode_signed, true_totals
from tests.fakes.result_tables import standing
from tests.fakes.waiting import wait_until
from tidecast.orders import ReplayProgress
from tidecast.replay.driver import Replays

pytestmark = pytest.mark.integration


class World:
    """The job in its run folder, and the events that it is sent."""

    def __init__(self, spark, kafka, folder):
        self.spark, self.kafka, self.folder, self.events = spark, kafka, folder, []
        job = {"trigger": "200 milliseconds", "max_offsets_per_trigger": 30}
        self.settings = load(kafka=kafka.model_dump(), job=job)

    def happen(self, ages_s):
        """Events that happened, and were stamped, so many seconds ago."""
        now = time.time()
        publisher = Publisher(self.kafka)
        for n, age_s in enumerate(ages_s):
            event = SignedEvent(len(self.events), int((now - age_s) * 1000), f"k{n % 3}")
            publisher.send_bytes("events", None, encode_signed(event), partition=n % 2, timestamp_s=now - age_s)
            self.events.append(event)
        publisher.close()

    def start(self):
        """Job, its query, and its side of replays."""
        places = {"events": dict.fromkeys(topic_offsets(self.kafka, "events"), 0)}
        said = {"job": key_totals.JOB, "backpressure": {"recovery": {"order": "live_first"}}}
        contract = Contract.model_validate(said)
        launch = Launch(key_totals.JOB, self.spark, self.settings, self.folder, places, contract)
        job = MergedJob(key_totals.plan, key_totals.KEYS)
        query = job.start(launch)
        return query, job.replayable(launch, query)

    def run(self):
        """Read all that there is, and stop; records that were read, and the side of replays."""
        query, again = self.start()
        try:
            query.processAllAvailable()
        finally:
            query.stop()
        return sum(one.numInputRows for one in query.recentProgress), again

    def look(self):
        rows = standing(table_of(self.folder, key_totals.JOB))
        return {(row["key"], row["_window_start"]): (row["n"], row["seq_sum"]) for row in rows}

    def fill(self, again):
        """The agent's side, until the gap is in the table."""
        job = driver.job(key_totals.JOB, topics=(self.kafka.topic("events"),))
        job.mode, job.replay_rps, job.heard_at = "act", 1e5, time.monotonic() + 3_600
        unhurried = tuple(replace(order, task_s=60.0) for order in again.orders)
        replays = Replays(job, replace(again, orders=unhurried))

        def over():
            replays.poll()
            said = [one for one in job.outbox.of(ReplayProgress)]
            return said and (said[-1].state in ("done", "failed") or (said[-1].state == "read" and said[-1].reason))

        wait_until(over, "the gap in the table", 300, 0.1)
        replays.close()
        return job.outbox.of(ReplayProgress)[-1]


@pytest.fixture
def world(one_partition, empty_topics, tmp_path, monkeypatch):
    driver.begin_large(monkeypatch, 30)  # of two partitions: two batches for all that it has to read
    monkeypatch.setattr("tidecast.replay.pace.FASTER", 1_000.0)
    return World(one_partition, empty_topics, tmp_path)


def test_the_contract_says_which_records_come_first(world, capsys):
    world.happen(range(1_200, 800, -10))  # two batches: the second one's plan knows a watermark
    assert world.run()[0] == len(world.events)
    assert world.look() == true_totals(world.events)
    before = len(world.events)
    world.happen(range(800, 60, -10))
    missed = len(world.events) - before
    capsys.readouterr()
    query, again = world.start()
    query.stop()
    assert "was out for" in capsys.readouterr().out and [order.id for order in again.orders] == ["gap-1"]
    assert again.orders[0].records >= missed
    world.happen([1.0, 0.5])
    read, again = world.run()  # at once again: it goes on in its epoch
    assert read == 2
    assert world.look() != true_totals(world.events)
    said = world.fill(again)
    assert said.state in ("read", "done"), said.reason
    assert world.look() == true_totals(world.events)
