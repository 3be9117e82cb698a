"""The console's follower and switch on a real broker."""

import time
from contextlib import closing

import pytest

from pipelines.bench.team.console.jobs import ToldTopics
from pipelines.bench.team.console.records import interval, job_name, word
from pipelines.console.access import Access
from pipelines.console.change import ModeSwitch, StaleError
from pipelines.console.follow import TopicsFollower
from pipelines.kafka.broker import Follower
from pipelines.kafka.publisher import Publisher
from tests.fakes.waiting import wait_until

pytestmark = pytest.mark.integration


@pytest.fixture
def send(empty_topics):
    publisher = Publisher(empty_topics)

    def sent(*records):
        for record in records:
            publisher.send_bytes(record.topic, record.key.encode(), record.value)
        publisher.flush()

    yield sent
    publisher.close()


def test_a_follower_begins_so_many_records_before_the_end_and_knows_when_it_has_read_them(empty_topics, send):
    now = time.time()
    send(*(interval("orders", now + i) for i in range(20)), word("orders", now, "act"), word("rides", now, "act"))
    follower = Follower(empty_topics, ["metrics", "control", "forecasts"])
    ends = follower.seek_to_newest({"metrics": 5, "control": None, "forecasts": 9})
    assert ends == {("metrics", 0): 20, ("control", 0): 2, ("forecasts", 0): 0}
    send(interval("orders", now + 20))
    assert follower.unread(ends) == {("metrics", 0), ("control", 0)}
    found = []
    wait_until(lambda: found.extend(follower.poll(0.2)) or not follower.unread(ends), "the records", every_s=0)
    wait_until(lambda: found.extend(follower.poll(0.2)) or len(found) == 8, "one that came later", every_s=0)
    assert [record.offset for record in found if record.topic == "metrics"] == [15, 16, 17, 18, 19, 20]
    follower.close()


def test_what_comes_on_a_topic_is_in_the_model_and_a_word_from_the_page_on_the_topic(empty_topics, send):
    follower, changes = TopicsFollower(empty_topics), []
    send(interval("orders", time.time()))
    wait_until(lambda: "orders" in follower.look().jobs, "the job", 30)
    wait_until(lambda: not follower.problem, "no problem", 30)
    began = time.monotonic()
    send(interval("orders", time.time(), 4321.0))
    wait_until(lambda: follower.look().jobs["orders"].sample.arrival_rps == 4321.0, "the newest second", 30)
    print(f"a record is in the model after {time.monotonic() - began:.2f} s")
    switch = ModeSwitch(empty_topics, Access(print, print, changes.append))
    switch.change("orders", "freeze", None, "ann")
    wait_until(lambda: follower.look().jobs["orders"].word, "the word", 30)
    known = follower.look().jobs["orders"].word
    assert (known.mode, known.by) == ("freeze", "ann")
    with pytest.raises(StaleError, match="told to freeze by ann"):
        switch.change("orders", "act", None, "bob")
    switch.change("orders", "act", known.wall_time, "bob")
    assert [(change.before, change.after, change.by) for change in changes] == [
        (None, "freeze", "ann"), ("freeze", "act", "bob"),
    ]  # fmt: skip


def test_topics_that_a_bench_tells_hold_the_past_of_its_jobs_and_what_they_go_on_saying(empty_topics):
    with closing(ToldTopics(empty_topics, 4, 30)) as topics:
        begun, follower = time.time(), TopicsFollower(empty_topics)
        wait_until(lambda: len(follower.look().jobs) == 4 and not follower.problem, "the jobs", 60)

        def newest(number):
            return follower.look().jobs[job_name(number)].sample

        wait_until(lambda: newest(0).wall_time > begun + 1, "what is said later", 60)
        assert follower.look().jobs[job_name(3)].coarse.oldest < begun - 15
        at = topics.say(interval(job_name(1), time.time(), 98_765.0))
        wait_until(lambda: newest(1).wall_time > at + 2, "two seconds more", 60)
        assert newest(1).arrival_rps == 98_765.0
