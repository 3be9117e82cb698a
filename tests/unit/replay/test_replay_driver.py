"""Replays in a driver whose queries take notes: when they run, at which rate, what ends them, and what is said."""

import threading
import time
from types import SimpleNamespace

import pytest

from tests.fakes.driver import job as new_job
from tests.fakes.noted_query import NotedQuery
from tests.fakes.waiting import PATIENCE_S, wait_until
from tidecast.orders import ReplayOrder, ReplayProgress
from tidecast.replay import aside, driver, rates
from tidecast.replay.driver import Replays
from tidecast.replay.replayable import Replayable

OFFSETS = {"starts": {"events": {"0": 0}}, "ends": {"events": {"0": 100}}}


@pytest.fixture
def queries(monkeypatch):
    monkeypatch.setattr(driver, "ReplayQuery", NotedQuery)
    return []


@pytest.fixture
def job():
    made = new_job()
    made.mode = "act"
    return made


def _order(name="fix", **fields):
    return ReplayOrder(**{"id": name, "job": "orders", "wall_time": time.time(), "wanted": "run", **OFFSETS, **fields})


def _states(job, name="fix"):
    states = [p.state for p in job.outbox.of(ReplayProgress) if p.id == name]
    return [state for state, before in zip(states, [None, *states], strict=False) if state != before]


def test_a_replay_reads_nothing_more_once_the_agent_observes(queries, job):
    job.orders["fix"] = _order(most_rps=5.0)
    job.replay_rps, job.heard_at = 5.0, time.monotonic()
    replays = Replays(job, Replayable(lambda order: queries))
    replays.poll()
    replays.poll()
    (query,) = queries
    assert query.rates == [5.0]
    job.mode = "observe"
    replays.poll()
    assert query.rates == [5.0, 0.0] and _states(job)[-1] == "waiting"


def test_nothing_is_started_where_the_agent_observes_or_the_job_gave_nothing_to_start(queries, job):
    job.orders["fix"] = _order()
    without = Replays(job, None)
    without.poll()
    without.poll()
    (said,) = job.outbox.of(ReplayProgress)
    assert said.state == "failed" and "replay=" in said.reason and not said.tried_again

    job.outbox.clear()
    job.mode = "observe"
    Replays(job, Replayable(lambda order: queries)).poll()
    (said,) = job.outbox.of(ReplayProgress)
    assert (said.state, queries) == ("waiting", []) and "observes" in said.reason


def test_a_replay_without_a_rate_says_whether_its_agent_is_frozen_or_nobody_decides_one(queries, job):
    job.orders["fix"] = _order()
    job.heard_at = time.monotonic()  # by what decides nothing
    replays = Replays(job, Replayable(lambda order: queries))
    replays.poll()
    job.replay_rps = 5.0
    replays.poll()
    replays.poll()
    job.mode = "freeze"
    job.decide_nothing()
    replays.poll()
    said = [(one.state, one.reason) for one in job.outbox.of(ReplayProgress)]
    assert said[0] == ("waiting", "the autoscaler decides no rate: it only observes, or has not decided yet")
    assert said[-1] == ("waiting", "the agent is frozen: nobody decides a rate") and len(queries) == 1
    assert ("running", "") in said


def test_while_one_replay_is_started_no_other_reads_on_without_being_paced(queries, job):
    at_start = []

    def start(order):
        at_start.append([query.rates[-1] for query in queries])
        return queries

    job.orders["fix"] = _order(most_rps=5.0)
    replays = Replays(job, Replayable(start))
    for _ in range(2):
        replays.poll()
    job.orders["other"] = _order("other", most_rps=7.0)
    for _ in range(2):
        replays.poll()
    assert at_start == [[], [0.0]] and [query.rates[-1] for query in queries] == [5.0, 7.0]


def test_behind_one_that_is_started_the_others_wait_until_it_is_seen_anew_that_live_batches_leave_a_pause(queries, job):
    live = SimpleNamespace(status={"isTriggerActive": False}, lastProgress={"batchId": 0, "sources": []})
    told = []

    def start(order):
        live.status = {"isTriggerActive": True}  # it takes seconds
        return queries

    job.orders["fix"] = _order(most_rps=5.0)
    replays = Replays(job, Replayable(start), live)
    replays.poll()
    queries[0].admit = lambda rps, may_begin=True, live_s=0.0: told.append(may_begin)
    job.orders = {"other": _order("other", most_rps=7.0)} | job.orders  # whose turn is first
    for _ in range(2):
        live.status = {"isTriggerActive": False}
        replays.poll()
    assert told == [False, True] and _states(job, "other") == ["running"]


def test_one_whose_limit_cannot_be_set_keeps_no_other_from_its_start(queries, job):
    def refuses(rps, may_begin=True, live_s=0.0):
        raise RuntimeError("its source is gone")

    job.orders["fix"] = _order(most_rps=5.0)
    replays = Replays(job, Replayable(lambda order: queries))
    replays.poll()
    queries[0].admit = refuses
    job.orders = {"other": _order("other", most_rps=7.0)} | job.orders  # whose turn is first
    for _ in range(2):
        replays.poll()
    assert _states(job) == ["failed"] and _states(job, "other") == ["running"]


