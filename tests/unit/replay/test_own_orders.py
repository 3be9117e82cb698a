"""Replays that a job orders itself, publications that have to be repeated, and clocks that disagree."""

import itertools
import time

import pytest

from tests.fakes.clock import clock_with
from tests.fakes.driver import job as new_job
from tests.fakes.waiting import wait_until
from tidecast.messages import MessageError, decode, encode
from tidecast.orders import ReplayOrder, ReplayProgress, later_than
from tidecast.replay import driver, rates, told
from tidecast.replay.driver import Replays
from tidecast.replay.replayable import Replayable

OFFSETS = {"starts": {"events": {"0": 0}}, "ends": {"events": {"0": 100}}}


class ReadQuery:
    """A replay's query that has read all of its range."""

    newest = "batch"

    def __init__(self, order, query, warm):
        pass

    def poll(self):
        return True

    def admit(self, rps):
        pass

    def pause(self):
        pass

    def measured(self):
        return {"done": 100}

    def stop(self):
        pass


@pytest.fixture
def job(monkeypatch):
    monkeypatch.setattr(driver, "ReplayQuery", ReadQuery)
    made = new_job()
    made.mode = "act"
    made.replay_rps, made.heard_at = 100.0, time.monotonic()
    return made


def order(name="gap-1", **fields):
    return ReplayOrder(**{"id": name, "job": "orders", "wall_time": 100.0, "wanted": "run", **OFFSETS, **fields})


def polled_until(replays, holds):
    wait_until(lambda: holds() or replays.poll(), "what its polls come to")


def test_a_job_places_its_own_orders_once_its_agent_acts_and_whatever_control_says_of_them_holds(job):
    old = order("gap-5", wanted="done", wall_time=50.0)  # of a table of before: a new one counts from 1 again
    mine = *map(order, ("gap-1", "gap-2", "gap-3")), order("gap-4", wanted="cancel", wall_time=200.0), order("gap-5")
    job.mode = "observe"
    replays = Replays(job, Replayable(lambda one: one, orders=mine))
    replays.poll()
    assert not job.orders and not job.outbox  # control is not read yet
    job.orders |= {"gap-2": order("gap-2", wanted="pause", wall_time=150.0), "gap-4": order("gap-4")}
    job.orders |= {"gap-3": order("gap-3", wanted="done", wall_time=150.0), "gap-5": old}
    job.mode = "act"
    replays.poll()
    placed = {one.id: one.wanted for one in job.outbox.of(ReplayOrder) if one.wanted != "done"}
    assert placed == {"gap-1": "run", "gap-4": "cancel", "gap-5": "run"}
    assert job.orders["gap-2"].wanted == "pause"
    polled_until(replays, lambda: job.orders["gap-4"].wanted == "done")
    replays.poll()
    assert len([one for one in job.outbox.of(ReplayOrder) if one.id == "gap-1" and one.wanted == "run"]) == 1


def test_a_publication_that_is_not_settled_is_repeated_from_time_to_time_and_said(job, monkeypatch):
    monkeypatch.setattr(driver, "AGAIN_S", 0.02)
    answers = ["live has windows open", "live has windows open", ""]
    asked = []

    def publish(one):
        asked.append(time.monotonic())
        return answers[len(asked) - 1]

    job.orders["gap-1"] = order()
    replays = Replays(job, Replayable(lambda one: one, publish))
    polled_until(replays, lambda: job.orders["gap-1"].wanted == "done")
    assert len(asked) == 3 and min(b - a for a, b in itertools.pairwise(asked)) >= 0.02
    said = [(one.state, one.reason) for one in job.outbox.of(ReplayProgress)]
    assert said[-1] == ("done", "") and ("read", "live has windows open") in said


def test_an_order_of_before_its_replays_end_is_not_met_again_and_the_end_is_said_again(job):
    ends, begun = {}, []
    kept = {"ended": lambda over: ends.update({over.id: over.wall_time}), "ended_at": lambda name: ends.get(name, 0.0)}
    job.orders["gap-1"] = order()
    replays = Replays(job, Replayable(lambda one: one, **kept))
    polled_until(replays, lambda: job.orders["gap-1"].wanted == "done")
    later = new_job()  # the record that says so is gone from the broker, and a signed one of before has its place
    later.mode, later.orders["gap-1"], later.orders["gap-2"] = "observe", order(), order("gap-2")
    again = Replays(later, Replayable(begun.append, **kept))
    again.poll()
    assert later.orders["gap-1"] == order()  # the end may be read yet
    later.mode, later.replay_rps, later.heard_at = "act", 100.0, time.monotonic()
    again.poll()
    assert [one.id for one in begun] == ["gap-2"]
    (over,) = later.outbox.of(ReplayOrder)
    assert (over.id, over.wanted, over.wall_time) == ("gap-1", "done", ends["gap-1"])
    later.orders["gap-1"] = order(wall_time=over.wall_time + 1)
    again.poll()
    assert [one.id for one in begun] == ["gap-2", "gap-1"]


@pytest.mark.parametrize(("wanted", "reason"), [
    ("cancel", "it was published before it could be cancelled"), ("pause", ""), ("run", ""),
])  # fmt: skip
def test_whoever_had_not_heard_of_the_end_is_told_it_again(job, wanted, reason):
    """Cancelled by then, what it published would be said to be gone, and resumed it would be read again."""
    begun, cancelled = [], []
    job.orders["gap-1"] = order()
    replays = Replays(job, Replayable(lambda one: begun.append(one.id) or one, cancel=cancelled.append))
    polled_until(replays, lambda: job.orders["gap-1"].wanted == "done")
    late = job.orders["gap-1"].wall_time + 1
    job.orders["gap-1"] = order(wanted=wanted, wall_time=late)
    polled_until(replays, lambda: job.orders["gap-1"].wanted == "done")
    said = job.outbox.of(ReplayProgress)[-1]
    assert (said.state, said.reason, said.ordered_at) == ("done", reason, late)
    assert job.orders["gap-1"].wall_time > late and (begun, cancelled) == (["gap-1"], [])


