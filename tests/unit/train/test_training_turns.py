"""Who is trained first where there may not be the time for all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.train.turns import longest_waiting_first

JOBS = ("clicks", "orders", "rides", "views")


def test_a_drifted_load_comes_first_then_who_was_never_trained_then_the_longest_ago():
    trained = {"clicks": 300.0, "orders": 100.0, "views": 200.0}
    assert longest_waiting_first(JOBS, {"clicks"}, lambda: trained) == ["clicks", "rides", "orders", "views"]
    assert longest_waiting_first(JOBS, (), dict) == [*JOBS]


@pytest.mark.parametrize("jobs", [[], ["orders"]])
def test_where_there_is_nothing_to_order_nobody_is_asked(jobs):
    assert longest_waiting_first(jobs, (), lambda: pytest.fail("asked")) == jobs


@given(st.integers(2, 30), st.integers(1, 30), st.data())
def test_however_few_each_run_has_time_for_all_are_trained_in_turn(jobs, at_once, data):
    names, trained = [f"job{n}" for n in range(jobs)], dict[str, float]()
    runs = -(-jobs // at_once)
    for run in range(2 * runs):
        asked = data.draw(st.permutations(names))
        trained |= dict.fromkeys(longest_waiting_first(asked, (), trained.copy)[:at_once], 1.0 + run)
        if run + 1 >= runs:
            assert {*trained} == {*names} and min(trained.values()) > run + 1 - runs