def test_a_failure_ends_that_replay_alone_and_a_newer_order_goes_on(queries, job):
    def start(order):
        if order.id == "broken":
            raise ValueError("no such column")
        return queries

    job.orders |= {"broken": _order("broken", most_rps=5.0), "fix": _order(most_rps=5.0)}
    replays = Replays(job, Replayable(start))
    for _ in range(3):
        replays.poll()
    assert _states(job, "broken") == ["failed"] and len(queries) == 1 and queries[0].rates == [5.0, 5.0]
    queries[0].fails = "its source is gone"
    replays.poll()
    replays.poll()
    assert _states(job)[-1] == "failed" and queries[0].stopped and len(queries) == 1
    assert not job.outbox.of(ReplayProgress)[-1].tried_again
    assert not job.outbox.of(ReplayOrder)  # it stays ordered: the next agent, or a newer order, tries again
    job.orders["fix"] = _order(most_rps=5.0)
    replays.poll()
    assert len(queries) == 2


def _gap(**fields):
    """Nobody has ordered it, and nobody would resume it."""
    return _order("gap-1", holds=5, **fields)


@pytest.mark.parametrize("broken", ["start", "query", "publish"])
def test_a_gap_that_failed_is_begun_again_after_a_while(queries, job, monkeypatch, broken):
    monkeypatch.setattr(driver, "AGAIN_S", 0.05)
    tries = {"start": 0, "publish": 0}

    def act(what):
        tries[what] += 1
        if broken == what and tries[what] == 1:
            raise ConnectionError("no Kafka broker for us")
        return queries if what == "start" else ""

    def publish(order):
        return act("publish")

    job.orders["gap-1"] = _gap(most_rps=5.0, then="publish")
    replays = Replays(job, Replayable(lambda order: act("start"), publish=publish))

    def is_done():
        if broken == "query" and len(queries) == 1:
            queries[0].fails = "no Kafka broker for us"
        elif queries:
            queries[-1].over = True
        replays.poll()
        return replays.states().get("gap-1") == "done"

    wait_until(is_done, "its end", every_s=0.001)
    assert "failed" not in _states(job, "gap-1") and all(one.stopped for one in queries)
    assert tries["start"] == (1 if broken == "publish" else 2)
    (why,) = {one.reason for one in job.outbox.of(ReplayProgress) if one.reason}
    assert why == "it failed and is tried again in 0 s: no Kafka broker for us"


def test_a_gap_whose_round_failed_is_published_again_without_a_rate(queries, job, monkeypatch):
    """At a peak, in freeze or with a silent autoscaler there is none for hours, and nothing of it is to be read."""
    monkeypatch.setattr(driver, "AGAIN_S", 0.02)
    answers = ["windows wait", ConnectionError("away"), ""]

    def publish(order):
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    job.orders["gap-1"] = _gap(then="publish")
    job.replay_rps, job.heard_at = 5.0, time.monotonic()
    replays = Replays(job, Replayable(lambda order: queries, publish=publish))
    replays.poll()
    job.mode, queries[0].over = "freeze", True
    job.decide_nothing()
    _poll_until(replays, job, "done", "gap-1")
    assert len(queries) == 1 and not answers
    said = [(one.state, one.reason, one.done) for one in job.outbox.of(ReplayProgress)]
    assert ("read", "it failed and is tried again in 0 s: away", 100) in said
    assert [*dict.fromkeys(state for state, *_ in said)] == ["read", "done"]


@pytest.fixture
def clock(monkeypatch, job):
    """A steady clock that only a test turns; nobody decides, and what is done aside has ended once it is looked at."""
    turned = SimpleNamespace(s=1000.0)
    for module in (aside, driver):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: turned.s, time=time.time))
    monkeypatch.setattr(aside.Aside, "going_on", property(lambda self: self._thread.join() or False))
    job.heard_at = float("-inf")
    return turned


@pytest.mark.parametrize("broken", ["start", "publish"])
def test_a_gap_that_fails_for_good_is_tried_again_ever_more_seldom_and_says_that_it_has_failed(
    queries, job, clock, caplog, broken
):  # fmt: skip
    tries = []

    def fail(order):
        tries.append(clock.s)
        raise OSError(f"stream [runId = {len(tries)}] ended")  # Spark says another one with each try

    def start(order):
        return fail(order) if broken == "start" else queries

    job.orders["gap-1"] = _gap(most_rps=5.0, then="publish")
    replays = Replays(job, Replayable(start, publish=fail))

    def poll_at(at):
        clock.s, many = at, len(tries)
        for _ in range(4):
            replays.poll()
            for query in queries:
                query.over = True
        return len(tries) - many

    due = 1000.0
    poll_at(due)
    for number, wait_s in enumerate([20, 40, 80, 160, 320, 600, 600], 1):
        assert len(tries) == number and poll_at(due + wait_s - 1) == 0
        said = [one for one in job.outbox.of(ReplayProgress) if one.id == "gap-1"][-1]
        assert said.reason == f"it failed and is tried again in {wait_s} s: stream [runId = {number}] ended"
        assert said.state == ("failed" if number >= 4 else "waiting" if broken == "start" else "read")
        assert said.tried_again == (number >= 4)
        due += wait_s
        poll_at(due)
    assert tries == [1000.0, 1020, 1060, 1140, 1300, 1620, 2220, 2820]
    assert sum("gap-1 failed" in one.message for one in caplog.records) == 8
    job.orders["gap-1"] = _gap(wanted="cancel", wall_time=time.time() + 1)
    replays.poll()
    assert replays.states()["gap-1"] == "cancelled", "a newer order is met at once"


