import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.forecast.core.series import Series
from models.policy.received.nowcast import forecast_offsets
from models.twin.experiment.foresight import (
    HORIZON,
    LEVELS,
    IssuedForecasts,
    correct_at_looks,
    issue_forecasts,
    steps_per_forecast_step,
    true_peaks,
    unless_refuted,
)

RATES = np.array([1.0, 5, 2, 3, 9, 4, 4, 8, 0, 1])


def test_the_truth_of_a_stretch_is_its_highest_rate():
    found = true_peaks(RATES, np.array([0, 4]), np.array([2.0, 5.0]))
    # from second 0: seconds 0-1, then 2-4; from second 4: 4-5, then 6-8
    assert found.tolist() == [[5, 9], [9, 8]]


def test_beyond_the_end_the_last_rate_stays():
    assert true_peaks(RATES, np.array([8]), np.array([1.0, 30.0])).tolist() == [[0, 1]]


@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 199))
def test_the_truth_is_what_looking_says(lead, hold, now):
    rates = np.random.default_rng(1).random(200)
    ends = forecast_offsets(float(lead), float(hold))
    later = np.concatenate([rates, np.full(200, rates[-1])])
    cuts = [0]
    for end in ends:
        cuts.append(max(round(end), cuts[-1] + 1))  # a second at least
    expected = [later[now + a : now + b].max() for a, b in itertools.pairwise(cuts)]
    assert true_peaks(rates, np.array([now]), ends)[0].tolist() == expected


def test_stretches_end_with_the_lead_time_and_with_the_hold():
    ends = forecast_offsets(60.0, 30.0)
    assert 60.0 in ends and ends[-1] == 90.0 and (np.diff(ends) > 0).all()


def test_a_forecaster_takes_coarser_steps_where_it_would_not_see_far_enough():
    assert steps_per_forecast_step(300.0, 90.0) == 1
    assert steps_per_forecast_step(10.0, 90.0) == 1
    assert steps_per_forecast_step(10.0, 630.0) == 6  # 10.5 known steps of 60 s


def test_coarse_steps_are_means_and_meet_where_the_forecasts_begin():
    values = np.arange(40, dtype=float)
    said = issue_forecasts("last_value", Series(0.0, 10.0, values), 25, 3)
    assert said.step_s == 30.0 and said.begins_s == 250.0
    assert said.last.tolist() == [23, 26, 29, 32, 35]  # means of 22-24, 25-27, ...
    assert said.quantiles.shape == (5, HORIZON, len(LEVELS))


def test_what_is_heard_follows_the_rate_of_the_moment_and_forgets_it():
    said = issue_forecasts("last_value", Series(0.0, 10.0, np.full(60, 100.0)), 40)
    near, far = correct_at_looks(said, np.array([405.0]), np.array([130.0]), np.array([1e-6, 60.0]), 20.0, 0.5)[0, :, 0]
    assert near == pytest.approx(130.0, abs=0.01)
    assert far == pytest.approx(100 + 30 * np.exp(-3), abs=0.01)


@pytest.mark.parametrize("forecaster", ["last_value", "blend"])
@settings(max_examples=10, deadline=None)
@given(st.sets(st.integers(1, 39), max_size=20), st.integers(0, 18))
def test_nothing_that_comes_later_is_known_earlier_where_steps_are_missing(forecaster, missing, until):
    values = 50.0 + np.arange(40.0) % 7
    values[list(missing)] = np.nan
    other = values.copy()
    other[20 + until :] = 900.0
    here, there = (issue_forecasts(forecaster, Series(0.0, 3600.0, each), 20) for each in (values, other))
    seen = until + 1  # at the beginning of step 20 + until all before it are known
    np.testing.assert_array_equal(here.quantiles[:seen], there.quantiles[:seen])
    np.testing.assert_array_equal(here.last[:seen], there.last[:seen])


def test_what_silence_has_refuted_is_not_received_until_something_arrives():
    """Steps of 10 s from 100 s on, each forecast to have 5 records/s or more; from the third on nothing comes."""
    last = np.array([6.0, 6.0, 6.0, 0.0, 0.0, 0.0])
    said = IssuedForecasts(np.full((6, HORIZON, 2), [5.0, 9.0]), last, 10.0, 100.0, (0.05, 0.95))
    moments, rates = np.arange(100.0, 160.0, 5.0), np.zeros((2, 12))
    rates[0, :6], rates[1, :6], rates[1, 9] = 6.0, 6.0, 0.2  # of the second draw one record comes at 145 s
    rps = np.ones((2, 12, 3, 2))
    received = np.isfinite(unless_refuted(rps, said, moments, rates)).all(axis=(2, 3))
    assert received.tolist() == [[True] * 6 + [False] * 6, [True] * 6 + [False] * 3 + [True] + [False] * 2]
    quiet = said._replace(quantiles=np.zeros((6, HORIZON, 2)))  # it forecasts the silence
    assert unless_refuted(rps, quiet, moments, rates) is rps
