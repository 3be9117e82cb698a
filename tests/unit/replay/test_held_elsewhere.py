"""A replay that another agent has still is waited for, and a query that nobody can pace is stopped."""

import os
import time
from dataclasses import replace

import pytest

from tests.fakes.driver import job as new_job
from tests.fakes.noted_query import NotedQuery
from tests.fakes.waiting import wait_until
from tidecast.backfill import namespace
from tidecast.backfill.spec import BackfillError
from tidecast.orders import ReplayOrder, ReplayProgress
from tidecast.replay import driver
from tidecast.replay.aside import Aside
from tidecast.replay.driver import Replays
from tidecast.replay.replayable import HeldElsewhereError, Replayable
from tidecast.spark.admission import AdmissionError


@pytest.fixture
def job(monkeypatch):
    made = new_job()
    made.mode = "act"
    offsets = {"events": {"0": 0}}, {"events": {"0": 100}}
    made.orders["fix"] = ReplayOrder("fix", "orders", time.time(), "run", *offsets, most_rps=5.0)
    return made


def test_one_that_another_agent_has_still_is_begun_once_that_has_let_go(job, monkeypatch, tmp_path):
    """As where a query is started again in its driver while the agent before still publishes."""
    monkeypatch.setattr(driver, "ReplayQuery", NotedQuery)
    monkeypatch.setattr(driver, "AGAIN_S", 0.05)
    made, before, tries = [], namespace.take_lease(tmp_path / "hourly", "fix"), []

    def start(order):
        tries.append(time.monotonic())
        os.close(namespace.take_lease(tmp_path / "hourly", "fix"))
        return made

    replays = Replays(job, Replayable(start))
    wait_until(lambda: replays.poll() or len(tries) == 3, "a third try", every_s=0.001)
    said = job.outbox.of(ReplayProgress)[-1]
    assert (said.state, made) == ("waiting", []) and "still running in this process: it is waited for" in said.reason
    os.close(before)
    wait_until(lambda: replays.poll() or made, "its query", every_s=0.001)
    replays.poll()
    assert [one.state for one in job.outbox.of(ReplayProgress)][-1] == "running" and made[0].rates == [5.0]


def test_a_cancellation_of_what_another_agent_has_still_waits_too(job, monkeypatch):
    monkeypatch.setattr(driver, "AGAIN_S", 0.05)
    tries = []

    def cancel(order):
        tries.append(order.id)
        if len(tries) < 3:
            raise HeldElsewhereError("fix is running in process 7")

    job.orders["fix"] = replace(job.orders["fix"], wanted="cancel")
    replays = Replays(job, Replayable(lambda order: None, cancel=cancel))
    wait_until(lambda: replays.poll() or replays.states().get("fix") == "cancelled", "its end", every_s=0.001)
    told = [(one.state, one.reason) for one in job.outbox.of(ReplayProgress)]
    assert len(tries) == 3 and told[0] == ("waiting", "fix is running in process 7") and told[-1][0] == "cancelled"


@pytest.mark.parametrize("then", ["publish", "compare"])
def test_what_publishes_or_compares_and_finds_that_another_agent_has_it_still_is_called_again(job, monkeypatch, then):
    """None of ours does; that of a user's own may take a lease for it."""
    monkeypatch.setattr(driver, "ReplayQuery", NotedQuery)
    monkeypatch.setattr(driver, "AGAIN_S", 0.0)
    monkeypatch.setattr(Aside, "going_on", property(lambda self: self._thread.join() or False))
    made, tries = [], []

    def act(order):
        tries.append(order.id)
        if len(tries) < 3:
            raise HeldElsewhereError("fix is running in process 7")
        return ""

    job.orders["fix"] = replace(job.orders["fix"], then=then)
    replays = Replays(job, Replayable(lambda order: made, act, compare=act))
    replays.poll()
    made[0].over = True
    for _ in range(8):  # a try begins with one poll, and the next one meets its end
        replays.poll()
    assert (len(tries), len(made)) == (3, 1)
    assert replays.states()["fix"] == {"publish": "done", "compare": "compared"}[then]


def test_of_two_agents_with_the_same_replays_the_later_one_begins_once_the_earlier_one_has_closed(job, monkeypatch):
    """As where a query that failed is started again in its driver, and attached with the same `replay=`."""
    monkeypatch.setattr(driver, "ReplayQuery", NotedQuery)
    monkeypatch.setattr(driver, "AGAIN_S", 0.05)
    made, closed = [], []
    shared = Replayable(lambda order: made, close=lambda: closed.append([one.stopped for one in made]))
    earlier, later, third = (Replays(job, shared) for _ in range(3))
    earlier.poll()
    wait_until(lambda: later.poll() or job.outbox.of(ReplayProgress), "that it waits", every_s=0.001)
    (said,) = job.outbox.of(ReplayProgress)
    assert (said.state, len(made)) == ("waiting", 1) and "agent before is ending" in said.reason
    third.close()  # it has begun nothing
    assert closed == []
    earlier.close()
    wait_until(lambda: later.poll() or len(made) == 2, "its query", every_s=0.001)
    earlier.close()
    assert closed == [[True]] and not made[1].stopped
    later.close()
    assert closed == [[True], [True, True]]


@pytest.mark.parametrize("begun", [True, False])
def test_a_cancellation_waits_for_the_earlier_agents_end_too(job, monkeypatch, begun):
    monkeypatch.setattr(driver, "ReplayQuery", NotedQuery)
    monkeypatch.setattr(driver, "AGAIN_S", 0.0)
    cancelled, order = [], job.orders["fix"]
    shared = Replayable(lambda order: [], cancel=cancelled.append)
    earlier, later = Replays(job, shared), Replays(job, shared)
    if begun:
        earlier.poll()
    job.orders["fix"] = replace(order, wanted="cancel")
    later.poll()
    assert len(cancelled) == (0 if begun else 1)
    earlier.close()
    later.poll()
    assert len(cancelled) == 1


def test_who_cannot_take_a_lease_is_told_so_by_both_errors(tmp_path):
    lease = namespace.take_lease(tmp_path / "hourly", "fix")
    for kind in (BackfillError, HeldElsewhereError):
        with pytest.raises(kind, match=r"fix of .*hourly is still running in this process"):
            namespace.take_lease(tmp_path / "hourly", "fix")
    os.close(lease)


def test_a_query_whose_limits_cannot_be_set_is_stopped(job, monkeypatch):
    def refuse(order, query, warm):
        raise AdmissionError("Spark keeps its limits otherwise")

    monkeypatch.setattr(driver, "ReplayQuery", refuse)
    started = NotedQuery(None, [])
    Replays(job, Replayable(lambda order: started)).poll()
    assert started.stopped and job.outbox.of(ReplayProgress)[-1].state == "failed"
