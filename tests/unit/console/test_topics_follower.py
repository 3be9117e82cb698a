"""The follower of the topics: the newest first, the hours before later, and a broker that goes away."""

import threading
import time
from contextlib import suppress
from functools import cache

import pytest

from configs.sections import Kafka
from pipelines.bench.team.console.records import NOW, contract, interval, order, progress, word
from pipelines.console import follow
from pipelines.console.follow import DEEP, NEWEST, TopicsFollower
from pipelines.console.read.fold import KINDS
from pipelines.console.read.newest import SHARED
from pipelines.kafka.connection import BrokerError
from pipelines.pages.topic_tables import read_topics
from tests.fakes.waiting import wait_until

SECONDS = 1500


@cache
def seconds():
    """So many seconds of a job, more than the first screen has, and its contract before them."""
    return [contract("orders"), *(interval("orders", NOW + i) for i in range(SECONDS))]


class Topics:
    """A broker: records by topic, of which followers read a few at a time."""

    def __init__(self):
        self.records = [*seconds()]
        self.fails, self.opened, self.over, self.broken, self.steady = 0, [], False, False, False
        self.silent, self.away = False, False
        self.deep_may_read = threading.Event()

    def follower(self, kafka, topics):
        if self.fails:
            self.fails -= 1
            raise BrokerError("no broker at 127.0.0.1:1")
        return FakeFollower(self, topics)


class FakeFollower:
    def __init__(self, topics, names):
        self.topics, self.names, self.closed = topics, names, False
        topics.opened.append(self)

    def seek_to_newest(self, newest):
        self.newest, self.read = newest, len(self.topics.records)
        by_topic = {}
        for record in self.topics.records:
            by_topic.setdefault(record.topic, []).append(record)
        metrics = by_topic.pop("metrics")[-newest["metrics"] :]
        self.left = [one for topic, found in by_topic.items() for one in found[-(newest[topic] or 0) :]] + metrics
        return self.ends()

    def ends(self):
        if self.topics.away:
            raise BrokerError("the broker gave no ends within 30 s")
        return {("metrics", 0): self.read}

    def poll(self, wait_s):
        while self.newest is DEEP and not self.topics.broken and not self.topics.deep_may_read.wait(0.01):
            pass
        if self.topics.broken and not self.topics.over:
            raise BrokerError("the broker went away")
        if self.topics.over:
            raise SystemExit  # no `Exception`, after which it is tried again: it ends the thread, see `topics`
        if self.topics.silent or self.topics.away:
            return []
        if self.topics.steady:
            self.topics.records.append(interval("orders", NOW + len(self.topics.records)))
        elif not self.left:
            time.sleep(0.005)
        self.left += self.topics.records[self.read :]
        self.read = len(self.topics.records)
        found, self.left = self.left[:1000], self.left[1000:]
        return found

    def read_until(self, ends):
        while self.unread(ends):
            if self.topics.silent:
                raise BrokerError("topic 'metrics': nothing more came for 30 s")
            yield from self.poll(0.5)

    def unread(self, ends):
        return {place for place, end in ends.items() if self.read - len(self.left) < end}

    def close(self):
        self.closed = True


@pytest.fixture
def topics(monkeypatch):
    made, run, others = Topics(), TopicsFollower._run, threading.enumerate()

    def running():
        return [one for one in threading.enumerate() if one.name == "console" and one not in others]

    def run_until_over(*given):
        with suppress(SystemExit):
            run(*given)

    monkeypatch.setattr(TopicsFollower, "_run", run_until_over)
    monkeypatch.setattr(follow, "Follower", made.follower)
    monkeypatch.setattr(follow, "AGAIN_S", 0.01)
    monkeypatch.setattr(follow, "SHARE", 1.0)  # no pages of Airflow have to stay quick meanwhile
    yield made
    made.over = True
    made.deep_may_read.set()
    wait_until(lambda: not running(), "the end of its threads", 20)


def history(follower):
    job = follower.look().jobs.get("orders")
    return 0 if job is None else len(job.coarse.columns()[0])


def test_the_newest_records_are_a_screen_before_the_hours_before_them_are_read(topics):
    follower = TopicsFollower(Kafka())
    assert not topics.opened, "nobody has looked"
    wait_until(lambda: history(follower) == SHARED["metrics"] / 10, "the first screen", 20)
    assert follower.problem == ""
    topics.deep_may_read.set()
    wait_until(lambda: history(follower) == SECONDS / 10, "the hours before", 20)
    topics.records.append(interval("orders", NOW + SECONDS, 777.0))
    wait_until(lambda: follower.look().jobs["orders"].sample.arrival_rps == 777.0, "what came after", 20)
    first, deep = topics.opened
    wait_until(lambda: first.closed, "the end of the first follower", 20)
    assert not deep.closed


