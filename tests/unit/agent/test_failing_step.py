"""What fails in one of the agent's threads is said, and said again while it does."""

import itertools
import time
from types import SimpleNamespace

import pytest
from kafka.errors import KafkaTimeoutError

from tests.fakes import driver
from tests.fakes.clock import clock_with
from tidecast import agent, arrivals
from tidecast.arrivals import Arrivals
from tidecast.connection.reach import UnreachableError


@pytest.fixture
def clock(monkeypatch):
    """The agent's own clock, which goes 10 s further with each look."""
    seconds = itertools.count(0, 10)
    monkeypatch.setattr(agent, "time", type("Clock", (), {"monotonic": staticmethod(lambda: float(next(seconds)))}))
    monkeypatch.setattr(agent, "_driver_ended", lambda: False)


@pytest.mark.usefixtures("clock")
def test_what_fails_is_said_about_once_a_minute_until_it_works_again(caplog):
    job, steps = driver.job(), iter([*[UnreachableError("no login")] * 20, None])
    job.stop.wait = lambda seconds: None

    def step():
        error = next(steps)
        if error is not None:
            raise error
        job.stop.set()

    agent._repeat(job, "sending", step, 0.0)
    *failed, last = [record.message for record in caplog.records]
    assert {*failed} == {f"{job.name}: sending fails, trying on: no login"} and 3 <= len(failed) <= 12
    assert last.startswith(f"{job.name}: sending works again after")


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize(("error", "waits_s", "words"), [
    (UnreachableError("no login"), agent.RETRY_S, "no login"),
    (LookupError("topic 'control' is not on the broker"), agent.RETRY_S, "topic 'control' is not on the broker"),
    (ValueError("no such option"), 1.0, "no such option"),
    (KeyError("batchId"), 1.0, "KeyError('batchId')"),
    (RuntimeError(), 1.0, "RuntimeError()"),
])  # fmt: skip
def test_a_broker_is_asked_again_less_often_and_an_error_that_says_little_is_told_by_its_kind(
    caplog, error, waits_s, words
):
    job, waited = driver.job(), []

    def step():
        job.stop.set()
        raise error

    job.stop.wait = waited.append
    agent._repeat(job, "watching Spark", step, 0.0)
    assert waited[0] == waits_s and caplog.records[0].message.endswith(f"fails, trying on: {words}")


class ForgetfulBroker:
    """One with a partition that got a record a second for a minute, and that does not tell its past at first."""

    def __init__(self):
        self.began, self.asked = time.time() - 60.0, 0

    def partitions_for_topic(self, topic):
        return {0}

    def end_offsets(self, partitions, timeout_ms):
        return dict.fromkeys(partitions, 60)

    def offsets_for_times(self, times, timeout_ms):
        self.asked += 1
        if self.asked == 3:
            raise KafkaTimeoutError("no answer within 5 s")
        at = {place: max(0, int(ms / 1000 - self.began)) for place, ms in times.items()}
        return {place: SimpleNamespace(offset=offset) for place, offset in at.items()}


def test_a_look_at_past_offsets_that_failed_is_repeated_with_the_next_search_and_then_no_more(monkeypatch):
    monkeypatch.setattr(arrivals, "REDISCOVER_S", -1.0)  # each sample searches
    job, broker = driver.job(), ForgetfulBroker()
    sampled = Arrivals(job, "broker:9092", {})
    sampled._client = broker
    sampled.sample()
    assert job.ends == {("events", 0): 60} and job.curves["events", 0].arrival_time(30) is None
    sampled.sample()
    assert job.curves["events", 0].arrival_time(30) == pytest.approx(broker.began + 30, abs=2.0)
    asked = broker.asked
    sampled.sample()
    assert broker.asked == asked == 3 + len(arrivals.PAST_S)


def test_a_broker_that_never_tells_its_past_is_asked_less_and_less_often_and_no_sample_is_lost(monkeypatch, caplog):
    steady_s, asked_s = [1000.0], []
    monkeypatch.setattr(arrivals, "time", clock_with(monotonic=lambda: steady_s[0]))
    job, broker = driver.job(), ForgetfulBroker()

    def refuse(times, timeout_ms):
        asked_s.append(steady_s[0])
        raise KafkaTimeoutError("no answer within 5 s")

    broker.offsets_for_times = refuse
    sampled = Arrivals(job, "broker:9092", {})
    sampled._client = broker
    for _ in range(250):
        job.ends = {}
        sampled.sample()
        assert job.ends == {("events", 0): 60}
        steady_s[0] += 11.0
    waits_s = [later - before for before, later in itertools.pairwise(asked_s)]
    assert waits_s == [11.0, 22.0, 44.0, 88.0, 165.0, 330.0, 605.0, 605.0, 605.0]
    (said,) = caplog.records
    assert "the broker does not tell the past of events" in said.message


def test_a_topic_of_the_query_that_is_not_seen_is_told_with_what_helps():
    sampled = Arrivals(driver.job(), "broker:9092", {})
    sampled._client = SimpleNamespace(partitions_for_topic=lambda topic: set())
    with pytest.raises(LookupError, match=r"'events', which the query reads, .*broker:9092.* Describe; source_boot"):
        sampled.sample()
