from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from configs.contract import Contract
from models.policy.mpc import Mpc, at_level
from models.policy.view import Ahead, Why, decide
from tests.fakes.views import a_view

LEVELS = (0.5, 0.9, 0.99)
# At full use an executor carries 200 records/s by batches of 2 s with 0.4 s of overhead: 1 / 0.004 * 0.8.
POLICY = Mpc("mpc", 0.9, 1.0, ahead_s=30.0, catch_up_s=60.0, batch_s=2.0, hold_s=60.0)


def ahead(*quantiles, offset_s=30.0):
    return Ahead(np.array([offset_s]), LEVELS, np.array([[quantiles]], float))


def answer(policy=POLICY, **changed):
    view = a_view(tasks=2000, **changed)
    return decide(policy, policy.fresh(view.runs), view)[1]


def test_levels_between_and_beyond_those_there_are():
    quantiles = np.array([[100.0, 200.0, 300.0]])
    assert at_level(quantiles, LEVELS, 0.9) == pytest.approx([200])
    # -log(1 - level) is 0.69, 2.30, 4.61: a tenth of the exceedance adds 100, so a tenth more adds 100 again.
    assert at_level(quantiles, LEVELS, 0.999) == pytest.approx([400])
    assert at_level(quantiles, LEVELS, 0.0) == pytest.approx([100])


def test_provides_for_the_peak_that_is_kept_at_its_level():
    assert answer(ahead=ahead(500, 900, 1500)).target == [5]
    assert answer(replace(POLICY, kept=0.99), ahead=ahead(500, 900, 1500)).target == [8]


def test_the_knob_may_be_one_per_run():
    view = a_view(2, tasks=2000, ahead=Ahead(np.array([30.0]), LEVELS, np.tile([500.0, 900.0, 1500.0], (2, 1, 1))))
    policy = replace(POLICY, kept=np.array([0.9, 0.99]))
    assert decide(policy, policy.fresh(2), view)[1].target.tolist() == [5, 8]


def test_a_forecast_never_lowers_below_the_load_of_now():
    choice = answer(arrival_rps=790.0, ahead=ahead(1, 2, 3))
    assert choice.target == [4]


def test_without_a_forecast_it_is_reactive_and_says_so():
    choice = answer(arrival_rps=1300.0)
    assert choice.target == [7] and choice.why[0] & Why.NO_FORECAST
    broken = answer(arrival_rps=1300.0, ahead=ahead(np.nan, np.nan, np.nan))
    assert broken.target == [7] and broken.why[0] & Why.NO_FORECAST


def test_a_raise_by_the_forecast_alone_says_so():
    assert answer(ahead=ahead(500, 900, 1500)).why[0] & Why.FORECAST
    assert not answer(arrival_rps=900.0, ahead=ahead(900, 900, 900)).why[0] & Why.FORECAST


def test_nothing_is_dropped_while_a_backlog_is_worked_off():
    choice = answer(arrival_rps=100.0, lag_records=5000.0)
    assert choice.target == [4] and choice.why[0] & Why.CATCH_UP


def test_what_recent_plans_asked_for_is_not_dropped():
    view = a_view(arrival_rps=700.0, lag_records=0.0)
    memory, choice = decide(POLICY, POLICY.fresh(1), view)
    assert choice.target == [4]
    memory, choice = decide(POLICY, memory, replace(view, now_s=15.0, arrival_rps=np.array([100.0])))
    assert choice.target == [4] and choice.why[0] & Why.DELAYED_DOWN
    _, choice = decide(POLICY, memory, replace(view, now_s=120.0, arrival_rps=np.array([100.0])))
    assert choice.target == [1]


def test_an_entry_beyond_lead_and_hold_is_not_planned_for():
    two = Ahead(np.array([30.0, 600.0]), LEVELS, np.array([[[500.0, 600, 700], [3000.0, 3000, 3000]]]))
    assert answer(ahead=two).target == [4]


@given(st.floats(0, 5000), st.floats(0, 50_000), st.lists(st.floats(0, 5000), min_size=3, max_size=3))
def test_the_answer_is_within_bounds_and_never_under_the_observed_need(rate, lag, quantiles):
    choice = answer(arrival_rps=rate, lag_records=lag, ahead=ahead(*sorted(quantiles)))
    assert 1 <= choice.target[0] <= 20
    assert choice.target[0] >= min(choice.observed[0], 20)


def test_takes_the_numbers_of_a_contract():
    contract = Contract(job="j")
    policy = Mpc.of("mpc", contract)
    assert policy.ahead_s == contract.planning.lead_s + contract.planning.hold_s
    assert policy.kept == contract.planning.quantile
