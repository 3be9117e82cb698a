import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.forecast.core.scores import coverage, covered, mae, pinball, rmse, skill, smape_half, smape_sum, wape


def test_by_hand():
    actual, predicted = np.array([1.0, 4.0]), np.array([3.0, 4.0])
    assert rmse(actual, predicted) == pytest.approx(math.sqrt(2))
    assert mae(actual, predicted) == 1.0
    # y=10: level 0.9 at 8 costs 0.9·2, level 0.1 at 12 costs (0.1 − 1)·(10 − 12)
    assert pinball(np.array([10.0]), np.array([[12.0, 8.0]]), (0.1, 0.9)) == pytest.approx((1.8 + 1.8) / 2)
    assert coverage(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 9.0])) == pytest.approx(2 / 3)


def test_missing_outcomes_do_not_count():
    actual = np.array([1.0, math.nan])
    assert rmse(actual, np.array([2.0, 99.0])) == 1.0
    assert pinball(actual, np.array([[1.0], [99.0]]), (0.5,)) == 0.0
    assert math.isnan(coverage(np.array([math.nan]), np.array([1.0])))


def test_a_forecast_that_is_missing_is_not_perfect():
    actual, said = np.array([1.0, 2.0]), np.array([1.0, math.nan])
    for score in (rmse, mae, wape, smape_sum, smape_half, coverage):
        assert math.isnan(score(actual, said)), score.__name__
    assert math.isnan(pinball(actual, said[:, None], (0.5,)))
    assert math.isnan(covered(actual, said, actual)) and math.isnan(covered(actual, actual, said))
    assert math.isnan(smape_sum(np.zeros(1), np.array([math.nan])))


def test_the_true_quantile_has_the_least_pinball_loss():
    rng = np.random.default_rng(3)
    outcomes = rng.gamma(4, 10, size=20_000)
    true = np.quantile(outcomes, 0.9)
    losses = [pinball(outcomes, np.full((len(outcomes), 1), true * f), (0.9,)) for f in (0.9, 1.0, 1.1)]
    assert losses[1] < min(losses[0], losses[2])


def test_smape_and_rmse_of_the_papers_example():
    actual, predicted = np.array([100.0, 200.0, 300.0]), np.array([110.0, 180.0, 300.0])
    assert smape_sum(actual, predicted) == pytest.approx(3.341688, abs=1e-6)
    assert smape_half(actual, predicted) == pytest.approx(6.683375, abs=1e-6)
    assert rmse(actual, predicted) == pytest.approx(12.909944, abs=1e-6)
    assert smape_sum(actual + 1000, predicted + 1000) == pytest.approx(0.430942, abs=1e-6)
    assert wape(actual, predicted) == pytest.approx(30 / 600)


def test_smape_of_nothing_against_nothing_is_no_error():
    assert smape_sum(np.array([0.0, 0.0, 10.0]), np.array([0.0, 5.0, 10.0])) == pytest.approx(100 / 3)
    assert math.isnan(wape(np.zeros(2), np.ones(2)))


loads = st.lists(st.floats(0, 1e6), min_size=1, max_size=20)


@given(loads, st.data())
def test_smape_is_symmetric_scale_free_and_bounded(actual, data):
    y = np.array(actual)
    said = np.array(data.draw(st.lists(st.floats(0, 1e6), min_size=len(actual), max_size=len(actual))))
    found = smape_sum(y, said)
    assert 0 <= found <= 100 + 1e-9
    assert smape_sum(said, y) == pytest.approx(found)
    assert smape_sum(1024 * y, 1024 * said) == pytest.approx(found)


def test_intervals_hold_their_ends_and_leave_out_what_is_missing():
    actual, low, high = np.array([1.0, 2.0, 3.0, math.nan]), np.full(4, 1.0), np.full(4, 2.0)
    assert covered(actual, low, high) == pytest.approx(2 / 3)


def test_skill_by_hand():
    assert skill(3.0, 4.0) == 0.25
    assert math.isnan(skill(1.0, 0.0))
