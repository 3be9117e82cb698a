"""What fails in one of the agent's threads is said, and said again while it does."""

import itertools

import pytest

from tests.fakes import driver
from tidecast import agent
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