def test_a_range_that_is_ordered_anew_after_its_end_is_read_and_cancelled_like_any_other(job, monkeypatch):
    begun, cancelled = [], []

    def start(one):
        begun.append(one.then)
        if len(begun) == 3:
            raise ValueError("its plan is not the live query's")
        return one

    def again(state, **fields):
        job.orders["gap-1"] = order(wall_time=job.orders["gap-1"].wall_time + 1, **fields)
        polled_until(replays, lambda: replays.states()["gap-1"] == state)

    job.orders["gap-1"] = order()
    replays = Replays(job, Replayable(start, cancel=cancelled.append, compare=lambda one: "nothing differs"))
    polled_until(replays, lambda: job.orders["gap-1"].wanted == "done")
    again("compared", then="compare")
    again("done")
    monkeypatch.setattr(told, "UNHEARD_S", 0.0)  # a while later
    again("failed")
    again("cancelled", wanted="cancel")
    assert begun == ["publish", "compare", "publish"] and len(cancelled) == 1


def test_an_end_that_cannot_be_looked_up_fails_that_replay_alone(job):
    def ended_at(name):
        if name == "gap-1":
            raise OSError("the place of its ends is away")
        return 0.0

    begun = []
    job.orders |= {"gap-1": order(), "gap-2": order("gap-2")}
    replays = Replays(job, Replayable(lambda one: begun.append(one.id), ended_at=ended_at))
    polled_until(replays, lambda: job.orders["gap-2"].wanted == "done")
    assert begun == ["gap-2"] and replays.states() == {"gap-1": "failed", "gap-2": "done"}


def test_an_end_that_cannot_be_kept_is_an_end(job):
    def full(over):
        raise OSError("no space left on device")

    job.orders["gap-1"] = order()
    polled_until(Replays(job, Replayable(lambda one: one, ended=full)), lambda: job.orders["gap-1"].wanted == "done")
    assert job.outbox.of(ReplayProgress)[-1].state == "done"


def test_what_a_driver_says_of_an_order_is_later_than_the_order_whatever_its_clock_says(job):
    ahead = time.time() + 250  # of the one who ordered it
    job.orders["gap-1"] = order(wall_time=ahead)
    replays = Replays(job, Replayable(lambda one: one))
    polled_until(replays, lambda: job.orders["gap-1"].wanted == "done")
    (over,) = job.outbox.of(ReplayOrder)
    assert over.wall_time > ahead  # or the next agent would begin it again
    said = job.outbox.of(ReplayProgress)
    assert said[-1].state == "done" and said[-1].wall_time < ahead and all(one.ordered_at == ahead for one in said)
    assert decode(ReplayProgress, encode(said[-1])).answers(order(wall_time=ahead))  # so its orderer hears it
    assert not said[-1].answers(over)


def test_a_clock_that_is_set_back_neither_silences_a_replay_nor_holds_it(job, monkeypatch):
    class Running(ReadQuery):
        rates: list = []  # noqa: RUF012

        def poll(self):
            return False

        def admit(self, rps, may_begin=True, live_s=0.0):
            self.rates.append(rps)

    monkeypatch.setattr(driver, "ReplayQuery", Running)
    monkeypatch.setattr(told, "SAY_S", 0.02)
    monkeypatch.setattr(rates, "CHANCE_S", 0.02)
    job.orders["gap-1"], job.heard_at = order(most_rps=5.0), time.monotonic()
    replays = Replays(job, Replayable(lambda one: one))
    replays.poll()
    for module in (driver, told):
        monkeypatch.setattr(module, "time", clock_with(time=lambda: time.time() - 3_600))
    polled_until(replays, lambda: Running.rates[-1:] == [5.0])
    before = len(job.outbox.of(ReplayProgress))
    polled_until(replays, lambda: len(job.outbox.of(ReplayProgress)) > before + 1)


@pytest.mark.parametrize(("changes", "words"), [
    ({"open_ms": 5}, "open_ms and open_starts go together"),
    ({"open_starts": {"events": {"0": 5}}}, "open_ms and open_starts go together"),
    ({"open_ms": 5, "open_starts": {"events": {"1": 5}}}, "with a start of each partition of the range"),
    ({"open_ms": 5, "open_starts": {"events": 5}}, "open_starts="),
    ({"holds": -1}, "holds"),
    ({"table": 3}, "table"),
])  # fmt: skip
def test_a_bad_order_of_a_gap_or_a_table_is_refused_by_the_field(changes, words):
    with pytest.raises(MessageError, match=words):
        decode(ReplayOrder, encode(order(**changes)))


def test_an_order_of_an_older_release_reads_the_topic():
    raw = encode(order()).replace(b'"table":"",', b"").replace(b'"open_starts":{},', b"")
    assert b"table" not in raw and b"open" not in raw
    assert decode(ReplayOrder, raw) == order()


def test_a_command_is_later_than_what_it_changes_whatever_its_clock_says():
    ahead = time.time() + 250
    assert later_than(order(wall_time=ahead), time.time()) > ahead  # or the agent would take it for one that came late
    assert later_than(order(), now := time.time()) == now == later_than(None, now)
