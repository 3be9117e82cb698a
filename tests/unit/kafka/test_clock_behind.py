"""A clock that is behind the jobs' is waited for, as what is read by it would be refused."""

import threading
from types import SimpleNamespace

import pytest

from configs.sections import Kafka
from pipelines.kafka import clocks
from pipelines.kafka.connection import BrokerError
from tests.fakes.clock import clock_with

KAFKA = Kafka(bootstrap="broker:9092")


@pytest.fixture
def computer(monkeypatch):
    """A computer whose clock is `behind_s` behind the jobs'; each look takes a second, and `waits` counts them."""
    computer = SimpleNamespace(now_s=1000.0, behind_s=0.0, waits=0, ends_after=10**6)

    def wait(seconds):
        computer.now_s += 1.0
        computer.waits += 1
        if computer.waits == computer.ends_after:
            computer.behind_s = 0.0
        return False

    computer.stop = SimpleNamespace(is_set=lambda: False, wait=wait)
    computer.clock = lambda: computer.now_s - computer.behind_s
    told = lambda kafka, topic, newest: [SimpleNamespace(timestamp=computer.now_s - back) for back in (40.0, 0.0)]  # noqa: E731
    monkeypatch.setattr(clocks, "read_records", told)
    monkeypatch.setattr(clocks, "time", clock_with(monotonic=lambda: computer.now_s))
    return computer


@pytest.mark.parametrize("behind_s", [-3600.0, 0.0, 299.0])
def test_one_that_is_right_ahead_or_a_little_behind_is_not_waited_for(computer, behind_s):
    computer.behind_s = behind_s
    clocks.wait_while_behind(KAFKA, computer.clock, computer.stop)
    assert computer.waits == 0


def test_one_that_is_an_hour_behind_is_waited_for_until_it_is_right(computer):
    computer.behind_s, computer.ends_after = 3600.0, 17
    clocks.wait_while_behind(KAFKA, computer.clock, computer.stop)
    assert computer.waits == 17


def test_one_that_stays_behind_is_waited_for_two_minutes(computer):
    computer.behind_s = 3600.0
    clocks.wait_while_behind(KAFKA, computer.clock, computer.stop)
    assert computer.waits == clocks.LONGEST_S


def test_without_metrics_or_a_broker_and_at_the_end_nothing_is_waited_for(computer, monkeypatch):
    computer.behind_s = 3600.0
    over = threading.Event()
    over.set()
    clocks.wait_while_behind(KAFKA, computer.clock, over)

    def away(*_):
        raise BrokerError("no broker answers")

    for told in (lambda *_: [], away):
        monkeypatch.setattr(clocks, "read_records", told)
        clocks.wait_while_behind(KAFKA, computer.clock, computer.stop)
    assert computer.waits == 0


def test_of_another_topic_as_many_records_are_looked_at_as_are_asked_for(computer, monkeypatch):
    asked = []
    monkeypatch.setattr(clocks, "read_records", lambda kafka, *of: asked.append(of) or [])
    clocks.wait_while_behind(KAFKA, computer.clock, computer.stop, "control", None)
    clocks.wait_while_behind(KAFKA, computer.clock, computer.stop)
    assert asked == [("control", None), ("metrics", 1)]
