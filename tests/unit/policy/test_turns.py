import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from models.policy.planners.turns import TURN, at_once, pace_s, plan_turns, starts_at_once, turns_of


def test_how_many_at_once_are_soonest_of_use_by_hand():
    # Two at once are of use together after 2 ** growth, one after the other after 1 and 2: 3 in all against 2 * 2 ** g.
    assert starts_at_once(4, 0.0).tolist() == [0, 1, 2, 3, 4]
    assert starts_at_once(4, 0.5).tolist() == [0, 1, 2, 3, 4]
    assert starts_at_once(4, 0.7)[2] == 1 and starts_at_once(4, 0.7)[4] == 2  # 3.25 > 3; 9.75 < 10, 10.6
    assert starts_at_once(4, 1.0).tolist() == [0, 1, 1, 1, 1]
    missing = np.array([4.0, 4.0, 3.0, 0.0])
    assert at_once(missing, np.array([0.0, 1.0, 0.7, 1.0]), 3.0).tolist() == [3, 1, 1, 0]


@given(st.integers(1, 40), st.floats(0.0, 2.0))
def test_so_many_start_at_once_that_the_missing_ones_are_missed_for_the_shortest_time(missing, growth):
    waits = [k**growth * sum(range(missing, 0, -k)) for k in range(1, missing + 1)]
    soonest = max(k for k, wait in enumerate(waits, 1) if wait <= min(waits) * (1 + 1e-9))
    assert starts_at_once(missing, growth)[missing] == soonest


def test_what_starts_at_once_of_thousands_is_told_within_a_decision():
    assert at_once(np.array([4000.0]), 1.5, math.inf) == 1  # an hour and more, where each number was tried for itself


def test_turns_by_hand():
    turns = plan_turns(np.array([4.0, 3.0, 0.0]), np.array([1.0, 0.0, 1.0]), math.inf, np.array([10.0, 20.0, 30.0]))
    assert turns.many.tolist() == [4, 1, 1] and turns.size.tolist() == [1, 3, 1]
    assert turns.seconds.tolist() == [TURN * 10, TURN * 3**0 * 20, TURN * 30]
    assert turns.within(0.0) == 1 and turns.within(6.0) == 2 and turns.within(8.0) == 3 and turns.within(1000.0) == 4
    # Run 0 needs 5 by the third turn, of which the next two turns bring one each; run 1 starts all at once.
    needs = [np.array([2.0, 2.0, 2.0]), np.array([2.0, 9.0, 9.0]), np.array([5.0, 9.0, 9.0])]
    assert turns.first(needs).tolist() == [3, 2, 2]
    assert plan_turns(np.array([7.0]), 0.0, math.inf, 10.0).within(1000.0) == 1


def test_the_next_turn_begins_when_the_one_before_is_over():
    missing, started, growth = np.array([1.0, 5.0, 1.0]), np.array([0.0, 2.0, 0.0]), np.array([1.0, 0.7, 0.2])
    found = pace_s(missing, started, growth, math.inf, 10.0)
    assert np.allclose(found, [TURN * 10, TURN * 10 * 2**0.7, 0.0])
    assert pace_s(missing, started, 0.0, 2.0, 10.0).tolist() == [0, TURN * 10, 0]


@given(st.lists(st.integers(1, 30), min_size=1, max_size=8), st.integers(1, 4), st.integers(0, 30))
def test_who_begins_in_time_meets_every_need(needs, size, ready):
    def first(since):
        turns = plan_turns(np.array([60.0]), 0.0, float(size), 10.0)
        return float(turns.first([np.array([float(need)]) for need in needs[since:]])[0])

    if first(0) > ready + size:
        return  # it is too late at the beginning
    have, last = float(ready), -1.0
    for turn, need in enumerate(needs):
        assert first(turn) <= max(have, last) + size
        have = max(have, min(have + size, first(turn)))
        last = have
        assert have >= need


@given(st.integers(1, 40), st.floats(0, 2), st.floats(0, 1e4))
def test_a_single_turn_asks_for_what_it_needs(missing, growth, lead_s):
    turns = plan_turns(np.array([float(missing)]), growth, math.inf, lead_s)
    assert turns.many[0] * turns.size[0] >= missing and turns.seconds > 0
    assert turns.first([np.array([3.0])]).tolist() == [3.0]


def test_when_several_that_are_asked_for_at_once_work():
    assert turns_of(3, 0.0, math.inf) == ((3, 1.0),)
    assert turns_of(3, 1.0, math.inf) == ((1, 1.0), (1, 1 + TURN), (1, 1 + 2 * TURN))
    assert turns_of(5, 0.0, 2.0) == ((2, 1.0), (2, 1 + TURN), (1, 1 + 2 * TURN))
    assert turns_of(4, 0.5, math.inf) == ((4, 2.0),)
