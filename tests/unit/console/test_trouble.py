"""What is wrong with a job, the worst first."""

import pytest

from pipelines.bench.team.console.records import NOW, batch, beat, contract, decision, interval, word
from pipelines.console.read.fold import Model, fold
from pipelines.console.trouble import BLIND, BROKEN, BURNING, FINE, LATE, NOTED, worst_trouble

STANDING = {"late_s": 600.0, "seconds": 604_800.0, "budget_left": 0.9, "burn_long": 0.5, "burn_short": 0.5}


def trouble(*records, after=1.0):
    return worst_trouble(fold(Model(), records, NOW + 3600).jobs["orders"], NOW + after)


def healthy(**said):
    return [contract("orders"), interval("orders", NOW), batch("orders", NOW), beat("orders", NOW),
            decision("orders", NOW, promise={**STANDING, **said}, metric_wall_time=NOW)]  # fmt: skip


def test_nothing_is_wrong():
    assert trouble(*healthy()) == (FINE, "")


@pytest.mark.parametrize(
    ("records", "rank", "words"),
    [
        (healthy(late_s=7257.6), BROKEN, "promise broken, 20 % over budget"),
        (healthy(burn_long=7.0, burn_short=40.0), BURNING, "budget burns 7 times as fast as allowed"),
        (healthy(burn_long=5.0, burn_short=90.0), FINE, ""),
        ([*healthy(), batch("orders", NOW + 1, 6.5)], LATE, "late: 6.5 s, promised 5 s"),
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


def test_an_agent_that_does_not_follow_a_word_is_worth_a_look_after_half_a_minute():
    told = [*healthy(), word("orders", NOW - 60, "freeze")]
    assert trouble(*told) == (NOTED, "told to freeze, its agent is in act")
    assert trouble(*healthy(), word("orders", NOW - 5, "freeze")) == (FINE, "")


def test_all_executors_and_a_budget_that_goes_too_fast():
    most = [*healthy(burn_long=2.0, burn_short=2.0), interval("orders", NOW + 1, executors=8)]
    assert trouble(*most) == (NOTED, "has all the executors that it may have")
