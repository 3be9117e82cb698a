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
