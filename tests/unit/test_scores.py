import math

import numpy as np
import pytest

from models.forecast.scores import coverage, mae, pinball, rmse


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


def test_the_true_quantile_has_the_least_pinball_loss():
    rng = np.random.default_rng(3)
    outcomes = rng.gamma(4, 10, size=20_000)
    true = np.quantile(outcomes, 0.9)
    losses = [pinball(outcomes, np.full((len(outcomes), 1), true * f), (0.9,)) for f in (0.9, 1.0, 1.1)]
    assert losses[1] < min(losses[0], losses[2])
