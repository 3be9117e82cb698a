from dataclasses import replace

from models.policy.live.learned_lead import read_start
from tidecast.control import WALL, Clock
from tidecast.messages import Decision, decode, encode
from tidecast.outcomes import LEAST_S, MOST_S, USE_S, Tracker, patience_s
from tidecast.spark.progress import Batch

T = 1_700_000_000.0


def decision(executors, id="d1", at=T):
    return Decision(id, "orders", at, at, 1.0, "act", "reactive", executors, "why", [], {}, {"capacity_rps": 300.0})


def batch(finished, rows=100, batch_id=1):
    return Batch(batch_id, "r", finished, 1.0, rows, {}, {}, {}, finished)


def test_a_scale_up_is_confirmed_when_a_batch_has_used_it():
    tracker = Tracker()
    tracker.observe_batch(batch(T - 1), set(), 50)
    assert tracker.track(decision(3), ["0"], 50, T + 0.1, WALL) == []
    assert tracker.observe_executors(["0", "1"], [], T + 1, WALL) == []
    assert tracker.observe_executors(["0", "1", "2"], [], T + 2, WALL) == []
    tracker.observe_batch(batch(T + 2.5), {"0"}, 90)  # this one was under way before they came
    assert tracker.observe_executors(["0", "1", "2"], [], T + 3, WALL) == []
    tracker.observe_batch(batch(T + 4.5, rows=260), {"0", "2"}, 20)
    (done,) = tracker.observe_executors(["0", "1", "2"], [], T + 4.6, WALL)
    assert (done.status, done.decision_id, done.target) == ("confirmed", "d1", 3)
    assert (done.decided_at, done.applied_at, done.confirmed_at, done.useful_at) == (T, T + 0.1, T + 2, T + 4.5)
    assert (done.executors_before, done.executors_after) == (1, 3)
    assert done.expected == {"capacity_rps": 300.0}
    assert done.observed["processed_rps_before"] == 100.0
    assert done.observed["processed_rps_after"] == 260.0
    assert (done.observed["lag_records_before"], done.observed["lag_records_after"]) == (50, 20)
    assert tracker.observe_executors(["0", "1", "2"], [], T + MOST_S + 9, WALL) == []  # said once
    assert decode(type(done), encode(done)) == done


def test_a_scale_down_is_confirmed_when_they_are_gone():
    tracker = Tracker()
    tracker.track(decision(1), ["0", "1", "2"], None, T, WALL)
    assert tracker.observe_executors(["0"], ["1", "2"], T + 1, WALL) == []
    assert not tracker.awaits_use()
    (done,) = tracker.observe_executors(["0"], [], T + 2, WALL)
    assert (done.status, done.confirmed_at, done.useful_at) == ("confirmed", T + 2, None)


def test_what_does_not_come_is_found_ineffective():
    tracker = Tracker()
    tracker.track(decision(4), ["0"], None, T, WALL)
    assert tracker.observe_executors(["0", "1"], [], T + 60, WALL) == []
    (said,) = tracker.observe_executors(["0", "1"], [], T + 61, WALL)
    assert said.status == "ineffective"
    assert "2 executors 61 s after 4 were asked for" in said.reason
    assert (said.observed["waited_s"], said.observed["censored"], said.observed["patience_s"]) == (61, True, 60)
    assert tracker.observe_executors(["0", "1"], [], T + MOST_S, WALL) == []  # said once, and looked for on
    (last,) = tracker.observe_executors(["0", "1"], [], T + MOST_S + 1, WALL)
    assert (last.status, last.observed["waited_s"], last.observed["censored"]) == ("ineffective", MOST_S + 1, True)
    assert tracker.observe_executors(["0", "1", "2", "3"], [], T + MOST_S + 2, WALL) == []


def test_executors_that_come_late_are_confirmed_late_and_teach_patience():
    tracker = Tracker()
    tracker.track(decision(2), ["0"], None, T, WALL)
    (said,) = tracker.observe_executors(["0"], [], T + 100, WALL)
    assert said.status == "ineffective"
    assert tracker.observe_executors(["0", "1"], [], T + 200, WALL) == []
    tracker.observe_batch(batch(T + 205), {"1"}, 0)
    (done,) = tracker.observe_executors(["0", "1"], [], T + 206, WALL)
    assert (done.decision_id, done.status, done.confirmed_at) == (said.decision_id, "confirmed", T + 200)
    assert (done.observed["waited_s"], done.observed["censored"], done.observed["late"]) == (200, False, True)
    assert decode(type(done), encode(done)) == done
    tracker.track(decision(3, "d2", T + 300), ["0", "1"], None, T + 300, WALL)
    assert tracker.observe_executors(["0", "1"], [], T + 300 + 799, WALL) == []  # 4 times 200 s
    (second,) = tracker.observe_executors(["0", "1"], [], T + 300 + 801, WALL)
    assert second.observed["patience_s"] == 800


def test_patience_follows_slow_starts_within_bounds():
    assert patience_s([]) == 60
    assert patience_s([2.0] * 8) == 60  # nine of ten, the prior among them, say little of the slowest
    assert patience_s([2.0] * 20) == LEAST_S
    assert patience_s([20.0] * 18 + [50.0]) == 80
    assert patience_s([20.0] * 10 + [50.0] * 10) == 200
    assert patience_s([400.0]) == 1600.0 and patience_s([1e4]) == MOST_S


