import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.twin.experiment.frontier import least_cost_at, pareto_frontier
from models.twin.experiment.tuning import narrow_knobs, refine_knobs


def test_a_point_that_another_beats_in_both_is_not_on_the_frontier():
    share, paid = pareto_frontier(np.array([0.1, 0.01, 0.02]), np.array([5.0, 8.0, 9.0]))
    assert share.tolist() == [0.01, 0.1] and paid.tolist() == [8.0, 5.0]


def test_near_points_are_joined_over_the_logarithm():
    assert least_cost_at(np.array([0.001, 0.01]), np.array([20.0, 10.0]), 10**-2.5) == pytest.approx(15)


def test_between_points_far_apart_nothing_is_promised_that_taking_turns_would_not_give():
    share, paid = np.array([0.0, 0.5]), np.array([100.0, 20.0])
    assert least_cost_at(share, paid, 0.01) == pytest.approx(100 - 80 * 0.02)


def test_a_promise_that_was_never_kept_has_no_price_and_a_looser_one_has_the_lowest():
    share, paid = np.array([0.01, 0.1]), np.array([20.0, 10.0])
    assert np.isnan(least_cost_at(share, paid, 0.001))
    assert least_cost_at(share, paid, 0.5) == 10


WIDE = np.array([0.3, 0.5, 0.7, 0.9, 1.1])


@pytest.mark.parametrize("falling", [False, True])
def test_most_knob_values_lie_where_the_violation_passes(falling):
    share = np.array([0.0, 0.0, 0.0001, 0.05, 0.5])
    found = narrow_knobs(WIDE, share[::-1] if falling else share, 8)
    inner = (0.45, 0.75) if falling else (0.65, 0.95)
    assert len(found) == 8 and (np.diff(found) > 0).all()
    assert ((found > inner[0]) & (found < inner[1])).sum() >= 6


def test_further_values_aim_at_the_compared_violations_of_which_least_is_known():
    knobs, share = np.array([0.5, 0.7, 0.9]), np.array([0.0001, 0.001, 0.1])
    # 0.1 % is there; 1 % lies half-way between 0.7 and 0.9 over the logarithm; then 5 %, seven tenths from there on
    assert refine_knobs(knobs, share, 2) == pytest.approx([0.8, 0.8 + 0.1 * np.log10(5)])


@pytest.mark.parametrize("turn", [1, -1])
def test_the_level_farthest_from_what_is_known_comes_first(turn):
    knobs, share = np.array([1.0, 2.0, 3.0]), np.array([0.00001, 0.009, 0.06])[::turn]
    assert turn * refine_knobs(knobs, share, 1)[0] < turn * 2  # 0.1 %; 1 % and 5 % are nearly there


def test_what_no_value_reaches_is_not_aimed_for():
    knobs, share = np.array([1.0, 2.0, 3.0]), np.array([0.0001, 0.0002, 0.0008])
    assert refine_knobs(knobs, share, 1) == pytest.approx([2.5])  # the widest gap instead


@given(st.lists(st.floats(0, 1), min_size=3, max_size=9), st.integers(3, 9))
def test_knob_values_stay_within_the_sweep(violation, count):
    wide = np.linspace(0.2, 2.0, len(violation))
    for found in (narrow_knobs(wide, np.array(violation), count), refine_knobs(wide, np.array(violation), count)):
        assert len(found) == count and (found >= 0.2 - 1e-9).all() and (found <= 2.0 + 1e-9).all()
