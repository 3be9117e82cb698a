"""The relief ladder: entered in order, left in reverse."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from models.contract.relief import Relief, ReliefStep, advance

FOOT = Relief()


def climbed(ratios, top=ReliefStep.SHED, relief=FOOT, passed=()):
    steps = []
    for ratio in ratios:
        relief = advance(relief, ratio, top, passed)
        steps.append(relief.step)
    return steps


def test_two_intervals_a_fifth_over_a_limit_lead_onto_it():
    assert climbed([1.2, 1.2]) == [0, 1]
    assert climbed([1.5, 1.0, 1.5, 1.5]) == [0, 0, 0, 1]
    assert climbed([1.19] * 9) == [0] * 9


def test_it_is_climbed_in_order_while_a_limit_stays_violated():
    assert climbed([1.3] * 14) == [0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 6]
    assert climbed([1.3, 1.3, *[1.01] * 4]) == [0, 1, 1, 2, 2, 3]
    assert climbed([1.3] * 14, top=ReliefStep.THROTTLE)[-1] == 5


def test_it_is_left_in_reverse_once_there_is_room():
    assert climbed([0.5] * 7, relief=Relief(3)) == [3, 2, 2, 1, 1, 0, 0]


def test_it_is_left_more_slowly_where_limits_are_kept_without_room():
    assert climbed([0.95] * 13, relief=Relief(3)) == [3] * 5 + [2] * 6 + [1] * 2
    assert climbed([1.0] * 6, relief=Relief(1))[-1] == 0
    assert climbed([0.5, 0.95, 0.95, 0.5], relief=Relief(3)) == [3, 3, 3, 2]
    assert climbed([*[0.95] * 5, 1.01, *[0.95] * 5], relief=Relief(3)) == [3] * 11


def test_steps_without_effect_are_passed_over_on_both_ways():
    both = {ReliefStep.MAINTENANCE, ReliefStep.THETA}
    assert climbed([1.3] * 10, passed=both) == [0, 1, 1, 4, 4, 5, 5, 6, 6, 6]
    assert climbed([1.3] * 6, passed={ReliefStep.THETA}) == [0, 1, 1, 2, 2, 4]
    assert climbed([0.5] * 6, relief=Relief(5), passed=both) == [5, 4, 4, 1, 1, 0]
    assert climbed([1.3] * 4, top=ReliefStep.THETA, relief=Relief(1), passed=both) == [1] * 4  # none above it is open
    assert climbed([0.5] * 2, relief=Relief(3), passed=both) == [3, 1]  # it had an effect when it was taken


def test_what_is_not_read_changes_nothing():
    assert advance(Relief(2, 1, 0), None, ReliefStep.SHED) == Relief(2, 1, 0)


def test_a_job_above_the_highest_step_stays_until_it_has_room():
    assert climbed([2.0] * 4, top=ReliefStep.THROTTLE, relief=Relief(6)) == [6] * 4
    assert climbed([0.5, 0.5], top=ReliefStep.THROTTLE, relief=Relief(6)) == [6, 5]


@given(st.lists(st.none() | st.floats(0, 10), max_size=60), st.sampled_from(ReliefStep))
def test_one_step_at_a_time_and_never_above_the_top(ratios, top):
    steps = [0, *climbed(ratios, top)]
    assert all(abs(after - before) <= 1 for before, after in pairwise(steps))
    assert all(0 <= step <= top for step in steps)