def _four_polls(replays, queries):
    """So many tell that a gap has failed whose query begins and has read all of it by the next one."""
    for _ in range(4):
        replays.poll()
        for query in queries:
            query.over = True


@pytest.mark.parametrize("broken", ["start", "publish"])
def test_a_gap_that_waits_after_failures_is_tried_at_once_where_somebody_resumes_it(queries, job, clock, broken):
    """Whoever follows that order is told what came of it, and not of the tries before."""
    tries = []

    def fail(order):
        tries.append(order.wall_time)
        raise OSError("no space left on device")

    job.orders["gap-1"] = _gap(most_rps=5.0)
    replays = Replays(job, Replayable(fail if broken == "start" else lambda order: queries, publish=fail))

    for at in (1000.0, 1020.0, 1060.0, 1140.0):  # the next one would be at 1300
        clock.s = at
        _four_polls(replays, queries)
    assert len(tries) == 4 and replays.states()["gap-1"] == "failed"
    resumed = job.orders["gap-1"] = _gap(most_rps=5.0)
    clock.s = 1141.0
    _four_polls(replays, queries)
    assert tries[4:] == [resumed.wall_time]
    answers = [one.state for one in job.outbox.of(ReplayProgress) if one.ordered_at == resumed.wall_time]
    assert answers == ([] if broken == "start" else ["read"]) + ["failed"]


@pytest.mark.parametrize("slow", ["rate", "publish"])
def test_a_gap_that_fails_for_good_says_so_however_long_a_try_takes_or_waits_for_a_rate(queries, job, clock, slow):
    """Over ten minutes each time: as large gaps do, or where a rate comes seldom."""
    tries, said = [], []

    def fail(order):
        tries.append(order.id)
        clock.s += 700.0 if slow == "publish" else 0.0
        raise OSError("no space left on device")

    job.orders["gap-1"] = _gap(most_rps=5.0)
    replays = Replays(job, Replayable(fail if slow == "rate" else lambda order: queries, publish=fail))
    for wait_s in (0, 20, 40, 80, 160):
        clock.s += wait_s
        if slow == "rate":
            job.replay_rps = 0.0
            _four_polls(replays, queries)
            clock.s, job.replay_rps = clock.s + 700.0, None
        _four_polls(replays, queries)
        said.append(replays.states()["gap-1"])
    usual = "waiting" if slow == "rate" else "read"
    assert said == [usual, usual, usual, "failed", "failed"] and len(tries) == 5


def test_how_often_a_gap_could_not_be_begun_does_not_count_once_all_of_it_is_read(queries, job, clock):
    outage = [OSError("away")] * 5

    def start(order):
        if outage:
            raise outage.pop()
        return queries

    def publish(order):
        raise OSError("no space left on device")

    job.orders["gap-1"] = _gap(most_rps=5.0)
    replays = Replays(job, Replayable(start, publish=publish))
    for wait_s in (0, 20, 40, 80, 160):
        clock.s += wait_s
        _four_polls(replays, queries)
        assert not queries
    clock.s += 320
    _four_polls(replays, queries)
    said = job.outbox.of(ReplayProgress)[-1]
    assert (said.state, said.reason) == ("read", "it failed and is tried again in 20 s: no space left on device")


@pytest.mark.parametrize(("read_s", "again_s"), [(599, 40), (600, 20)])
def test_a_gap_whose_query_has_read_for_ten_minutes_has_failed_once(queries, job, clock, read_s, again_s):
    job.orders["gap-1"] = _gap(most_rps=5.0)
    replays = Replays(job, Replayable(lambda order: queries))
    for fails_after_s in (0, read_s):
        replays.poll()
        clock.s += fails_after_s
        queries[-1].fails = "away"
        for _ in range(2):
            replays.poll()
        clock.s += 20
    assert job.outbox.of(ReplayProgress)[-1].reason == f"it failed and is tried again in {again_s} s: away"


def test_a_gap_that_waits_after_a_failure_has_no_part_of_the_rate(queries, job):
    job.orders |= {"gap-1": _gap(), "fix": _order()}
    job.replay_rps, job.heard_at = 10.0, time.monotonic()
    replays = Replays(job, Replayable(lambda order: queries))
    for _ in range(2):
        replays.poll()
    gap, fix = queries
    assert (gap.rates[-1], fix.rates[-1]) == (5.0, 5.0)
    gap.fails = "no Kafka broker for us"
    for _ in range(2):
        replays.poll()
    assert fix.rates[-1] == 10.0


