"""Orders that are read in an application of their own: who meets them, how fast, and when it is over."""

import time

import pytest

from models.policy.replays.kept import ReplayControl, with_progress
from tests.fakes.driver import Sent
from tests.fakes.driver import job as new_job
from tests.fakes.noted_query import NotedQuery
from tests.fakes.waiting import PATIENCE_S, wait_until
from tidecast.job import OrderedJob
from tidecast.messages import encode
from tidecast.orders import ReplayOrder, ReplayProgress
from tidecast.replay import driver
from tidecast.replay.driver import Replays
from tidecast.replay.pace import SAVE_S, Pace, rows_per_batch
from tidecast.replay.rates import AHEAD, FIRST_RPS, own_rates
from tidecast.replay.replayable import Replayable
from tidecast.wire import decode

OFFSETS = {"starts": {"events": {"0": 0}}, "ends": {"events": {"0": 100}}}


@pytest.fixture
def made(monkeypatch):
    monkeypatch.setattr(driver, "ReplayQuery", NotedQuery)
    return []


@pytest.fixture
def alone():
    return OrderedJob(name="orders", clock=None, outbox=Sent(), mode="act")


def _order(name, **fields):
    return ReplayOrder(**{"id": name, "job": "orders", "wall_time": time.time(), "wanted": "run", **OFFSETS, **fields})


def test_each_application_meets_its_own_orders_and_no_others(made, alone):
    beside, apart = _order("beside", most_rps=5.0), _order("apart", apart=2)
    agent = new_job()
    agent.mode, agent.orders = "act", {"beside": beside, "apart": apart}
    alone.orders = {"beside": beside, "apart": apart}
    for replays in (Replays(agent, Replayable(lambda order: made)), Replays(alone, Replayable(lambda order: made))):
        replays.poll()
        replays.poll()
    assert [query.order.id for query in made] == ["beside", "apart"]
    assert {one.id for one in agent.outbox.of(ReplayProgress)} == {"beside"}
    assert {(one.id, one.apart) for one in alone.outbox.of(ReplayProgress)} == {("apart", 2)}


def test_it_reads_as_fast_as_its_own_batches_show_that_it_can_without_anybody_who_decides(made, alone):
    alone.orders["apart"] = _order("apart", apart=2, task_rows=70)
    replays = Replays(alone, Replayable(lambda order: made))
    for _ in range(2):
        replays.poll()
    made[0].served_rps = 400.0
    replays.poll()
    alone.orders["apart"] = _order("apart", apart=2, most_rps=300.0)
    replays.poll()
    assert made[0].rates == [FIRST_RPS, AHEAD * 400.0, 300.0]
    assert made[0].order.task_rows == 70  # as it was planned: no live batch tells it here


@pytest.mark.parametrize(
    ("topics", "words"),
    [(("sales",), "order it with --topic"), (("events", "sales"), "the range leaves out sales, without whose")],
)
def test_a_range_of_a_topic_that_the_job_does_not_read_or_without_one_that_it_does_is_refused_here_too(
    made, alone, topics, words
):
    alone.topics, alone.orders = topics, {"apart": _order("apart", apart=1)}
    Replays(alone, Replayable(lambda order: made)).poll()
    (said,) = alone.outbox.of(ReplayProgress)
    assert said.state == "failed" and words in said.reason and not made


def test_it_is_over_once_nothing_is_waited_for_and_says_what_became_of_each(made, alone):
    names = ["done", "paused", "compared", "cancelled"]
    alone.orders = {name: _order(name, apart=1, then="compare" if name == "compared" else "publish") for name in names}
    replays = Replays(alone, Replayable(lambda order: made, compare=lambda order: "nothing differs"))
    replays.poll()
    assert sorted(replays.waiting()) == sorted(names)
    for query in made:
        query.over = query.order.id in ("done", "compared")
    later = time.time() + 1
    alone.orders["paused"] = _order("paused", apart=1, wanted="pause", wall_time=later)
    alone.orders["cancelled"] = _order("cancelled", apart=1, wanted="cancel", wall_time=later)
    wait_until(lambda: replays.poll() or not replays.waiting(), "its end", PATIENCE_S)
    assert replays.states() == {name: name for name in names}


def test_its_batches_grow_from_the_least_to_those_of_ten_seconds_and_no_further():
    """Executors that serve 1,000/s, a partition of four tasks' worth: batch after batch at 1.25 times what came."""
    rps, rows, pace = FIRST_RPS, 4, None
    for number in range(30):
        rows = rows_per_batch(rps, pace, 2.0, 1, 4, split=pace is not None)
        batch_s = 0.5 + rows / 1000
        pace = Pace(rows, 0.1, rows / 1000, 0.0, number == 0, 10**6)
        order = _order("apart", apart=2)
        rps = own_rates([order], {"apart": rows / batch_s})["apart"]
    assert 0.9 * SAVE_S < batch_s < 1.5 * AHEAD * SAVE_S


def test_what_is_read_apart_changes_nothing_of_what_is_decided_of_the_live_job(alone):
    said = ReplayProgress("apart", "orders", 1.0, 1.0, 1.0, "running", 100, 10, executors=3, apart=3)
    beside = ReplayProgress("beside", "orders", 1.0, 1.0, 1.0, "running", 100, 10, executors=3)
    known = ReplayControl()
    assert with_progress(known, vars(said)) == known
    assert with_progress(known, vars(beside)) != known


def test_an_order_says_on_the_wire_how_many_executors_it_has_apart_only_where_it_has_some():
    assert decode(ReplayOrder, encode(_order("apart", apart=3))).apart == 3
    assert b'"apart"' not in encode(_order("beside"))
