"""The dry run of a replay's first batch: when it is begun, what it reads, and that orders wait for it."""

import threading
import time
from types import SimpleNamespace

import pytest

from tests.fakes.driver import job as new_job
from tests.fakes.waiting import PATIENCE_S, wait_until
from tidecast.backfill.spec import BackfillError, check_name
from tidecast.orders import ReplayOrder, ReplayProgress
from tidecast.replay.driver import Replays
from tidecast.replay.dry_run import NAME, WARM_BATCHES, dry_run_order, first_batch
from tidecast.replay.replayable import Replayable
from tidecast.spark.sensors import OffsetCurve

PLACES = {("events", 0): 100, ("events", 1): 3}


@pytest.fixture
def job():
    made = new_job()
    made.mode = "act"
    made.batches, made.rows = WARM_BATCHES, 20
    made.committed = dict(PLACES)
    made.ends = {("events", 0): 130, ("events", 1): 3}
    made.period_s = 4.0
    made.curves[("events", 0)] = arrived(5.0)
    return made


def arrived(since_s):
    """Ends of a partition: record 100 came so many seconds ago."""
    curve, now = OffsetCurve(), time.time()
    for ago_s, end in ((since_s + 5, 0), (since_s, 100), (0, 130)):
        curve.add(now - ago_s, end)
    return curve


class NotedRun:
    """Notes what is run, and does not end before it is let go."""

    def __init__(self):
        self.orders, self.go_on, self.fails = [], threading.Event(), None

    def __call__(self, order):
        self.orders.append(order)
        assert self.go_on.wait(PATIENCE_S)
        if self.fails:
            raise self.fails


def _never(order):
    raise ValueError("begun")


def test_it_reads_the_newest_committed_records_of_each_partition(job):
    order = dry_run_order(job)
    assert order.first == {("events", 0): 96, ("events", 1): 0} and order.past == PLACES
    order.check()
    with pytest.raises(BackfillError):
        check_name(order.id)  # nobody's backfill can have its folder


@pytest.mark.parametrize(
    "unready",
    [
        {"batches": WARM_BATCHES - 1},
        {"committed": None},
        {"committed": {}},
        {"period_s": 2.0},  # record 100 has waited for five seconds, two batches take four
        {"ends": {("events", 0): 130, ("events", 1): 4}},  # one waits that came before its agent did
    ],
)
def test_a_query_that_is_cold_or_behind_is_left_alone(job, unready):
    for name, value in unready.items():
        setattr(job, name, value)
    assert dry_run_order(job) is None


def test_it_begins_in_a_pause_of_live_batches_and_not_beside_one(job):
    noted = NotedRun()
    noted.go_on.set()
    live = SimpleNamespace(status={"isTriggerActive": True})
    replays = Replays(job, Replayable(_never, dry_run=noted), live)
    replays.poll()
    assert not noted.orders
    live.status["isTriggerActive"] = False
    replays.poll()
    wait_until(lambda: noted.orders, "it is begun")


def test_it_runs_once_and_what_is_ordered_meanwhile_waits_for_its_end(job):
    noted = NotedRun()
    replays = Replays(job, Replayable(_never, dry_run=noted))
    replays.poll()
    job.orders["fix"] = ReplayOrder(
        "fix", "orders", time.time(), "run", {"events": {"0": 0}}, {"events": {"0": 9}}, most_rps=5.0
    )
    replays.poll()
    wait_until(lambda: [one.id for one in noted.orders] == [NAME], "it is begun")
    assert not job.outbox.of(ReplayProgress)
    noted.go_on.set()

    def begun():
        replays.poll()
        return [one.reason for one in job.outbox.of(ReplayProgress)] == ["begun"]

    wait_until(begun, "the order is met")
    job.orders.clear()
    replays.poll()
    assert len(noted.orders) == 1


def test_an_order_that_is_there_already_and_an_observed_job_are_not_rehearsed_for(job):
    noted = NotedRun()
    job.mode = "observe"
    Replays(job, Replayable(_never, dry_run=noted)).poll()
    job.mode = "act"
    job.orders["fix"] = ReplayOrder("fix", "orders", time.time(), "pause", {"e": {"0": 0}}, {"e": {"0": 9}})
    Replays(job, Replayable(_never, dry_run=noted)).poll()
    assert not noted.orders


def test_one_that_fails_is_told_and_not_repeated(job, caplog):
    noted = NotedRun()
    noted.fails = OSError("no space left on device")
    noted.go_on.set()
    replays = Replays(job, Replayable(_never, dry_run=noted))
    replays.poll()
    wait_until(lambda: "no space left" in caplog.text, "it is told")
    replays.poll()
    assert len(noted.orders) == 1


@pytest.mark.parametrize("rows", [[0, 0, 7], []])
def test_its_query_is_stopped_after_the_first_batch_that_reads_or_in_time(rows):
    class Query:
        isActive, polls, stopped = True, 0, False

        @property
        def recentProgress(self):
            self.polls += 1
            return [SimpleNamespace(numInputRows=n) for n in rows[: self.polls]]

        def stop(self):
            self.stopped = True

    query = Query()
    first_batch(query, wait_s=0.5 if not rows else 10.0)
    assert query.stopped and query.polls >= len(rows)