def test_how_a_backfill_ended_is_known_however_much_another_one_has_said_since(topics):
    topics.records += [order("orders", name, NOW - 3600) for name in ("night", "day")]
    topics.records.append(progress("orders", "night", NOW - 60, state="failed"))
    topics.records += [progress("orders", "day", NOW + number / 100, number % 1000) for number in range(3000)]
    follower = TopicsFollower(Kafka())
    wait_until(lambda: history(follower), "the first screen", 20)
    assert follower.look().jobs["orders"].replays["night"].said is None
    topics.deep_may_read.set()
    wait_until(lambda: follower.look().jobs["orders"].replays["night"].said is not None, "the hours before", 20)
    assert follower.look().jobs["orders"].replays["night"].said.state == "failed"


def test_records_that_never_pause_keep_nobody_waiting(topics):
    topics.steady = True
    follower = TopicsFollower(Kafka())
    wait_until(lambda: history(follower) > 0 and not follower.problem, "the first screen", 20)
    topics.deep_may_read.set()
    wait_until(lambda: history(follower) >= SECONDS / 10, "the hours before", 20)
    topics.steady = False


def test_a_broker_that_does_not_answer_is_said_and_asked_again(topics):
    topics.fails = 3
    follower = TopicsFollower(Kafka())
    follower.look()
    wait_until(lambda: "no broker at" in follower.problem or not topics.fails, "a problem", 20)
    wait_until(lambda: history(follower), "the first screen", 20)
    assert follower.problem == ""


def test_a_partition_that_gives_nothing_is_said_and_asked_again(topics):
    topics.silent = True
    follower = TopicsFollower(Kafka())
    follower.look()
    wait_until(lambda: "nothing more came" in follower.problem, "a problem", 20)
    topics.silent = False
    wait_until(lambda: history(follower), "the first screen", 20)
    assert follower.problem == ""


def test_a_partition_that_gives_nothing_of_the_hours_before_is_said_and_asked_again(topics, monkeypatch, caplog):
    monkeypatch.setattr(follow, "STUCK_S", 0.05)
    follower = TopicsFollower(Kafka())
    wait_until(lambda: history(follower) and not follower.problem, "the first screen", 20)
    topics.silent = True
    topics.deep_may_read.set()
    wait_until(lambda: "topic 'metrics' at" in caplog.text and "nothing more came" in caplog.text, "a problem", 20)
    topics.silent = False
    wait_until(lambda: history(follower) == SECONDS / 10, "the hours before", 20)
    assert len(topics.opened) > 2 and topics.opened[1].closed


def test_after_an_outage_the_newest_records_are_read_first_again(topics):
    follower = TopicsFollower(Kafka())
    topics.deep_may_read.set()
    wait_until(lambda: history(follower) == SECONDS / 10, "the hours before", 20)
    topics.deep_may_read.clear()
    topics.broken = True
    wait_until(lambda: "went away" in follower.problem, "a problem", 20)
    topics.records.append(interval("orders", NOW + SECONDS, 777.0))
    topics.broken = False
    wait_until(lambda: follower.look().jobs["orders"].sample.arrival_rps == 777.0, "what came meanwhile", 20)
    assert history(follower) < SECONDS / 10 and follower.problem == ""
    topics.deep_may_read.set()
    wait_until(lambda: history(follower) > SECONDS / 10, "the hours before", 20)


@pytest.mark.parametrize("deep", [False, True])
def test_a_broker_that_goes_away_while_nothing_comes_is_said_and_asked_again(topics, monkeypatch, deep):
    monkeypatch.setattr(follow, "QUIET_S", 0.05)
    follower = TopicsFollower(Kafka())
    if deep:
        topics.deep_may_read.set()
    wait_until(lambda: history(follower) == (SECONDS if deep else SHARED["metrics"]) / 10, "what there is", 20)
    topics.away = True
    wait_until(lambda: "gave no ends" in follower.problem, "a problem", 20)
    assert history(follower), "what is known stays"
    topics.records.append(interval("orders", NOW + SECONDS, 777.0))
    topics.away = False
    wait_until(lambda: follower.look().jobs["orders"].sample.arrival_rps == 777.0, "what came meanwhile", 20)
    wait_until(lambda: not follower.problem, "it to be back", 20)


def test_a_word_that_is_not_signed_counts_for_nothing_where_a_job_has_a_key(topics, tmp_path):
    keys = tmp_path / "keys.yaml"
    keys.write_text(f"orders: {'k' * 40}\n")
    topics.records += [word("orders", NOW, "freeze"), word("rides", NOW, "freeze")]
    follower = TopicsFollower(Kafka(signing_keys=keys))
    wait_until(lambda: "rides" in follower.look().jobs, "the words", 20)
    jobs = follower.look().jobs
    assert (jobs["orders"].word, jobs["rides"].word.mode) == (None, "freeze")


def test_it_reads_the_topics_that_its_model_knows_and_to_which_the_docs_give_the_console_a_right():
    (rights,) = [one for one in read_topics()["rights"] if one["name"] == "console"]
    assert {*rights["reads"]} == {*NEWEST} == {*DEEP} == {*KINDS, "control", "rejects"}
