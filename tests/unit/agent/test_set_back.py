"""A wall clock against the steady one: what counts as set back, and what the agent says of it."""

from types import SimpleNamespace

import pytest

from tests.fakes import driver
from tests.fakes.clock import clock_with
from tidecast.arrivals import Arrivals
from tidecast.control import WALL
from tidecast.messages import Decision, MetricSample
from tidecast.observer import Observer
from tidecast.spark import set_back
from tidecast.spark.progress import Batch
from tidecast.spark.sensors import OffsetCurve, batch_latency


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


def test_by_how_much_it_was_set_is_told_once_forward_and_back(computer):
    clock = computer.clock()
    for set_by_s, told in ((3600.0, 3600.0), (0.0, 0.0), (4.0, 0.0), (-3600.0, -3600.0), (0.0, 0.0)):
        computer.steady_s, computer.wall_s = computer.steady_s + 1.0, computer.wall_s + 1.0 + set_by_s
        assert clock.set_by_s() == told


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


def agent_of(computer, **fields):
    """A job whose driver is on that computer, the thread that watches Spark, and the one that watches the broker."""
    job, query = driver.job(**fields), SimpleNamespace(isActive=lambda: True, lastProgress=lambda: None)
    observer = Observer(job, SimpleNamespace(jquery=query, executors=lambda: {"0": 1}))
    arrivals = Arrivals(job, "broker:9092", {})
    observer._clock, arrivals._clock = computer.clock(), computer.clock()
    return job, observer, arrivals


def test_an_interval_in_which_the_clock_was_set_is_not_told(computer):
    job, _, arrivals = agent_of(computer)
    wall_s = computer.wall_s
    for second in range(6):
        computer.steady_s += 1.0
        wall_s += 1.0 + {2: 3600.0, 4: -3600.0}.get(second, 0.0)
        computer.wall_s = wall_s
        arrivals._publish(wall_s, {("events", 0): 100 * second})
    told = job.outbox.of(MetricSample)
    assert [(one.span_s, one.arrival_rps) for one in told] == [(1.0, 100.0)] * 3


@pytest.mark.parametrize("set_by_s", [3600.0, -3600.0])
def test_what_an_applied_decision_did_is_timed_as_if_the_clock_had_not_been_set(computer, set_by_s):
    job, observer, _ = agent_of(computer)
    at = computer.wall_s
    decided = Decision("d1", "orders", at, at, 1.0, "act", "reactive", 2, "why", [], {}, {})
    job.tracker.track(decided, ["0"], None, at + 0.5, WALL)
    computer.steady_s, computer.wall_s = computer.steady_s + 8.0, at + 8.0 + set_by_s
    observer._follow_clock()
    now = computer.wall_s
    assert job.tracker.observe_executors(["0", "1"], [], now, WALL) == []
    job.tracker.observe_batch(Batch(2, "r", now + 2.0, 1.0, 10, {}, {}, {}, now), {"1"}, 0)
    (done,) = job.tracker.observe_executors(["0", "1"], [], now + 2.0, WALL)
    assert (done.status, done.observed["waited_s"], done.useful_at - done.decided_at) == ("confirmed", 7.5, 10.0)
    assert done.observed["patience_s"] == 60.0


def test_what_waits_as_the_clock_is_set_forward_is_not_taken_for_an_hour_late(computer):
    job, observer, _ = agent_of(computer)
    curve = job.curves["events", 0] = OffsetCurve()
    curve.add(computer.wall_s, 0)
    curve.add(computer.wall_s + 1.0, 100)
    computer.steady_s, computer.wall_s = computer.steady_s + 2.0, computer.wall_s + 3602.0
    observer._follow_clock()
    latency = batch_latency(job.curves, {("events", 0): 0}, {("events", 0): 100}, computer.wall_s)
    assert latency.latency_max_s == pytest.approx(2.0, abs=0.1)


def test_a_batch_within_which_the_clock_is_set_forward_is_not_told_and_those_after_it_are(computer):
    job, observer, _ = agent_of(computer)
    at, told = computer.wall_s, []
    for set_by_s, began, batch_s in (
        (0.0, at, 1.0), (3600.0, at + 2.0, 3601.0), (0.0, at + 3604.0, 1.0), (-3600.0, at + 6.0, 1.0),
    ):  # fmt: skip
        computer.wall_s += set_by_s
        observer._follow_clock()
        observer._publish(Batch(1, "r", began + batch_s, batch_s, 10, {}, {}, {}, began), [], None, 0, {})
        told.append([one.batch_s for one in job.outbox.of(MetricSample)])
        job.outbox.clear()
        computer.steady_s, computer.wall_s = computer.steady_s + 2.0, computer.wall_s + 2.0
    assert told == [[1.0], [], [1.0], [1.0]]
