import numpy as np
import pytest

from models.adapt.linear import choose_ridge, fit, origins_of, outcomes, regressors, step_deviation
from models.forecast.core.series import SeriesError

DAY = 48


def autoregression(steps: int, seed: int = 0, weight: float = 0.9) -> np.ndarray:
    draw = np.random.default_rng(seed).standard_normal(steps)
    values = np.zeros(steps)
    for t in range(1, steps):
        values[t] = weight * values[t - 1] + draw[t]
    return 100 + values


def test_inputs_are_relative_to_the_newest_value_and_to_yesterdays():
    values = np.arange(200.0) ** 2
    row = regressors(values, np.array([150]), DAY, 2)[0]
    assert row[0] == 149**2 - 150**2 and row[22] == 127**2 - 150**2
    then = 150 - DAY
    assert row[23] == (then - 3) ** 2 - then**2
    assert row[-2] == (then + 4) ** 2 - then**2 and row[-1] == then**2 - 150**2
    assert regressors(values, np.array([150]), 0, 2).shape == (1, 23)


def test_a_forecast_follows_level_and_scale():
    values = autoregression(300)
    origins = np.arange(200, 290)
    model, twice = fit(values, 3, 0, 10.0), fit(2 * values + 50, 3, 0, 10.0)
    np.testing.assert_allclose(
        twice.forecast(2 * values + 50, origins), 2 * model.forecast(values, origins) + 50, rtol=1e-9
    )


def test_rows_have_their_inputs_and_their_outcomes():
    assert origins_of(60, 0, 2).tolist() == list(range(23, 58))
    assert origins_of(120, DAY, 2)[0] == DAY + 3 + 23
    assert outcomes(np.arange(9.0), np.array([3]), 2).tolist() == [[4.0, 5.0]]


def test_an_infinite_strength_leaves_the_last_value_and_none_is_least_squares():
    values = autoregression(200)
    np.testing.assert_allclose(fit(values, 2, 0, 1e12).weights, 0, atol=1e-6)
    origins = origins_of(len(values), 0, 2)
    x, y = regressors(values, origins, 0, 2), outcomes(values, origins, 2) - values[origins][:, None]
    np.testing.assert_allclose(fit(values, 2, 0, 1e-9).weights, np.linalg.lstsq(x, y, rcond=None)[0], atol=1e-6)


def test_left_out_errors_are_larger_than_those_of_the_fit_itself():
    values = autoregression(120)
    chosen = choose_ridge(values, 2, (0,))
    origins = origins_of(120, 0, 2)
    own = outcomes(values, origins, 2) - chosen.model.forecast(values, origins)
    left_out = chosen.errors[origins]
    assert np.isfinite(left_out).all() and np.isnan(chosen.errors[:23]).all()
    assert np.mean(left_out**2) > np.mean(own**2)


def test_yesterday_is_read_where_history_and_its_course_ask_for_it():
    course = np.tile(np.random.default_rng(4).standard_normal(DAY) * 10, 12)
    values = 100 + course + 0.1 * np.random.default_rng(5).standard_normal(len(course))
    assert choose_ridge(values, 2, (0, DAY)).model.day == DAY
    assert choose_ridge(values[: 3 * DAY], 2, (0, DAY)).model.day == 0


@pytest.mark.parametrize(
    ("values", "said"),
    [(np.full(60, 3.0), "60 steps without any change"), (np.arange(20.0) ** 2, "20 steps are too few")],
)
def test_what_cannot_be_fitted_says_why(values, said):
    with pytest.raises(SeriesError, match=said):
        fit(values, 2, 0, 1.0)


def test_the_unit_is_the_deviation_of_changes():
    assert step_deviation(np.array([0.0, 1.0, 0.0, 1.0, 0.0])) == 1.0


@pytest.mark.parametrize("horizon", [22, 24, 30])
def test_no_input_lies_after_its_origin_however_short_the_day(horizon):
    values, origins = np.random.default_rng(0).random(200), np.array([150])
    seen = regressors(values, origins, 24, horizon)
    values[151:] = -1e6
    assert (regressors(values, origins, 24, horizon) == seen).all()


def test_what_is_chosen_was_compared_on_some_origin():
    values = autoregression(400)
    for steps in range(60, 400, 20):
        try:
            chosen = choose_ridge(values[:steps], 24, (0,))
        except SeriesError as error:
            assert "at least 161 are needed" in str(error) and steps < 161
        else:
            assert steps >= 161 and chosen.model.day == 0