def test_a_gap_that_is_begun_again_says_how_far_it_had_come(queries, job):
    job.orders["gap-1"] = _gap(most_rps=5.0)
    replays = Replays(job, Replayable(lambda order: queries))
    for _ in range(2):
        replays.poll()
    queries[0].fails = "no Kafka broker for us"
    for _ in range(2):
        replays.poll()
    said = job.outbox.of(ReplayProgress)[-1]
    assert (said.state, said.done) == ("waiting", 10) and said.reason.startswith("it failed and is tried again")


def test_one_that_cannot_say_how_far_it_came_ends_once_and_keeps_no_other_from_its_turn(queries, job):
    def measured():
        raise ValueError("files.json is damaged")

    job.orders |= {"fix": _order(most_rps=5.0), "other": _order("other", most_rps=7.0)}
    replays = Replays(job, Replayable(lambda order: queries))
    replays.poll()
    first, other = queries
    first.measured, first.fails, before = measured, "files.json is damaged", len(other.rates)
    for _ in range(3):
        replays.poll()
    said = [one for one in job.outbox.of(ReplayProgress) if one.id == "fix"][-1]
    assert (said.state, said.reason) == ("failed", "files.json is damaged")
    assert queries == [first, other] and first.stopped and len(other.rates) == before + 3


def test_what_was_read_is_published_before_it_is_done_and_a_failing_publication_is_no_end(queries, job):
    published = []

    def publish(order):
        assert queries[-1].stopped and _states(job)[-1] == "read"
        published.append(order.id)
        if len(published) == 1:
            raise OSError("no space left on device")

    job.orders["fix"] = _order(most_rps=5.0)
    replays = Replays(job, Replayable(lambda order: queries, publish))
    replays.poll()
    queries[0].over = True
    _poll_until(replays, job, "failed")
    said = job.outbox.of(ReplayProgress)[-1]
    assert "no space left" in said.reason and not job.outbox.of(ReplayOrder)
    job.orders["fix"] = _order(most_rps=5.0)
    replays.poll()
    queries[1].over = True
    _poll_until(replays, job, "done")
    assert _states(job)[-2:] == ["read", "done"] and len(published) == 2
    assert [one.wanted for one in job.outbox.of(ReplayOrder)] == ["done"]


def _poll_until(replays, job, state, name="fix"):
    wait_until(lambda: replays.poll() or _states(job, name)[-1:] == [state], state, every_s=0.001)


def test_a_publication_keeps_no_other_replay_from_being_paced_and_is_awaited_before_a_cancellation(queries, job):
    published, cancelled = threading.Event(), []
    job.orders |= {"fix": _order(most_rps=5.0), "other": _order("other", most_rps=7.0)}

    def publish(order):
        published.wait(PATIENCE_S)

    replays = Replays(job, Replayable(lambda order: queries, publish, cancelled.append))
    replays.poll()
    queries[0].over = True
    for _ in range(3):
        replays.poll()
    assert _states(job) == ["read"]
    assert queries[1].rates[-1] == 7.0 and len(queries[1].rates) >= 2
    job.orders["fix"] = _order(wanted="cancel")
    replays.poll()
    assert not cancelled and _states(job)[-1] == "read"
    published.set()
    _poll_until(replays, job, "done")
    assert not cancelled and "before it could be cancelled" in job.outbox.of(ReplayProgress)[-1].reason
    replays.close()


@pytest.fixture
def copied():
    """A Replayable's start that goes on until it is told to end, and then starts a query, or fails."""
    going, queries = SimpleNamespace(begun=threading.Event(), over=threading.Event(), fails=False), []

    def start(order):
        if not order.table:
            return queries
        going.begun.set()
        going.over.wait(PATIENCE_S)
        if going.fails:
            raise OSError("no space left on device")
        return SimpleNamespace(stop=lambda: going.stopped.append(order.id), append=queries.append)

    going.start, going.queries, going.stopped = start, queries, []
    return going


def test_while_a_range_is_copied_other_replays_are_paced_and_it_is_said(queries, job, copied):
    job.orders |= {"old": _order("old", table="/lake/events"), "fix": _order()}
    job.replay_rps, job.heard_at = 20.0, time.monotonic()
    replays = Replays(job, Replayable(copied.start))
    for _ in range(3):
        replays.poll()
    copied.begun.wait(PATIENCE_S)
    replays.poll()
    assert [query.order.id for query in copied.queries] == ["fix"]
    assert copied.queries[0].rates[-1] == 20.0, "a range that is copied needs no rate yet"
    said = [one for one in job.outbox.of(ReplayProgress) if one.id == "old"][-1]
    assert (said.state, said.reason) == ("waiting", "its range is copied")
    copied.over.set()
    _poll_until(replays, job, "running", "old")
    assert [query.order.id for query in copied.queries] == ["fix", "old"] and not copied.stopped


