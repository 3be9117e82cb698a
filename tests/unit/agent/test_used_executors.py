"""A raise is of use once a batch has run on executors that came for it, and on none that are leaving or another's."""

import time
from types import SimpleNamespace

from tests.fakes import driver
from tests.unit.agent.test_outcomes import decision
from tidecast.messages import Outcome
from tidecast.observer import Observer
from tidecast.spark.progress import Batch


def test_an_executor_that_is_leaving_or_another_querys_is_no_sign_that_a_raise_is_of_use():
    """Executor 2 was asked to leave before the raise and still runs tasks, 8 is that of another query."""
    job, used = driver.job(), {"0": 1.0, "2": 1.0, "8": 1.0}
    job.actuator.asked_to_leave = {"2"}
    job.executors = dict.fromkeys(("0", "2"), 1)
    cluster = SimpleNamespace(
        jquery=SimpleNamespace(lastProgress=lambda: None, isActive=lambda: True), executors=lambda: job.executors,
        batch_stages=lambda run_id, batch_id: [], executors_used=lambda stages: used,
    )  # fmt: skip
    observer, now = Observer(job, cluster), time.time()
    job.tracker.track(decision(2, at=now), ["0"], None, now, job.time)
    observer._handle(Batch(1, "run", now + 1, 1.0, 10, {}, {}, {}, now))
    job.actuator.ids, job.executors = ["0", "3"], dict.fromkeys(("0", "2", "3"), 1)
    observer.poll()
    assert job.outbox.of(Outcome) == []
    used["3"] = 1.0
    observer._handle(Batch(2, "run", now + 2, 1.0, 10, {}, {}, {}, now))
    observer.poll()
    (done,) = job.outbox.of(Outcome)
    assert (done.status, done.useful_at) == ("confirmed", now + 2)
