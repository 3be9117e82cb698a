import numpy as np
import pytest

from models.forecast.blend.lags import Lags
from models.forecast.blend.ridge import Ridge, learn_rows, without_rows
from models.forecast.core.forecaster import Task
from tests.fakes.plain_blend.reading import backward, gather, predict

LAGS = Lags(Task(3600.0, 2, (0.5,)))
KINDS = [
    ("none", "level", "identity"),
    ("day", "level", "root"),
    ("day", "own level", "log"),
    ("day", "season", "identity"),
    ("week", "level", "log"),
    ("week", "own level", "root"),
    ("week", "season", "log"),
]


def load(steps, seed=0):
    hours = np.arange(steps)
    slow = np.random.default_rng(seed).normal(0, 1, steps).cumsum()
    return 100 + 40 * np.sin(2 * np.pi * hours / 24) + slow


def rows(values, first, last):
    at = np.arange(first, last)
    outcomes = np.stack([values[at + 1], values[at + 2]], axis=1)
    return gather(LAGS, values, at), np.full(len(at), 100.0), outcomes


@pytest.mark.parametrize(("season", "base", "scale"), KINDS)
def test_it_learns_a_daily_wave_under_drift(season, base, scale):
    ridge, values = Ridge(LAGS, season, base, scale), load(900)
    moments = learn_rows(ridge, without_rows(ridge), *rows(values, 200, 600))
    moments = learn_rows(ridge, moments, *rows(values, 600, 700))  # solved again: the spread is known now
    gathered, levels, outcomes = rows(values, 700, 890)
    errors = predict(ridge, moments.coefficients, gathered, levels) - outcomes
    last = values[700:890, None] - outcomes
    assert np.sqrt((errors**2).mean()) < 0.4 * np.sqrt((last**2).mean())


@pytest.mark.parametrize(("season", "base", "scale"), KINDS)
def test_a_load_seven_times_as_high_gives_a_forecast_seven_times_as_high(season, base, scale):
    ridge, values = Ridge(LAGS, season, base, scale), load(700)
    said = []
    for factor in (1.0, 7.0):
        gathered, levels, outcomes = rows(factor * values, 200, 600)
        moments = learn_rows(ridge, without_rows(ridge), gathered, factor * levels, outcomes=outcomes)
        fresh, at, _ = rows(factor * values, 650, 651)
        said.append(predict(ridge, moments.coefficients, fresh, factor * at))
    np.testing.assert_allclose(said[1], 7 * said[0], rtol=1e-6)


@pytest.mark.parametrize(("season", "fewest"), [("none", 8), ("day", 8), ("week", 24)])
def test_a_weekly_one_is_silent_until_it_has_learnt_from_every_time_of_day(season, fewest):
    ridge, values = Ridge(LAGS, season, "level", "root"), load(300)
    moments = learn_rows(ridge, without_rows(ridge), *rows(values, 200, 200 + fewest - 1))
    assert np.isnan(moments.coefficients).all()
    moments = learn_rows(ridge, moments, *rows(values, 200 + fewest - 1, 200 + fewest))
    assert np.isfinite(moments.coefficients).all()


@pytest.mark.parametrize("scale", ["identity", "root", "log"])
def test_scales_are_undone(scale):
    ridge, ratios = Ridge(LAGS, "none", "level", scale), np.array([0.0, 0.1, 1.0, 30.0])
    np.testing.assert_allclose(backward(ridge, ridge.forward(ratios)), ratios, atol=1e-12)
    assert (backward(ridge, np.array([-9.0, -0.1])) >= 0).all()


def test_rows_in_two_parts_are_the_rows_at_once_and_missing_outcomes_do_not_count():
    ridge, values = Ridge(LAGS, "day", "level", "identity"), load(500)
    once = learn_rows(ridge, without_rows(ridge), *rows(values, 200, 300))
    parts = learn_rows(ridge, learn_rows(ridge, without_rows(ridge), *rows(values, 200, 250)), *rows(values, 250, 300))
    np.testing.assert_allclose(parts.gram, once.gram)
    np.testing.assert_allclose(parts.power, once.power)
    gathered, levels, outcomes = rows(values, 200, 310)
    outcomes[100:] = np.nan
    masked = learn_rows(ridge, without_rows(ridge), gathered, levels, outcomes)
    np.testing.assert_allclose(masked.coefficients, once.coefficients)
    assert masked.count.tolist() == [100.0, 100.0]


def test_some_steps_ahead_learn_as_they_do_among_all():
    ridge, values = Ridge(LAGS, "day", "level", "log"), load(500)
    gathered, levels, outcomes = rows(values, 200, 300)
    whole = learn_rows(ridge, without_rows(ridge), gathered, levels, outcomes)
    ahead = slice(1, 2)
    part = learn_rows(ridge, without_rows(ridge, ahead), gathered, levels, outcomes[:, ahead], ahead)
    np.testing.assert_allclose(part.coefficients, whole.coefficients[ahead])
    assert part.rows == whole.rows == 100


def test_with_a_half_life_of_a_day_a_row_counts_half_after_a_day():
    ridge, values = Ridge(LAGS, "none", "level", "identity", half_life=1.0), load(400)
    first = learn_rows(ridge, without_rows(ridge), *rows(values, 200, 224))
    missing = rows(values, 224, 248)
    second = learn_rows(ridge, first, missing[0], missing[1], np.full((24, 2), np.nan))
    np.testing.assert_allclose(second.gram, first.gram / 2)


def test_too_few_rows_say_nothing_and_no_season_says_nothing():
    ridge, values = Ridge(LAGS, "day", "level", "identity"), load(500)
    few = learn_rows(ridge, without_rows(ridge), *rows(values, 200, 207))
    assert np.isnan(few.coefficients).all()
    early = learn_rows(ridge, without_rows(ridge), *rows(values, 5, 15))
    assert early.count.tolist() == [0.0, 0.0]  # no row reaches a day back
    learnt = learn_rows(ridge, without_rows(ridge), *rows(values, 200, 300))
    gathered, levels, _ = rows(values, 10, 12)
    assert np.isnan(predict(ridge, learnt.coefficients, gathered, levels)).all()


def test_no_forecast_is_far_beyond_what_was_ever_seen():
    ridge, values = Ridge(LAGS, "none", "level", "log"), load(500)
    gathered, levels, _ = rows(values, 200, 210)
    wild = np.full(ridge.columns[1].shape, 50.0)
    assert (predict(ridge, wild, gathered, levels) <= 3 * np.nanmax(gathered, axis=1)[:, None]).all()


@pytest.mark.parametrize(("season", "base", "scale"), KINDS[1:])
def test_no_row_is_complete_until_the_series_is_longer_than_its_season(season, base, scale):
    ridge, values = Ridge(LAGS, season, base, scale), load(400)
    assert ridge.reach == {"day": 24, "week": 168}[season]
    none = learn_rows(ridge, without_rows(ridge), *rows(values, ridge.reach - 4, ridge.reach))
    assert none.rows == 4 and none.count.tolist() == [0.0, 0.0]
    some = learn_rows(ridge, none, *rows(values, ridge.reach, ridge.reach + 8))
    assert some.count.min() > 0