@pytest.mark.parametrize("fails", [False, True])
def test_one_that_is_cancelled_while_its_range_is_copied_is_so_right_after(queries, job, copied, fails):
    cancelled = []
    job.orders["old"] = _order("old", table="/lake/events", most_rps=5.0)
    replays = Replays(job, Replayable(copied.start, cancel=lambda order: cancelled.append(order.id)))
    replays.poll()
    job.orders["old"], copied.fails = _order("old", table="/lake/events", wanted="cancel"), fails
    replays.poll()
    assert not cancelled
    copied.over.set()
    _poll_until(replays, job, "cancelled", "old")
    assert cancelled == ["old"] and [one.stopped for one in copied.queries] == ([] if fails else [True])


def test_at_its_end_what_has_been_copied_is_awaited_and_its_query_stopped(queries, job, copied):
    closed = []
    job.orders["old"] = _order("old", table="/lake/events", most_rps=5.0)
    replays = Replays(job, Replayable(copied.start, close=lambda: closed.append([*copied.stopped])))
    replays.poll()
    copied.begun.wait(PATIENCE_S)
    copied.over.set()
    replays.close()
    assert copied.stopped == ["old"] and closed == [["old"]], "who lets go first lets another one begin"


def test_a_publication_that_is_not_settled_is_called_again_and_says_why_until_then(queries, job, monkeypatch):
    monkeypatch.setattr(driver, "AGAIN_S", 0.05)
    left = ["3 windows wait", "1 window waits", ""]
    job.orders["fix"] = _order(most_rps=5.0)
    replays = Replays(job, Replayable(lambda order: queries, lambda order: left.pop(0)))
    replays.poll()
    queries[0].over = True
    _poll_until(replays, job, "done")
    reasons = [p.reason for p in job.outbox.of(ReplayProgress) if p.state == "read"]
    assert not left and [*dict.fromkeys(reasons)] == ["", "3 windows wait", "1 window waits"]


def test_one_that_is_read_and_paused_is_published_no_further_before_it_is_resumed(queries, job, monkeypatch):
    """As a gap at a peak, whose open windows are computed again every 20 s beside live records."""
    monkeypatch.setattr(driver, "AGAIN_S", 0.0)
    left, published = ["windows wait", ""], []

    def publish(order):
        published.append(order.wanted)
        return left[len(published) - 1]

    job.orders["fix"] = _order(most_rps=5.0, then="publish")
    replays = Replays(job, Replayable(lambda order: queries, publish))
    replays.poll()
    queries[0].over = True
    wait_until(lambda: replays.poll() or published, "its first round", every_s=0.001)
    job.orders["fix"] = _order(most_rps=5.0, wanted="pause")
    wait_until(lambda: replays.poll() or _states(job)[-1] != "read", "a word on that", every_s=0.001)
    for _ in range(3):
        replays.poll()
    said = job.outbox.of(ReplayProgress)[-1]
    assert (said.done, said.reason) == (100, "as ordered; all of it is read") and len(published) == 1
    assert replays.waiting() == [] and len(queries) == 1 and queries[0].stopped
    job.orders["fix"] = _order(most_rps=5.0)
    _poll_until(replays, job, "done")
    assert _states(job)[-4:] == ["read", "paused", "read", "done"] and published == ["run", "run"]


def test_a_compared_replay_says_what_differs_and_waits_until_it_is_to_be_published(queries, job):
    published = []
    replayable = Replayable(
        lambda order: queries, lambda order: published.append(order.id), compare=lambda order: "9 of 50"
    )
    job.orders |= {"fix": _order(then="compare"), "other": _order("other")}
    job.replay_rps, job.heard_at = 20.0, time.monotonic()
    replays = Replays(job, replayable)
    for _ in range(2):
        replays.poll()
    assert queries[1].rates[-1] == 10.0
    queries[0].over = True
    _poll_until(replays, job, "compared")
    replays.poll()
    assert queries[1].rates[-1] == 20.0, "who waits needs no rate"
    (said,) = [p for p in job.outbox.of(ReplayProgress) if p.state == "compared"]
    assert said.reason == "9 of 50" and not published and not job.outbox.of(ReplayOrder)
    job.orders["fix"] = _order()
    _poll_until(replays, job, "done")
    assert published == ["fix"] and _states(job)[-3:] == ["compared", "read", "done"]


def test_a_compared_replay_that_fails_is_read_and_compared_anew_once_it_is_resumed(queries, job):
    compared = []
    job.orders["fix"] = _order(then="compare", most_rps=5.0)

    def compare(order):
        compared.append(order.wall_time)
        return f"{len(compared)} differ"

    replays = Replays(job, Replayable(lambda order: queries, compare=compare))
    replays.poll()
    queries[0].over = True
    _poll_until(replays, job, "compared")
    queries[0].fails = "the JVM did not answer"
    _poll_until(replays, job, "failed")
    job.orders["fix"] = _order(then="compare", most_rps=5.0, wall_time=time.time() + 1.0)
    replays.poll()
    assert len(queries) == 2, "its query is begun"
    queries[1].over = True
    _poll_until(replays, job, "compared")
    assert job.outbox.of(ReplayProgress)[-1].reason == "2 differ" and len(compared) == 2


