"""How long it is from batch to batch, as the agent notes it."""

from types import SimpleNamespace

import pytest

from tests.fakes import driver
from tests.fakes.clock import clock_with
from tidecast import observer as observing
from tidecast.observer import Observer
from tidecast.spark.progress import Batch


def batch(began, batch_s=1.0, rows=10):
    return Batch(1, "run", began + batch_s, batch_s, rows, {}, {}, {}, began)


@pytest.fixture
def job():
    return driver.job()


@pytest.fixture
def observer(job):
    return Observer(job, SimpleNamespace(jquery=SimpleNamespace(lastProgress=lambda: None)))


@pytest.fixture
def steady(monkeypatch):
    """The clock that nobody sets, by which the agent sees a batch at its end."""
    made = SimpleNamespace(s=1.0)
    monkeypatch.setattr(observing, "time", clock_with(monotonic=lambda: made.s))
    return made


def test_the_newest_two_batches_of_records_tell_it(job, observer, steady):
    observer._time(batch(0.0))
    assert job.period_s == 1.0  # until two have told
    for began, batch_s, rows, expected in (
        (2.0, 1.0, 10, 2.0),
        (4.0, 3.0, 10, 3.0),  # one that takes longer than the trigger
        (7.0, 0.5, 0, 3.0),
        (60.0, 1.0, 10, 3.0),  # nothing came before it
        (63.5, 1.0, 10, 3.5),
    ):
        steady.s = began + batch_s
        observer._time(batch(began, batch_s, rows))
        assert job.period_s == expected
        assert job.batch_s == (batch_s if rows else 3.0)


@pytest.mark.parametrize(("began", "batch_s"), [(3_604.0, 1.0), (4.0, 3_601.0)])
def test_a_clock_that_is_set_forward_between_batches_or_within_one_makes_it_no_longer(
    job, observer, steady, began, batch_s
):
    for seen_s, told in ((1.0, batch(0.0)), (3.0, batch(2.0)), (5.1, batch(began, batch_s)), (7.0, batch(3_606.0))):
        steady.s = seen_s
        observer._time(told)
        assert job.period_s <= 2.1


def test_batches_that_are_read_together_are_as_far_apart_as_before(job, observer, steady):
    for seen_s, told in ((1.0, batch(0.0)), (3.0, batch(2.0)), (9.0, batch(4.0)), (9.0, batch(6.0))):
        steady.s = seen_s
        observer._time(told)
    assert job.period_s == 2.0


def test_how_far_tasks_lie_apart_is_asked_every_ten_seconds_also_after_the_clock_was_set_back(observer):
    ends = (5_000.0, 5_009.0, 5_011.0, 1_400.0, 1_409.0, 1_411.0)
    assert [observer._spread_due(batch(at - 1), ["a stage"]) for at in ends] == [True, False, True, True, False, True]
