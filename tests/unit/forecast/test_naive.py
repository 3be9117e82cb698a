import math

import msgspec
import numpy as np
import pytest

from models.forecast.baselines.naive import Naive
from models.forecast.core.forecaster import Task
from models.forecast.core.residuals import build_residual_window
from models.forecast.core.series import Series, SeriesError

TASK = Task(3600.0, 6, (0.1, 0.5, 0.9))  # a day is 24 steps, a week 168


def series(values):
    return Series(0.0, 3600.0, np.asarray(values, dtype=float))


def load(steps, seed=1):
    hours = np.arange(steps)
    noise = np.random.default_rng(seed).normal(0, 5, steps)
    return 100 + 50 * np.sin(2 * np.pi * hours / 24) + 20 * (hours // 24 % 7 >= 5) + noise


@pytest.mark.parametrize(
    ("steps", "trust"),
    [
        (0, "none"),
        (1, "last value"),
        (23, "last value"),
        (24, "same time yesterday"),
        (167, "same time yesterday"),
        (168, "same time last week"),
        (2000, "same time last week"),
    ],
)
def test_trust_grows_with_the_history(steps, trust):
    naive = Naive(TASK)
    assert naive.basis(naive.state_after(series(load(steps)))) == trust


def test_nothing_seen_is_not_zero():
    naive = Naive(TASK)
    state = naive.state_after(series([]))
    assert np.isnan(naive.quantiles_of(state)).all()
    state, quantiles = naive.step(state, math.nan)
    assert np.isnan(quantiles).all() and naive.basis(state) == "none"
    state, quantiles = naive.step(state, 40.0)
    np.testing.assert_equal(quantiles, np.full((6, 3), 40.0))


@pytest.mark.parametrize("steps", [30, 200, 400])
def test_quantiles_rise_and_the_median_repeats_the_season(steps):
    naive, values = Naive(TASK), load(steps)
    quantiles = naive.quantiles_of(naive.state_after(series(values)))
    assert (np.diff(quantiles, axis=1) >= 0).all() and (quantiles >= 0).all()
    lag = 168 if steps >= 168 else 24
    np.testing.assert_allclose(quantiles[:, 1], values[steps - lag : steps - lag + 6])
    assert (quantiles[:, 2] > quantiles[:, 1]).all()


def test_last_value_spreads_with_the_distance():
    naive = Naive(TASK, seasonal=False)
    walk = 1000 + np.cumsum(np.random.default_rng(2).normal(0, 3, 400))
    quantiles = naive.quantiles_of(naive.state_after(series(walk)))
    width = quantiles[:, 2] - quantiles[:, 0]
    assert width[5] > 1.5 * width[0]
    np.testing.assert_allclose(quantiles[:, 1], walk[-1])


def test_around_another_forecast_quantiles_lie_as_they_do_among_other_levels():
    few, past = (0.5, 0.9, 0.95), build_residual_window(np.full((1, 6), 120.0), np.array([100.0]))
    shipped = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
    made = []
    for levels in (few, shipped):
        naive = Naive(Task(3600.0, 6, levels))
        made.append(naive.quantiles_around(np.full(6, 120.0), past, naive.state_after(series(load(60)))))
    np.testing.assert_array_equal(made[0], made[1][:, [shipped.index(level) for level in few]])
    assert (made[0][:, 0] == 120.0).all()


def test_stepping_equals_a_new_start():
    naive, values = Naive(TASK), load(260)
    values[240] = math.nan
    state = naive.state_after(series(values[:200]))
    for value in values[200:]:
        state, quantiles = naive.step(state, float(value))
    fresh = naive.state_after(series(values))
    np.testing.assert_array_equal(quantiles, naive.quantiles_of(fresh))
    assert state.time == fresh.time == 260 * 3600


def test_a_gap_is_filled_from_the_season():
    naive, values = Naive(TASK), load(200)
    _, filled = naive.step(naive.state_after(series(values)), math.nan)
    _, told = naive.step(naive.state_after(series(values)), float(values[200 - 168]))
    np.testing.assert_array_equal(filled[:, 1], told[:, 1])


def distances(quantiles):
    return quantiles - quantiles[:, [1]]


@pytest.mark.parametrize("seasonal", [True, False])
def test_a_missing_step_is_no_error_of_nothing(seasonal):
    naive = Naive(TASK, seasonal)
    state = naive.state_after(series(1000 + load(260)))
    _, gap = naive.step(state, math.nan)
    np.testing.assert_allclose(distances(gap), distances(naive.quantiles_of(state)))


@pytest.mark.parametrize(("gap", "known"), [(24, 0), (168, 0), (168, 24), (1000, 24)])
def test_quantiles_after_a_gap_lie_about_as_far_apart_as_before_it(gap, known):
    naive, values = Naive(TASK), 1000 + load(1000 + gap + known)
    values[1000 : 1000 + gap] = math.nan
    before, after = (naive.quantiles_of(naive.state_after(series(part))) for part in (values[:1000], values))
    assert (distances(after)[:, [0, 2]] / distances(before)[:, [0, 2]] > 0.5).all()


def test_a_state_of_a_release_that_did_not_tell_what_was_filled_is_gone_on_with():
    naive, values = Naive(TASK), load(260)
    values[250:] = math.nan
    kept = msgspec.msgpack.decode(naive.begin(series(values)).state())
    track, state = naive.resume(msgspec.msgpack.encode(kept[:-1]))
    assert not state.filled.any() and naive.resume(msgspec.msgpack.encode(kept))[1].filled.sum() == 10
    track.step(80.0)
    assert np.isfinite(track.quantiles).all()


def test_a_step_leaves_the_state_it_came_from_alone():
    naive = Naive(TASK)
    state = naive.state_after(series(load(100)))
    before = state.values.copy()
    naive.step(state, 5.0)
    np.testing.assert_array_equal(state.values, before)


@pytest.mark.parametrize("value", [-1.0, math.inf])
def test_a_load_that_cannot_be_is_refused(value):
    naive = Naive(TASK)
    with pytest.raises(SeriesError, match="records/s"):
        naive.step(naive.state_after(series([1.0])), value)
    with pytest.raises(SeriesError, match="step 1: "):
        naive.state_after(series([1.0, value]))


def test_a_history_of_another_step_is_refused():
    with pytest.raises(SeriesError, match="steps of 60 s"):
        Naive(TASK).state_after(Series(0.0, 60.0, np.ones(3)))


@pytest.mark.parametrize(("field", "value"), [("step_s", 0.0), ("horizon", 0), ("levels", (0.5, 0.4)), ("levels", ())])
def test_a_task_that_cannot_be_is_refused(field, value):
    with pytest.raises(SeriesError, match=field):
        Task(**{"step_s": 60.0, "horizon": 1, "levels": (0.5,), field: value})


def test_yesterday_stays_yesterday_with_weeks_of_history():
    values = np.arange(24.0 * 16)
    naive = Naive(TASK, weekly=False)
    state = naive.state_after(series(values))
    assert (naive.kind, naive.basis(state)) == ("yesterday", "same time yesterday")
    middle = TASK.levels.index(0.5)
    np.testing.assert_allclose(naive.quantiles_of(state)[:, middle], values[-24 : -24 + TASK.horizon])