def test_a_compared_replay_is_cancelled_like_any_other_and_one_that_nobody_can_compare_is_refused(queries, job):
    cancelled = []
    replayable = Replayable(lambda order: queries, cancel=cancelled.append, compare=lambda order: "9 of 50")
    job.orders["fix"] = _order(then="compare", most_rps=5.0)
    replays = Replays(job, replayable)
    replays.poll()
    queries[0].over = True
    _poll_until(replays, job, "compared")
    job.orders["fix"] = _order(wanted="cancel", then="compare")
    replays.poll()
    assert [one.id for one in cancelled] == ["fix"] and _states(job)[-1] == "cancelled"

    job.orders = {"plain": _order("plain", then="compare")}
    Replays(job, Replayable(lambda order: queries)).poll()
    assert _states(job, "plain") == ["failed"] and len(queries) == 1
    assert "compare=" in job.outbox.of(ReplayProgress)[-1].reason


def test_a_rate_counts_as_long_as_whoever_decided_it_is_heard(queries, job):
    job.orders["fix"] = _order(most_rps=50.0)
    replays = Replays(job, Replayable(lambda order: queries))
    replays.poll()
    for decided, heard_s, admitted in ((None, 100, 50.0), (20.0, 0, 20.0), (80.0, 0, 50.0), (20.0, 100, 0.0)):
        job.replay_rps, job.heard_at = decided, time.monotonic() - heard_s
        replays.poll()
        assert queries[0].rates[-1] == admitted
    job.orders["fix"] = _order()
    job.replay_rps = None
    replays.poll()
    assert queries[0].rates[-1] == 0.0  # no rate was ordered and nobody decides one


def test_what_an_order_may_not_use_of_its_part_is_the_others(queries, job):
    """60/s by weights 1, 1 and 2: the first may have 5, so that 55 are left, of which the second gets a third."""
    job.orders |= {"fix": _order(most_rps=5.0), "other": _order("other"), "large": _order("large", weight=2.0)}
    job.replay_rps, job.heard_at = 60.0, time.monotonic()
    replays = Replays(job, Replayable(lambda order: queries))
    for _ in range(2):
        replays.poll()
    assert [query.rates[-1] for query in queries] == pytest.approx([5.0, 55 / 3, 110 / 3])


def test_one_that_is_to_wait_is_not_begun_beside_another_and_takes_nothing_of_its_rate(queries, job):
    job.orders["fix"] = _order()
    job.replay_rps, job.may_begin, job.heard_at = 60.0, frozenset({"fix"}), time.monotonic()
    replays = Replays(job, Replayable(lambda order: queries))
    for _ in range(2):
        replays.poll()
    job.orders["large"] = _order("large", weight=5.0)  # whoever decides has not heard of it
    for _ in range(2):
        replays.poll()
    assert [query.rates[-1] for query in queries] == [60.0] and _states(job, "large") == ["waiting"]
    job.may_begin = frozenset({"fix", "large"})
    for _ in range(2):
        replays.poll()
    assert [query.rates[-1] for query in queries] == [10.0, 50.0]
    job.may_begin = frozenset()  # once begun they are paced only
    replays.poll()
    assert [query.rates[-1] for query in queries] == [10.0, 50.0]


def test_a_query_is_started_once_it_has_a_rate_and_until_then_it_is_said_to_wait(queries, job):
    job.orders["fix"], job.replay_rps, job.heard_at = _order(cost=0.3), 0.0, time.monotonic()
    replays = Replays(job, Replayable(lambda order: queries))
    for _ in range(3):
        replays.poll()
    (said,) = job.outbox.of(ReplayProgress)
    assert queries == [] and (said.state, said.done, said.admitted_rps, said.cost) == ("waiting", 0, 0.0, 0.3)
    job.replay_rps = 40.0
    for _ in range(2):
        replays.poll()
    assert queries[0].rates == [40.0]
    job.replay_rps = 0.0  # once it has begun it is paced only
    replays.poll()
    assert queries[0].rates == [40.0, 0.0] and len(queries) == 1


def test_a_replay_begins_once_lives_first_batch_is_over(queries, job):
    job.orders["fix"] = _order(most_rps=5.0)
    live = SimpleNamespace(status={"isTriggerActive": False}, lastProgress=None)  # it is not yet
    replays = Replays(job, Replayable(lambda order: queries), live)
    for _ in range(3):
        replays.poll()
    assert queries == [] and _states(job) == ["waiting"]
    live.lastProgress = {"batchId": 0, "numInputRows": 0}  # Spark tells of the first look also where there was nothing
    replays.poll()
    assert len(queries) == 1


