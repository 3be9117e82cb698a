"""A wall clock against the steady one: what counts as set back, and what the agent says of it."""

from types import SimpleNamespace

import pytest

from tests.fakes import driver
from tests.fakes.clock import clock_with
from tidecast.observer import Observer
from tidecast.spark import set_back


@pytest.fixture
def computer(monkeypatch):
    """Its steady clock, what its wall clock shows (both seconds), and how long that takes to say so."""
    computer = SimpleNamespace(steady_s=50.0, wall_s=1_000_000.0, takes_s=0.0)

    def now_s():
        computer.steady_s += computer.takes_s
        return computer.wall_s

    computer.clock = lambda: set_back.WatchedClock(now_s)
    monkeypatch.setattr(set_back, "time", clock_with(monotonic=lambda: computer.steady_s))
    return computer


def test_a_clock_that_goes_on_or_is_set_forward_was_not_set_back(computer):
    clock = computer.clock()
    for steady_s, wall_s in ((1.0, 1.0), (10.0, 9.5), (1.0, 3601.0), (1.0, 1.0)):
        computer.steady_s, computer.wall_s = computer.steady_s + steady_s, computer.wall_s + wall_s
        assert clock.set_back_s() == 0.0


def test_one_that_is_set_back_by_more_than_seconds_is_told_once(computer):
    clock = computer.clock()
    computer.steady_s, computer.wall_s = computer.steady_s + 2.0, computer.wall_s + 2.0 - 3600.0
    assert clock.set_back_s() == pytest.approx(3600.0)
    assert clock.set_back_s() == 0.0
    computer.wall_s -= 4.0
    assert clock.set_back_s() == 0.0


def test_one_whose_jvm_stood_still_meanwhile_is_asked_again_before_anything_is_said(computer):
    clock = computer.clock()
    computer.takes_s = 20.0
    assert clock.set_back_s() == 0.0
    computer.takes_s, computer.wall_s = 0.0, computer.wall_s + 20.0
    assert clock.set_back_s() == 0.0


def test_the_agent_says_once_what_comes_of_it(computer, caplog):
    query = SimpleNamespace(isActive=lambda: True, lastProgress=lambda: None)
    observer = Observer(driver.job(), SimpleNamespace(jquery=query, executors=lambda: {"0": 1}))
    observer._clock = computer.clock()
    observer.poll()
    assert not caplog.records
    computer.wall_s -= 3600.0
    observer.poll()
    observer.poll()
    (said,) = caplog.messages
    assert "set back by 3600 s" in said and "restart the job" in said
