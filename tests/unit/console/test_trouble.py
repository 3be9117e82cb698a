"""What is wrong with a job, the worst first."""

import json
from dataclasses import replace

import pytest

from pipelines.bench.team.console.records import NOW, batch, beat, contract, decision, interval, record, word
from pipelines.console.read.fold import ReadModel, fold
from pipelines.console.trouble import BLIND, BROKEN, BURNING, FINE, LATE, NOTED, worst_trouble
from pipelines.scale.processor import Scaler
from tidecast.messages import Reject

STANDING = {"late_s": 600.0, "seconds": 604_800.0, "budget_left": 0.9, "burn_long": 0.5, "burn_short": 0.5}


def trouble(*records, after=1.0):
    return worst_trouble(fold(ReadModel(), records, NOW + max(after, 3600.0)).jobs["orders"], NOW + after)


def healthy(**said):
    return [contract("orders"), interval("orders", NOW), batch("orders", NOW), beat("orders", NOW),
            decision("orders", NOW, promise={**STANDING, **said}, metric_wall_time=NOW)]  # fmt: skip


def test_nothing_is_wrong():
    assert trouble(*healthy()) == (FINE, "")


@pytest.mark.parametrize(
    ("records", "rank", "words"),
    [
        (healthy(late_s=7257.6), BROKEN, "promise broken, 20 % over budget"),
        (healthy(late_s=6048.0 * 1.004), BROKEN, "promise broken, 0.4 % over budget"),
        (healthy(late_s=6048.0 * 1.0004), BROKEN, "promise broken, under 0.1 % over budget"),
        (healthy(burn_long=7.0, burn_short=40.0), BURNING, "budget burns 7 times as fast as allowed"),
        (healthy(burn_long=5.0, burn_short=90.0), FINE, ""),
        ([*healthy(), batch("orders", NOW + 1, 6.5)], LATE, "late: 6.5 s, promised 5 s"),
        ([*healthy(), batch("orders", NOW + 1, 5.01)], LATE, "late: 5.1 s, promised 5 s"),
        (healthy()[:3], BLIND, "no autoscaler heard"),
        (healthy()[:1], BLIND, "no metrics"),
        (healthy()[1:4], NOTED, "no contract: nothing is decided for it"),
    ],
)
def test_each_kind_of_trouble(records, rank, words):
    assert trouble(*records) == (rank, words)


def test_the_budget_of_a_lenient_promise_is_fast_at_half_of_the_seconds():
    lenient = [contract("orders", error_budget=0.25), *healthy(burn_long=2.5, burn_short=2.5)[1:]]
    assert trouble(*lenient).rank == BURNING


def test_silence_is_told_by_its_length():
    assert trouble(*healthy(), after=45) == (BLIND, "no metrics for 45 s")
    assert trouble(*healthy(), after=7200) == (BLIND, "no metrics for 2 h")


def test_of_what_is_worse_or_without_a_contract_it_is_said_too_that_its_figures_are_old():
    assert trouble(*healthy(late_s=7257.6), after=7200) == (
        BROKEN,
        "promise broken, 20 % over budget; no metrics for 2 h",
    )
    without = trouble(*healthy()[1:4], after=7200)
    assert without == (NOTED, "no contract: nothing is decided for it; no metrics for 2 h")


def test_a_job_that_nothing_was_heard_of_for_a_week_is_over_unless_its_autoscaler_lives():
    week, broken = 7 * 86_400, healthy(late_s=7257.6)
    assert trouble(*broken, after=week - 60).rank == BROKEN
    assert trouble(*broken, after=34 * 86_400) == (FINE, "not heard of for 34 d")
    assert trouble(contract("orders"), after=week).rank == FINE, "accepted an hour before, and never started"
    assert trouble(*broken[:3], beat("orders", NOW + week), after=week + 9) == (BLIND, "no metrics for 7 d")
    assert trouble(*broken[1:3], word("orders", NOW + week, "act"), after=week + 9).rank == NOTED


def test_an_agent_that_does_not_follow_a_word_is_worth_a_look_after_half_a_minute():
    told = [*healthy(), word("orders", NOW - 60, "freeze")]
    assert trouble(*told) == (NOTED, "told to freeze, its agent is in act")
    assert trouble(*healthy(), word("orders", NOW - 5, "freeze")) == (FINE, "")


def test_live_records_that_cannot_be_held_back_are_worth_a_look_where_the_contract_asks_for_it():
    told = interval("orders", NOW + 1, cannot_hold="source Rate[it] takes no limit: read a topic instead")
    asks = contract("orders", backpressure={"controls": {"live_rps": {}}})
    words = "live records cannot be held back: `tidecast job show orders` says why"
    assert trouble(asks, *healthy()[1:], told) == (NOTED, words)
    assert trouble(*healthy(), told) == trouble(asks, *healthy()[1:]) == (FINE, "")


def test_all_executors_and_a_budget_that_goes_too_fast():
    most = [*healthy(burn_long=2.0, burn_short=2.0), interval("orders", NOW + 1, executors=8)]
    assert trouble(*most) == (NOTED, "has all the executors that it may have")


def refused(job, at):
    """What the autoscaler says when a job without a contract sends metrics."""
    row = {"topic": "metrics", "partition": 0, "offset": 0, "value": interval(job, at).value}
    _, sent = Scaler(job, None, "mpc", "act").step(None, [row], at, at)
    return [record(topic, key, message) for topic, key, message in sent]


def test_a_late_batch_makes_nothing_late_once_the_input_rests():
    """No further batch comes then that would say so."""
    late = [*healthy(), batch("orders", NOW + 1, 6.5)]

    def resting(at, rps=0.0, lag=0):
        return interval("orders", NOW + at, arrival_rps=rps, lag_records=lag)

    assert trouble(*late, resting(2), after=2) == (FINE, "")
    assert trouble(*late, resting(2), batch("orders", NOW + 3, 7.5), after=3).rank == LATE
    assert trouble(*late, resting(2, rps=1.0), after=2).rank == trouble(*late, resting(2, lag=1), after=2).rank == LATE
    assert trouble(*late, resting(0.5), after=2).rank == LATE


def test_a_running_job_whose_contract_was_removed_is_worth_a_look_and_promises_nothing():
    gone = [*healthy(late_s=7257.6), *refused("orders", NOW + 1), interval("orders", NOW + 60)]
    assert trouble(*gone, after=61) == (NOTED, "no contract: nothing is decided for it")
    assert fold(ReadModel(), gone, NOW + 61).jobs["orders"].standing() == {}


def test_a_contract_that_is_accepted_again_or_an_autoscaler_that_decides_puts_it_in_force_again():
    gone, known = [*healthy(), *refused("orders", NOW + 1)], contract("orders")
    again = replace(known, value=json.dumps({**json.loads(known.value), "wall_time": NOW + 9}).encode())
    assert trouble(*gone).rank == NOTED
    assert trouble(*gone, again) == trouble(*gone, beat("orders", NOW + 9)) == (FINE, "")


def test_what_else_was_refused_says_nothing_of_a_contract():
    by_serving = Reject("metrics", 0, 7, "serving", "job 'orders' has no contract; add one", "{}", NOW + 1)
    other = Reject("metrics", 0, 7, "autoscaler", "kind='orders' has no contract; ", "{}", NOW + 1)
    said = [record("rejects", "metrics", one) for one in (by_serving, other)]
    assert trouble(*healthy(), *said, *refused("rides", NOW + 1)) == (FINE, "")
    assert fold(ReadModel(), [*refused("rides", NOW), record("rejects", "metrics", b"{")], NOW) == ReadModel(refused=1)