def test_tasks_wait_for_their_state_as_long_as_a_replay_runs(queries, job, monkeypatch):
    held = []
    monkeypatch.setattr(driver.StateWait, "hold", lambda self, wanted: held.append(wanted))
    job.orders["fix"] = _order(most_rps=5.0)
    replays = Replays(job, Replayable(lambda order: queries))
    replays.poll()
    queries[0].over = True
    _poll_until(replays, job, "done")
    assert held[0] is True and held[-1] is False
    replays.poll()
    replays.close()
    assert held[-2:] == [False, False]


def test_tasks_wait_for_no_state_while_a_replay_is_paused_or_the_agent_observes(queries, job, monkeypatch):
    held = []
    monkeypatch.setattr(driver.StateWait, "hold", lambda self, wanted: held.append(wanted))
    replays = Replays(job, Replayable(lambda order: queries))
    for wanted, mode, waits in (
        ("run", "act", True),
        ("pause", "act", False),
        ("run", "act", True),
        ("run", "observe", False),
    ):
        job.orders["fix"], job.mode = _order(most_rps=5.0, wanted=wanted), mode
        replays.poll()
        assert held[-1] is waits, (wanted, mode)


def test_at_its_end_all_queries_are_stopped_and_the_job_lets_go_though_one_of_them_fails(queries, job, monkeypatch):
    closed, held = [], []
    monkeypatch.setattr(driver.StateWait, "hold", lambda self, wanted: held.append(wanted))
    job.orders |= {"fix": _order(most_rps=5.0), "other": _order("other", most_rps=5.0)}
    replays = Replays(job, Replayable(lambda order: queries, close=lambda: closed.append(True)))
    replays.poll()

    def fail():
        raise TimeoutError("its query did not stop within spark.sql.streaming.stopTimeout")

    stops = [query.stop for query in queries]
    for failing, other in ((0, 1), (1, 0)):
        queries[failing].stop, queries[other].stop, queries[other].stopped = fail, stops[other], False
        with pytest.raises(TimeoutError):
            replays.close()
        assert queries[other].stopped
    assert closed == [True, True] and held[-2:] == [False, False]


def test_an_autoscaler_that_is_heard_has_its_chance_before_the_ordered_rate_counts(queries, job, monkeypatch):
    job.orders["fix"], job.heard_at = _order(most_rps=50.0), time.monotonic()
    replays = Replays(job, Replayable(lambda order: queries))
    for _ in range(2):
        replays.poll()
    assert queries == []
    monkeypatch.setattr(rates, "CHANCE_S", 0.0)
    for _ in range(2):
        replays.poll()
    assert queries[0].rates == [50.0]


def test_progress_is_said_when_it_changes_not_at_every_poll(queries, job):
    job.orders["fix"] = _order(most_rps=5.0)
    replays = Replays(job, Replayable(lambda order: queries))
    for _ in range(20):
        replays.poll()
    assert len(job.outbox.of(ReplayProgress)) == 1
    queries[0].newest = None
    replays.poll()
    assert _states(job) == ["running", "waiting"]


def test_an_order_that_is_done_is_never_met_and_one_that_is_cancelled_before_its_start_cleans_up(queries, job):
    cancelled = []
    job.orders |= {"old": _order("old", wanted="done"), "fix": _order(wanted="cancel")}
    replays = Replays(job, Replayable(lambda order: queries, cancel=lambda order: cancelled.append(order.id)))
    replays.poll()
    replays.poll()
    assert (queries, cancelled) == ([], ["fix"]) and _states(job) == ["cancelled"] and _states(job, "old") == []


def test_what_stays_of_a_cancelled_replay_is_said(queries, job):
    left = {"cut": "some of it is there", "whole": "", "removed": ["a", "b"]}  # the last one is a user's own
    job.orders = {name: _order(name, wanted="cancel") for name in left}
    Replays(job, Replayable(lambda order: queries, cancel=lambda order: left[order.id])).poll()
    said = {one.id: one.reason for one in job.outbox.of(ReplayProgress)}
    assert said == {"cut": "as ordered; some of it is there", "whole": "as ordered", "removed": "as ordered"}
    assert all(_states(job, name) == ["cancelled"] for name in left)


def test_a_range_of_another_topic_than_the_job_reads_fails_and_one_of_a_table_is_the_tables(queries, job):
    strange = {"starts": {"clicks": {"0": 0}}, "ends": {"clicks": {"0": 100}}}
    job.orders = {"fix": _order(most_rps=50.0, **strange)}
    Replays(job, Replayable(lambda order: queries)).poll()
    assert not queries and _states(job) == ["failed"]
    said = job.outbox.of(ReplayProgress)[-1].reason
    assert "the job reads events, the range is of clicks" in said and "--topic" in said
    job.orders = {"old": _order("old", most_rps=50.0, table="/lake/clicks", **strange)}
    of_table = Replays(job, Replayable(lambda order: queries))
    _poll_until(of_table, job, "running", "old")
    assert len(queries) == 1
    job.topics, job.orders = (), {"new": _order("new", most_rps=50.0, **strange)}  # before its first batch
    Replays(job, Replayable(lambda order: queries)).poll()
    assert len(queries) == 2


