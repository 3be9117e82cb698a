import numpy as np
import pytest

from models.forecast.core.bootstrap import ratio_bound, rmse_ratio
from models.forecast.core.series import SeriesError


def rng():
    return np.random.default_rng(7)


def test_a_constant_factor_is_found_exactly():
    errors = rng().normal(size=200)
    assert rmse_ratio(0.5 * errors, errors, rng()) == pytest.approx((0.5, 0.5))


def test_the_interval_holds_one_where_both_are_as_good_and_not_where_one_is_better():
    first, second = rng().normal(size=(2, 400))
    low, high = rmse_ratio(first, second, rng())
    assert low < 1 < high
    assert rmse_ratio(0.6 * first, second, rng())[1] < 1


def test_few_steps_say_less_than_many():
    first, second = rng().normal(size=(2, 2000))
    wide, narrow = (rmse_ratio(first[:n], second[:n], rng()) for n in (50, 2000))
    assert narrow[1] - narrow[0] < wide[1] - wide[0]


def test_missing_steps_are_left_out():
    errors = np.array([1.0, np.nan, 2.0, 3.0, 4.0])
    assert rmse_ratio(errors, errors, rng()) == (1.0, 1.0)
    with pytest.raises(SeriesError, match="1 pairs"):
        rmse_ratio(np.array([1.0, np.nan]), np.array([1.0, 1.0]), rng())


def test_neither_is_better_where_both_are_perfect():
    nothing = np.zeros(48)
    assert rmse_ratio(nothing, nothing, rng()) == (1.0, 1.0) and ratio_bound(nothing, nothing) == 1.0
    assert ratio_bound(nothing, np.ones(48)) == 0.0 and ratio_bound(np.ones(48), nothing) > 1
