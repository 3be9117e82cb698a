"""How much of a replay is known to be read while a driver that has just started cannot know it."""

import pytest

from configs.sections import Kafka
from models.backfill.live.ordered import look_again, plan_order, with_plan
from models.backfill.live.said import with_known_done
from pipelines.backfill import orders
from pipelines.backfill.orders import follow_progress, newest_progress
from pipelines.console.read.replay import with_message
from pipelines.kafka.broker import Record
from tests.fakes.planned_job import NOW, moment, order, progress
from tidecast.messages import encode

KAFKA = Kafka(bootstrap="broker:9092")
READ = progress(done=300_000, at=NOW - 60, reading_since=NOW - 600)
STARTED = progress(state="waiting", at=NOW - 9)
OPENING = progress(state="waiting", at=NOW - 2, reading_since=NOW - 2)
"""The query is started, and has not reported yet."""
OPENED = progress(state="waiting", done=290_000, at=NOW - 1, reading_since=NOW - 2)


@pytest.mark.parametrize("state", ["waiting", "paused", "failed"])
def test_what_was_read_before_counts_until_the_query_reports_again(state):
    assert with_known_done(progress(state=state), READ).done == 300_000
    assert with_known_done(progress(state=state), None).done == 0
    assert with_known_done(OPENED, READ) is OPENED  # its checkpoint is believed


@pytest.mark.parametrize(("said", "before"), [
    (STARTED, progress(state="done", done=400_000)),  # ordered anew
    (STARTED, progress(state="cancelled", done=300_000)),
    (STARTED, progress(done=300_000, records=500_000)),  # another range
    (progress(state="cancelled"), READ),
])  # fmt: skip
def test_nothing_counts_of_a_range_that_is_read_from_its_beginning(said, before):
    assert with_known_done(said, before) is said


def test_whoever_follows_the_topic_sees_no_fall_to_nothing(monkeypatch):
    words = [READ, STARTED, OPENING, OPENED, progress(state="done", done=400_000)]
    there = [Record("replays", 0, at, "orders", encode(said), said.wall_time) for at, said in enumerate(words)]

    class Topic:
        def __init__(self, kafka, topics):
            self.left = list(there)

        def poll(self, wait_s):
            return [self.left.pop(0)]

        def close(self):
            pass

    monkeypatch.setattr(orders, "Follower", Topic)
    monkeypatch.setattr(orders, "read_records", lambda kafka, topic: there[:3])
    told = [300_000, 300_000, 300_000, 290_000, 400_000]
    assert [said.done for said in follow_progress(KAFKA, order(wall_time=NOW - 99))] == told
    assert newest_progress(KAFKA, "orders")["fix"].done == 300_000
    replays, seen = {}, []
    for said in words:
        replays = with_message(replays, said)
        seen.append(replays["fix"].said.done)
    assert seen == told


@pytest.mark.parametrize("said", [STARTED, OPENING])
@pytest.mark.parametrize("done", [300_000, 400_000])
def test_a_plan_that_is_looked_at_meanwhile_is_of_what_is_left(said, done):
    asked = order(by=NOW + 3600.0, sure=0.9)
    sent = with_plan(asked, plan_order(asked, moment()), moment())
    known = with_known_done(said, progress(done=done, reading_since=NOW - 600))
    now = moment(orders=[sent], progress=[known])
    assert now.left(sent) == 400_000 - done
    assert look_again(sent, now).plan.work.records == 400_000 - done
