"""The late seconds that a job has to expect with each number of executors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.policy.core.capacity import Capacity
from models.policy.core.view import LoadAhead, View
from models.pool.late import LASTS_S, late_seconds

TARGET_S, LEAD_S, HOLD_S, BATCH_S = 10.0, 60.0, 30.0, 4.0
"""A slot sustains 10 records/s; two batches of 4 s leave 2 s in which records may wait."""


def view(arrival_rps, lag=0.0, ready=2, most=4, ahead=None):
    one = np.ones(1)
    capacity = Capacity(np.arange(most + 1.0)[None], 0.0 * one, 0.1 * one, BATCH_S)
    return View(
        now_s=0.0, since_s=5.0, arrival_rps=arrival_rps * one, lag_records=lag * one, processed_rps=one, busy=one,
        busiest=one, in_batch=one, batch_s=one, executors=ready * one, starting=0 * one, leaving=0 * one,
        target=ready * one, since_change_s=one, since_raise_s=one, least=one, most=most * one, capacity=capacity,
        late_s=0 * one, counted_s=one, ahead=ahead,
    )  # fmt: skip


def late(*args, **more):
    return late_seconds(view(*args, **more), TARGET_S, LEAD_S, HOLD_S)[0]


def test_what_is_sustained_is_not_late():
    assert late(20.0, ready=2)[2:].tolist() == [0, 0, 0]


def test_a_shortage_is_late_from_the_moment_at_which_more_waits_than_the_slack_holds():
    # 30 records/s at 20: 10 more a second wait, and 2 s of 20 records/s are reached after 4 of the 60 s of the lead
    # time. Then with three nothing more piles up, so that the 600 stay: above 60 in all 30 s, and never worked off.
    found = late(30.0, ready=2)
    assert found[3] == pytest.approx(56 + 30 + min((600 - 60) / (0.05 * 30), LASTS_S))
    # With four, 10 a second are worked off: 300 in the hold, 220 above the slack of 80 after that in 22 s.
    assert found[4] == pytest.approx(56 + 30 + 22)


def test_fewer_than_there_are_work_from_now_on_and_more_only_after_the_lead_time():
    found = late(20.0, ready=2)
    assert found[1] > 80
    assert late(40.0, ready=4)[4] == 0
    assert late(40.0, ready=2)[4] > LEAD_S - 4


def test_what_waits_already_is_late_until_it_is_worked_off():
    # 320 records wait beyond 1.5 batches (120); 20/s are worked off: above 80 for 12 of the 60 s.
    assert late(20.0, lag=440.0, ready=4)[4] == pytest.approx(12.0)


def test_what_a_forecast_says_of_later_takes_nothing_now():
    def course(*rates, ends):
        return LoadAhead(np.array(ends), (0.5,), np.array([[[rate] for rate in rates]]))

    near = late(25.0, ready=2, ahead=course(25.0, 30.0, ends=[LEAD_S, LEAD_S + HOLD_S]))
    far = late(25.0, ready=2, ahead=course(25.0, 30.0, 90.0, 5.0, ends=[LEAD_S, LEAD_S + HOLD_S, 400.0, 900.0]))
    across = late(25.0, ready=2, ahead=course(25.0, 30.0, 90.0, ends=[LEAD_S, 400.0, 900.0]))
    assert near[3] > 0 and far.tolist() == near.tolist() == across.tolist()


def test_executors_that_come_within_a_step_work_from_then_on():
    def found(lead_s):
        ends = np.array([LEAD_S, LEAD_S + HOLD_S])
        ahead = LoadAhead(ends, (0.5,), np.array([[[40.0], [40.0]]]))
        return late_seconds(view(40.0, ready=2, ahead=ahead), TARGET_S, lead_s, HOLD_S)[0][4]

    assert found(LEAD_S - 1) == pytest.approx(found(LEAD_S), rel=0.05)
    assert found(LEAD_S + 1) == pytest.approx(found(LEAD_S), rel=0.05)


def test_each_quantile_counts_by_the_chance_between_its_neighbours_middles():
    rps = np.array([[[10.0, 10.0, 30.0], [10.0, 10.0, 30.0]]])
    ahead = LoadAhead(np.array([LEAD_S, LEAD_S + HOLD_S]), (0.1, 0.5, 0.9), rps)
    mixed, high = late(10.0, ahead=ahead, ready=2)[4], late(30.0, ready=2)[4]
    assert mixed == pytest.approx(0.3 * high)


def test_a_forecast_that_is_not_known_leaves_the_present_rate():
    ahead = LoadAhead(np.array([LEAD_S, LEAD_S + HOLD_S]), (0.5,), np.full((1, 2, 1), np.nan))
    assert late(30.0, ahead=ahead).tolist() == late(30.0).tolist()


@given(st.floats(0, 100), st.floats(0, 5000), st.integers(0, 6))
def test_more_executors_are_never_later(rps, lag, ready):
    found = late(rps, lag=lag, ready=ready, most=6)
    assert (np.diff(found) <= 1e-6).all()
    assert (found >= 0).all()
    assert (found <= LEAD_S + HOLD_S + LASTS_S).all()
