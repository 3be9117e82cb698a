"""How long it is from batch to batch, as the agent notes it."""

from types import SimpleNamespace

from tests.fakes import driver
from tidecast.observer import Observer
from tidecast.spark.progress import Batch


def batch(began, batch_s=1.0, rows=10):
    return Batch(1, "run", began + batch_s, batch_s, rows, {}, {}, {}, began)


def test_the_newest_two_batches_of_records_tell_it():
    job = driver.job()
    observer = Observer(job, SimpleNamespace(jquery=SimpleNamespace(lastProgress=lambda: None)))
    observer._time(batch(0.0))
    assert job.period_s == 1.0  # until two have told
    for began, batch_s, rows, expected in (
        (2.0, 1.0, 10, 2.0),
        (4.0, 3.0, 10, 3.0),  # one that takes longer than the trigger
        (7.0, 0.5, 0, 3.0),
        (60.0, 1.0, 10, 3.0),  # nothing came before it
        (63.5, 1.0, 10, 3.5),
    ):
        observer._time(batch(began, batch_s, rows))
        assert job.period_s == expected


def test_how_far_tasks_lie_apart_is_asked_every_ten_seconds_also_after_the_clock_was_set_back():
    observer = Observer(driver.job(), SimpleNamespace(jquery=SimpleNamespace(lastProgress=lambda: None)))
    ends = (5_000.0, 5_009.0, 5_011.0, 1_400.0, 1_409.0, 1_411.0)
    assert [observer._spread_due(batch(at - 1), ["a stage"]) for at in ends] == [True, False, True, True, False, True]