BOTH = {"starts": {"events": {"0": 0}, "refunds": {"0": 7}}, "ends": {"events": {"0": 100}, "refunds": {"0": 7}}}
"""A range of two topics; of one of them there is nothing in it."""


def test_a_range_that_leaves_out_a_topic_of_the_job_fails_also_of_a_table_or_compared_and_one_of_all_does_not(
    queries, job
):
    job.topics, replayable = ("events", "refunds"), Replayable(lambda order: queries, compare=lambda order: "")
    for one in ({}, {"table": "/lake/events"}, {"then": "compare"}):
        job.orders = {"fix": _order(most_rps=50.0, **one)}
        replays = Replays(job, replayable)
        for _ in range(2):
            replays.poll()
        said = job.outbox.of(ReplayProgress)[-1]
        assert said.state == "failed" and not queries
        assert said.reason.startswith("the job reads events, refunds, the range leaves out refunds, without whose")
        assert "order it again with --topic events --topic refunds, or with Topic events,refunds in the" in said.reason
    renamed = {"starts": {"old": {"0": 0}}, "ends": {"old": {"0": 100}}, "table": "/lake/old"}
    job.orders = {"old": _order("old", most_rps=50.0, **renamed), "all": _order("all", most_rps=50.0, **BOTH)}
    replays = Replays(job, replayable)
    for _ in range(2):
        replays.poll()
    assert _states(job, "old") == ["failed"] and len(queries) == 1 and _states(job, "all")[-1] == "running"


def test_the_gap_of_an_outage_has_the_topics_that_the_job_read_then_and_is_filled(queries, job):
    job.topics, job.orders["gap-1"] = ("events", "since"), _gap(most_rps=50.0)
    replays = Replays(job, Replayable(lambda order: queries))
    for _ in range(2):
        replays.poll()
    assert len(queries) == 1 and _states(job, "gap-1")[-1] == "running"


def test_one_that_had_begun_goes_on_with_the_topics_of_its_order_though_a_pattern_matches_another_one_since(
    queries, job
):
    """After a restart; what never began is to be ordered with all of them."""
    job.topics = ("events", "since")
    job.orders = {name: _order(name, most_rps=5.0) for name in ("killed", "fresh")}
    replays = Replays(job, Replayable(lambda order: queries, begun=lambda name: name == "killed"))
    for _ in range(2):
        replays.poll()
    assert _states(job, "killed") == ["running"] and [query.order.id for query in queries] == ["killed"]
    said = [one for one in job.outbox.of(ReplayProgress) if one.id == "fresh"][-1]
    assert said.state == "failed" and "leaves out since" in said.reason


def test_of_a_job_that_reads_a_pattern_its_first_batch_says_which_topics_a_range_is_to_have(queries, job):
    """The thread that tells the job's batches may come to it later than the one that begins replays."""
    job.topics, job.orders = (), {"fix": _order(most_rps=5.0), "all": _order("all", most_rps=5.0, **BOTH)}
    live = SimpleNamespace(status={"isTriggerActive": False}, lastProgress=None)
    replays = Replays(job, Replayable(lambda order: queries), live)
    for _ in range(2):
        replays.poll()
    assert queries == [] and _states(job) == ["waiting"]
    of_files = {"endOffset": '{"logOffset":3}'}
    live.lastProgress = {"batchId": 0, "sources": [of_files, {"endOffset": '{"events":{"0":9},"refunds":{"0":7}}'}]}
    for _ in range(2):
        replays.poll()
    said = [one for one in job.outbox.of(ReplayProgress) if one.id == "fix"][-1]
    assert _states(job) == ["waiting", "failed"] and "leaves out refunds" in said.reason
    assert len(queries) == 1 and _states(job, "all")[-1] == "running"


def test_an_order_that_the_job_cannot_meet_is_cancelled_like_any_other(queries, job):
    job.orders["fix"] = _order(wall_time=1.0)
    replays = Replays(job, None)
    replays.poll()
    job.orders["fix"] = _order(wall_time=2.0, wanted="cancel")
    for _ in range(2):
        replays.poll()
    assert _states(job) == ["failed", "cancelled"] and "without replay=" in job.outbox.of(ReplayProgress)[-1].reason
    assert [one.wanted for one in job.outbox.of(ReplayOrder)] == ["done"]


def test_a_replay_is_cancelled_also_while_the_agent_observes_but_not_before_it_knows_that_nothing_is_ordered_since(
    queries, job
):
    cancelled = []
    job.orders["fix"] = _order(most_rps=5.0)
    replays = Replays(job, Replayable(lambda order: queries, cancel=cancelled.append))
    replays.poll()
    job.mode = "observe"
    job.orders["fix"] = _order(wanted="cancel")
    replays.poll()
    assert not cancelled and not queries[0].stopped and not job.outbox.of(ReplayOrder)
    job.orders_read = True
    for _ in range(2):
        replays.poll()
    assert [one.id for one in cancelled] == ["fix"] and queries[0].stopped and _states(job)[-1] == "cancelled"
    assert [one.wanted for one in job.outbox.of(ReplayOrder)] == ["done"] and len(queries) == 1
