import json
import math

import numpy as np
import pytest

from models.forecast.classical.classical import Classical, Harmonics, Recursion
from models.forecast.classical.fit import arima_recursion, fit_classical, fit_harmonics
from models.forecast.core.forecaster import Task
from models.forecast.core.residuals import NEWEST
from models.forecast.core.series import Series, SeriesError
from models.kinds import describe, revive

HOUR = 3600.0
TASK = Task(HOUR, 3, (0.1, 0.5, 0.9))
FLAT = Harmonics((), (0.0,))
KINDS = ("ets", "theta", "arima")


def wandering(steps=400, seed=1):
    rng = np.random.default_rng(seed)
    times = np.arange(steps)
    walk = np.cumsum(rng.normal(size=steps)) * 2
    return Series(0.0, HOUR, 200 + 50 * np.sin(2 * np.pi * times / 24) + walk + rng.normal(size=steps) * 3)


def medians(forecaster, values, start=0.0):
    return forecaster.quantiles_of(forecaster.state_after(Series(start, HOUR, np.array(values, dtype=float))))[:, 1]


def test_exponential_smoothing_by_hand():
    # alpha 0.5 from 10: 10, then 10 + 0.5·(14 − 10) = 12, then 12 + 0.5·(8 − 12) = 10
    ses = Classical("ets", TASK, FLAT, Recursion((1.0,), ((1.0,),), (0.5,), (0.0,)))
    np.testing.assert_allclose(medians(ses, [10, 14, 8]), [10, 10, 10])


def test_holt_by_hand():
    # level 10, slope 0; 14: e 4, level 12, slope 1; 8: forecast 13, e −5, level 10.5, slope −0.25
    holt = Classical("ets", TASK, FLAT, Recursion((1.0, 1.0), ((1.0, 1.0), (0.0, 1.0)), (0.5, 0.25), (0.0, 0.0)))
    np.testing.assert_allclose(medians(holt, [10, 14, 8]), [10.25, 10.0, 9.75])


def test_theta_drifts():
    theta = Classical("theta", TASK, FLAT, Recursion((1.0,), ((1.0,),), (1.0,), (2.0,)))
    np.testing.assert_allclose(medians(theta, [10, 20]), [22, 24, 26])


@pytest.mark.parametrize(
    ("phi", "theta", "d", "mean", "expected"),
    [
        # AR(1) around 100: 100 + 0.5·(120 − 100) = 110, 105, 102.5
        pytest.param([0.5], [], 0, 100.0, [110, 105, 102.5], id="AR(1)"),
        # (1 − 0.5B)(1 − B): from 110 to 120 the next differences are 5, 2.5, 1.25
        pytest.param([0.5], [], 1, 0.0, [125, 127.5, 128.75], id="ARI(1,1)"),
        # MA(1), errors from a rest at 100: 110 − 100 = 10, then 120 − (110 + 0.4·10 − 10) … as worked below
        pytest.param([], [0.4], 1, 0.0, [122.4, 122.4, 122.4], id="IMA(1,1)"),
    ],
)
def test_arima_by_hand(phi, theta, d, mean, expected):
    # IMA: 100 → e 0; 110 → forecast 100, e 10; next forecast 110 + 4 = 114; 120 → e 6; 120 + 2.4 = 122.4
    recursion = arima_recursion(np.array(phi), np.array(theta), d, mean)
    forecaster = Classical("arima", TASK, FLAT, recursion)
    np.testing.assert_allclose(medians(forecaster, [100, 100, 110, 120]), expected, atol=1e-9)


def test_quantiles_are_those_of_the_errors():
    rng = np.random.default_rng(5)
    walk = Classical("ets", TASK, FLAT, Recursion((1.0,), ((1.0,),), (1.0,), (0.0,)))
    values = 1000 + np.cumsum(rng.normal(size=300))
    found = walk.quantiles_of(walk.state_after(Series(0.0, HOUR, values)))
    for h in (1, 2, 3):
        errors = values[h:] - values[:-h]
        expected = values[-1] + np.quantile(errors, TASK.levels) - np.median(errors)
        np.testing.assert_allclose(found[h - 1], expected)


@pytest.mark.study
@pytest.mark.parametrize("kind", KINDS)
def test_stepping_equals_the_batch_and_json_gives_it_back(kind):
    older, held = wandering(NEWEST + 100).split(60)
    fitted = fit_classical(kind, TASK, older)
    values = held.values.copy()
    values[7] = math.nan
    again = revive(json.loads(json.dumps(describe(fitted))))
    state, made = again.state_after(older), None
    for value in values:
        state, made = again.step(state, float(value))
    whole = Series(0.0, HOUR, np.concatenate([older.values, values]))
    np.testing.assert_allclose(made, fitted.quantiles_of(fitted.state_after(whole)))
    assert (np.diff(made, axis=1) >= 0).all()
    assert again.basis(state) == kind


@pytest.mark.study
@pytest.mark.filterwarnings("ignore:possible convergence problem")  # of a trial of its search
@pytest.mark.parametrize("kind", KINDS)
def test_the_recursion_is_statsforecasts_own(kind):
    from statsforecast.models import AutoARIMA, AutoETS, OptimizedTheta

    rng = np.random.default_rng(2)
    values = np.cumsum(rng.normal(size=400)) + rng.normal(size=400)
    history = Series(0.0, HOUR, values - values.min())
    fitted = fit_classical(kind, TASK, history)
    times = HOUR * np.arange(len(values) + 3)
    left = history.values - fitted.season.at(times[:-3])
    model = {
        "ets": AutoETS(model="AZN", season_length=1),
        "theta": OptimizedTheta(season_length=1),
        "arima": AutoARIMA(max_p=3, max_q=3, max_d=1, seasonal=False, allowdrift=False, approximation=True),
    }[kind]
    scale = left.std()
    expected = model.fit(left / scale).predict(h=3)["mean"] * scale + fitted.season.at(times[-3:])
    found = fitted.quantiles_of(fitted.state_after(history))[:, 1]
    np.testing.assert_allclose(found, np.maximum(expected, 0), atol=1e-3 * scale)


def test_a_season_is_learnt_and_needs_history():
    clear = wandering(24 * 21)
    curve = fit_harmonics(clear)
    assert 7 in curve.orders
    times = clear.start + HOUR * np.arange(24)
    swing = curve.at(times) - curve.coefficients[0]
    assert np.corrcoef(swing, np.sin(2 * np.pi * np.arange(24) / 24))[0, 1] > 0.98
    assert fit_harmonics(clear.split(24 * 20)[0]).orders == []


def test_bad_histories():
    with pytest.raises(SeriesError, match=r"ets: 3 known steps; at least 20"):
        fit_classical("ets", TASK, Series(0.0, HOUR, np.arange(3.0)))
    constant = Series(0.0, HOUR, np.full(100, 7.0))
    for kind in KINDS:
        fitted = fit_classical(kind, TASK, constant)
        np.testing.assert_allclose(fitted.quantiles_of(fitted.state_after(constant)), 7.0, atol=1e-6)
        empty = fitted.state_after(Series(0.0, HOUR, np.empty(0)))
        assert np.isnan(fitted.quantiles_of(empty)).all() and fitted.basis(empty) == "none"
        state, _ = fitted.step(fitted.step(empty, math.nan)[0], 5.0)
        assert np.isfinite(fitted.quantiles_of(state)).all()
