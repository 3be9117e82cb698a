import json
import math

import numpy as np
import pytest

from models.forecast.baselines.linear import BESIDE, RECENT, fit_linear, lag_offsets
from models.forecast.core.forecaster import Task
from models.forecast.core.residuals import build_residual_window
from models.forecast.core.series import Series, SeriesError
from models.forecast.selection.backtest import roll
from models.kinds import describe, revive

HOUR = 3600.0
TASK = Task(HOUR, 3, (0.1, 0.5, 0.9))


def load(steps=24 * 20, seed=1, scale=1.0):
    rng = np.random.default_rng(seed)
    times = np.arange(steps)
    noise = np.zeros(steps)
    for i in range(1, steps):
        noise[i] = 0.7 * noise[i - 1] + rng.normal(0, 3)
    return Series(0.0, HOUR, scale * (200 + 60 * np.sin(2 * np.pi * times / 24) + noise))


def test_no_lag_is_still_to_come_and_the_same_time_is_in_the_middle():
    found = lag_offsets(Task(HOUR, 30, (0.5,)), (24, 168))
    assert found.max() == 0 and found.shape == (30, RECENT + 2 * (2 * BESIDE + 1))
    day = found[:, RECENT : RECENT + 2 * BESIDE + 1]
    ahead = np.arange(1, 31)
    np.testing.assert_array_equal((day[:, BESIDE] - ahead) % 24, 0)
    assert list(day[:, BESIDE][[0, 21, 22, 29]]) == [1 - 24, 22 - 24, 23 - 48, 30 - 48]


def test_a_series_that_is_linear_in_its_lags_is_forecast_exactly():
    values = np.empty(400)
    values[:2] = 100, 130
    for i in range(2, 400):
        values[i] = 40 + 1.2 * values[i - 1] - 0.6 * values[i - 2] + (20 if i % 50 == 0 else 0)
    older, held = Series(0.0, HOUR, values).split(3)
    fitted = fit_linear(Task(HOUR, 1, (0.5,)), older)
    made = roll(fitted, older, held)
    np.testing.assert_allclose(made.median[:, 0], held.values, rtol=0.02)


def test_it_beats_the_seasons_and_the_last_value():
    older, held = load().split(96)
    made = roll(fit_linear(TASK, older), older, held).scores()
    last = np.sqrt(np.mean(np.diff(held.values) ** 2))
    day = np.sqrt(np.mean((held.values[24:] - held.values[:-24]) ** 2))
    assert made["rmse_h1"] < 0.75 * min(last, day)
    assert 0.6 < made["coverage_0.9"] - made["coverage_0.1"] < 0.95


def test_stepping_equals_the_batch_and_json_gives_it_back():
    older, held = load(24 * 12).split(40)
    fitted = fit_linear(TASK, older)
    again = revive(json.loads(json.dumps(describe(fitted))))
    values = held.values.copy()
    values[11] = math.nan
    state, made = again.state_after(older), None
    for value in values:
        state, made = again.step(state, float(value))
    whole = Series(0.0, HOUR, np.concatenate([older.values, values]))
    np.testing.assert_allclose(made, fitted.quantiles_of(fitted.state_after(whole)))


def test_ten_times_the_load_is_ten_times_the_forecast():
    plain, tenfold = (load(24 * 12, scale=s) for s in (1.0, 10.0))
    first, second = (fit_linear(TASK, one) for one in (plain, tenfold))
    np.testing.assert_allclose(
        10 * first.quantiles_of(first.state_after(plain)), second.quantiles_of(second.state_after(tenfold)), rtol=1e-6
    )


def test_before_enough_was_seen_the_naive_forecast_stands_in_and_says_so():
    fitted = fit_linear(TASK, load())
    state = fitted.state_after(Series(0.0, HOUR, np.empty(0)))
    assert fitted.basis(state) == "none"
    for value in load(24 * 15).values:
        state, made = fitted.step(state, float(value))
        assert np.isfinite(made).all() and (np.diff(made, axis=1) >= 0).all()
    assert fitted.basis(state) == "ridge"


def test_too_short_a_history():
    with pytest.raises(SeriesError, match=r"ridge: 40 steps leave"):
        fit_linear(TASK, load(40))
    sparse = load()
    sparse.values[1:] = np.nan
    with pytest.raises(SeriesError, match="0 rows with a known load"):
        fit_linear(TASK, sparse)


def test_errors_are_put_with_the_forecasts_they_belong_to():
    found = build_residual_window(np.array([[10.0, 20.0], [30.0, 40.0], [50.0, 60.0]]), np.array([0.0, 11.0, 22.0]))
    np.testing.assert_equal(found.errors, [[np.nan, np.nan], [11 - 10, np.nan], [22 - 30, 22 - 20]])
    np.testing.assert_equal(found.made, [[50, 60], [30, 40]])
    after = found.after_step(55.0, np.array([70.0, 80.0]))
    np.testing.assert_equal(after.errors[-1], [55 - 50, 55 - 40])
    np.testing.assert_equal(after.made, [[70, 80], [50, 60]])
