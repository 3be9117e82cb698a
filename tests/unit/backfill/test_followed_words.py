"""Which words a follower takes for those of its order: of two computers whose clocks disagree, too, and once only."""

from dataclasses import replace

import pytest

from configs.sections import Kafka
from configs.settings import load
from pipelines.backfill import follow, orders
from pipelines.backfill.watch import JobWatch
from pipelines.kafka.broker import Record
from tests.fakes.planned_job import NOW, order, progress
from tidecast.messages import encode

KAFKA = Kafka(bootstrap="broker:9092")
BEFORE = [progress(done=10, ordered_at=NOW), progress(state="failed", reason="its source is gone", ordered_at=NOW)]
"""What was said of it before it was ordered to go on."""


class Topic:
    """The topic `replays`: what is on it, and what comes while it is followed."""

    def __init__(self):
        self.there, self.comes = [], []

    def __call__(self, kafka, topics):
        self.left = [*self.there, *self.comes]
        return self

    def poll(self, wait_s):
        found, self.left = self.left[:2], self.left[2:]
        return [Record("replays", 0, 0, said.job, encode(said), said.wall_time) for said in found]

    def close(self):
        pass


class Watch(JobWatch):
    """A watch of words that are there, and of those that come."""

    def __init__(self, settings, job):
        self.orders, self.progress, self.comes = self.standing, {}, list(self.words)
        for said in self.there:
            self.progress[said.id] = said

    def __exit__(self, *_):
        pass

    def poll(self, wait_s):
        found, self.comes = self.comes[:1], self.comes[1:]
        self.progress |= {said.id: said for said in found}
        return found


@pytest.fixture(params=["without a deadline", "with one"])
def followed(request, monkeypatch):
    """What a follower of an order yields, from the words there are and those that come, and the order on control."""
    topic = Topic()
    monkeypatch.setattr(orders, "Follower", topic)
    monkeypatch.setattr(follow, "JobWatch", Watch)
    monkeypatch.setattr(follow, "SILENT_S", 0.0)
    monkeypatch.setattr(orders, "SILENT_S", 0.0)
    monkeypatch.setattr(follow.PlanLooks, "look", lambda self, watch: None)

    def follow_one(one, there, comes, standing=None):
        topic.there, topic.comes, Watch.there, Watch.words = there, comes, there, comes
        Watch.standing = {one.id: standing or one}
        monkeypatch.setattr(orders, "read_orders", lambda kafka, job: Watch.standing)
        if request.param == "with one":
            one = replace(one, by=NOW + 3600, sure=0.9)
        settings = load(kafka=KAFKA.model_dump())
        return [new.said for new in follow.follow_order(settings, one) if new.said is not None]

    return follow_one


@pytest.mark.parametrize("ahead_s", [-250.0, -2.0, 0.0, 2.0, 250.0])
def test_words_of_an_order_are_heard_whatever_the_clocks_of_agent_and_orderer_say(followed, ahead_s):
    """The orderer's clock is so far ahead of the agent's; words of the order before it are not taken for its own."""
    asked = order(wall_time=NOW + ahead_s)
    comes = [progress(done=20, ordered_at=asked.wall_time), progress(state="cancelled", ordered_at=asked.wall_time)]
    before = [replace(said, ordered_at=asked.wall_time - 0.001) for said in BEFORE]
    assert followed(asked, before, comes)[-2:] == comes


def test_whoever_begins_to_follow_late_hears_how_it_ended(followed):
    asked = order(wall_time=NOW + 250)
    done = progress(state="done", done=400_000, ordered_at=asked.wall_time)
    assert followed(asked, [done], [])[-1] == done


def test_words_of_a_newer_order_of_it_count_too(followed):
    planned_anew = progress(state="done", done=400_000, ordered_at=NOW + 60)
    assert followed(order(wall_time=NOW), [], [planned_anew]) == [planned_anew]


def test_an_order_that_came_when_it_was_over_already_is_not_followed_for_ever(followed):
    done = progress(state="done", done=400_000, ordered_at=NOW)
    cancel = order(wall_time=NOW + 1, wanted="cancel")
    assert followed(cancel, [done], [], standing=order(wall_time=NOW + 2, wanted="done")) == [done]


@pytest.mark.parametrize(("said_at", "taken"), [(NOW - 1, False), (NOW, True), (NOW + 1, True)])
def test_of_an_older_agent_the_times_count(said_at, taken):
    said = replace(progress(), wall_time=said_at)
    assert said.ordered_at is None and said.answers(order(wall_time=NOW)) == taken


def test_a_gap_that_has_failed_and_is_tried_again_is_followed_on_and_one_that_is_not_is_over(followed):
    again = "it failed and is tried again in 160 s: no Kafka broker for us"
    between = progress(state="failed", reason=again, tried_again=True, ordered_at=NOW)
    done = progress(state="done", done=400_000, ordered_at=NOW)
    assert followed(order(wall_time=NOW), [], [between, between, done]) == [between, between, done]
    failed = replace(between, tried_again=False)  # as an older agent says it, too
    assert followed(order(wall_time=NOW), [], [failed, done]) == [failed]
