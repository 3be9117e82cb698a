"""What fails in one of the agent's threads is said, and said again while it does."""

import itertools
from types import SimpleNamespace

import pytest

from tests.fakes import driver
from tidecast import agent
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


def test_a_topic_of_the_query_that_is_not_seen_is_told_with_what_helps():
    arrivals = Arrivals(driver.job(), "broker:9092", {})
    arrivals._client = SimpleNamespace(partitions_for_topic=lambda topic: set())
    with pytest.raises(LookupError, match=r"'events', which the query reads, .*broker:9092.* Describe; source_boot"):
        arrivals.sample()