def test_executors_that_no_batch_uses_are_ineffective():
    tracker = Tracker()
    tracker.track(decision(2), ["0"], None, T, WALL)
    tracker.observe_executors(["0", "1"], [], T + 2, WALL)
    tracker.observe_batch(batch(T + 10), {"0"}, 0)
    (done,) = tracker.observe_executors(["0", "1"], [], T + 2 + LEAST_S + 1, WALL)
    assert (done.status, done.confirmed_at) == ("ineffective", T + 2)
    assert "no batch" in done.reason
    assert (done.observed["waited_s"], done.observed["censored"]) == (2, False)  # they came, and when is known


def test_a_batch_that_began_before_they_came_is_no_reason_to_give_up():
    tracker = Tracker()
    tracker.track(decision(2), ["0"], None, T, WALL)
    tracker.observe_executors(["0", "1"], [], T + 2, WALL)
    assert tracker.observe_executors(["0", "1"], [], T + LEAST_S + 9, WALL) == []
    tracker.observe_batch(replace(batch(T + 45), batch_s=44.5), {"0"}, 900)  # it began at T + 0.5
    assert tracker.observe_executors(["0", "1"], [], T + 46, WALL) == []
    tracker.observe_batch(batch(T + 50), {"0", "1"}, 100)
    (done,) = tracker.observe_executors(["0", "1"], [], T + 50, WALL)
    assert (done.status, done.useful_at) == ("confirmed", T + 50)


def test_long_batches_that_pass_new_executors_over_are_waited_for_three_times():
    tracker = Tracker()
    tracker.track(decision(2), ["0"], None, T, WALL)
    tracker.observe_executors(["0", "1"], [], T + 2, WALL)
    tracker.observe_batch(replace(batch(T + 23), batch_s=20.0), {"0"}, 900)  # it began at T + 3
    assert tracker.observe_executors(["0", "1"], [], T + 2 + LEAST_S + 1, WALL) == []
    (done,) = tracker.observe_executors(["0", "1"], [], T + 2 + 3 * 20 + 1, WALL)
    assert (done.status, done.reason) == ("ineffective", "the executors came, but no batch has used them within 63 s")


def test_without_any_batch_the_verdict_comes_all_the_same():
    tracker = Tracker()
    tracker.track(decision(2), ["0"], None, T, WALL)
    tracker.observe_executors(["0", "1"], [], T + 2, WALL)
    (done,) = tracker.observe_executors(["0", "1"], [], T + 2 + USE_S + 1, WALL)
    assert (done.status, done.reason) == ("ineffective", "the executors came, but no batch has used them within 123 s")


def test_a_wish_for_more_does_not_end_the_one_before():
    tracker = Tracker()
    tracker.track(decision(2), ["0"], None, T, WALL)
    assert tracker.track(decision(3, "d2", T + 1), ["0"], None, T + 1, WALL) == []
    tracker.observe_executors(["0", "1"], [], T + 2, WALL)
    tracker.observe_batch(batch(T + 3), {"1"}, 0)
    (first,) = tracker.observe_executors(["0", "1"], [], T + 3, WALL)
    assert (first.decision_id, first.status) == ("d1", "confirmed")
    assert "d2" in first.reason
    (second,) = tracker.observe_executors(["0", "1", "2"], [], T + 4, WALL)
    assert (second.decision_id, second.status) == ("d2", "confirmed")


def test_a_wish_for_the_contrary_supersedes():
    tracker = Tracker()
    tracker.track(decision(3), ["0"], None, T, WALL)
    (first,) = tracker.track(decision(1, "d2", T + 1), ["0"], None, T + 1, WALL)
    assert (first.decision_id, first.status) == ("d1", "ineffective")
    assert "superseded after 1.0 s by d2" in first.reason
    assert (first.observed["waited_s"], first.observed["censored"]) == (1, True)
    (second,) = tracker.observe_executors(["0"], [], T + 2, WALL)
    assert (second.decision_id, second.status) == ("d2", "confirmed")


def test_a_raise_that_lowers_another_one_says_nothing_of_how_long_its_executors_take():
    """They were asked for before, and come sooner than its own would."""
    tracker, four = Tracker(), ["0", "1", "2", "3"]
    tracker.track(decision(8), four, None, T, WALL)
    (first,) = tracker.track(decision(6, "d2", T + 360), four, None, T + 360, WALL)
    assert (first.status, read_start(vars(first)).seconds, read_start(vars(first)).censored) == (
        "ineffective",
        360,
        True,
    )
    six = [*four, "4", "5"]
    assert tracker.observe_executors(six, [], T + 600, WALL) == []
    tracker.observe_batch(batch(T + 610), six, None)
    (second,) = tracker.observe_executors(six, [], T + 611, WALL)
    assert (second.status, second.observed["asked_before"], read_start(vars(second))) == ("confirmed", True, None)
    assert second.observed["patience_s"] == patience_s([])
    tracker.track(decision(7, "d3", T + 700), six, None, T + 700, WALL)
    tracker.observe_executors([*six, "6"], [], T + 760, WALL)
    tracker.observe_batch(batch(T + 770), [*six, "6"], None)
    (third,) = tracker.observe_executors([*six, "6"], [], T + 771, WALL)
    assert read_start(vars(third)).seconds == 70 and third.observed["patience_s"] == patience_s([60.0])


def test_outcomes_carry_the_jobs_own_time():
    tracker, clock = Tracker(), Clock(T, 5000.0, 720.0)
    tracker.track(replace(decision(1), time=4000.0), ["0", "1"], None, T, clock)
    (done,) = tracker.observe_executors(["0"], [], T + 2, clock)
    assert (done.time, done.wall_time, done.time_scale) == (5000.0 + 1440.0, T + 2, 720.0)
