import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.forecast.blend.lags import RECENT, Lags
from models.forecast.core.forecaster import Task
from tests.fakes.plain_blend.reading import gather

HOURS = Task(3600.0, 2, (0.5,))  # a day is 24 steps, a week 168


def columns(lags):
    return lags.seasons[1].first + lags.seasons[1].size


def test_what_is_read_at_a_moment():
    lags = Lags(HOURS)
    values = np.arange(600.0)
    (row,) = gather(lags, values, np.array([599]))
    day, week = lags.seasons
    assert len(row) == columns(lags)
    assert row[:RECENT].tolist() == [599.0 - i for i in range(RECENT)]
    assert row[lags.near] == 598.0  # mean of 599, 598, 597
    assert row[lags.near + 1] == np.mean(values[-24:])
    assert row[day.lag(1)] == 576.0 and row[day.lag(0)] == 575.0 and row[day.lag(-2)] == 573.0
    assert row[week.lag(2)] == 433.0
    assert row[day.lag_anchor] == 574.0  # the mean over three steps, a day ago
    assert row[day.profile(1)] == np.mean([600 - 24 * k for k in range(1, 8)])
    assert row[week.profile(1)] == np.mean([600 - 168 * k for k in range(1, 4)])
    assert row[week.profile_anchor] == np.mean([598 - 168 * k for k in range(1, 4)])


def test_the_windows_span_from_the_recent_steps_to_a_day():
    assert Lags(HOURS).windows == (24,)
    assert Lags(Task(300.0, 12, (0.5,))).windows == (288, 72)
    assert Lags(Task(1.0, 12, (0.5,))).windows == (86400, 21600, 5400, 1350, 337, 84)


def test_before_the_series_began_there_is_nothing_and_means_are_over_what_there_is():
    lags = Lags(HOURS)
    values = np.concatenate([np.full(400, np.nan), [3.0, 5.0]])
    (row,) = gather(lags, values, np.array([401]))
    assert row[:2].tolist() == [5.0, 3.0] and np.isnan(row[2:RECENT]).all()
    assert row[lags.near] == row[lags.near + 1] == 4.0
    assert np.isnan(row[lags.seasons[0].first :]).all()
    (short,) = gather(lags, values[400:], np.array([1]))
    np.testing.assert_equal(short, row)


@pytest.mark.parametrize("step_s", [1800.0, 3600.0, 43_200.0])
@given(st.integers(0, 40), st.integers(1, 30))
def test_no_column_looks_ahead(step_s, at, horizon):
    lags = Lags(Task(step_s, horizon, (0.5,)))
    values = np.random.default_rng(at).uniform(1, 2, 2000)
    moment = np.array([1900 + at])
    changed = np.where(np.arange(2000) > moment, -7.0, values)
    np.testing.assert_equal(gather(lags, changed, moment), gather(lags, values, moment))


def test_many_moments_at_once_are_the_single_ones():
    lags = Lags(HOURS)
    values = np.random.default_rng(2).uniform(0, 9, 700)
    at = np.array([0, 30, 200, 699])
    single = np.concatenate([gather(lags, values, at[i : i + 1]) for i in range(len(at))])
    np.testing.assert_allclose(gather(lags, values, at), single, rtol=1e-12)


def test_the_context_is_enough():
    lags = Lags(HOURS)
    values = np.random.default_rng(3).uniform(0, 9, 900)
    cut = values[-lags.context :]
    whole = gather(lags, values, np.array([899]))
    np.testing.assert_allclose(gather(lags, cut, np.array([len(cut) - 1])), whole, rtol=1e-12)


def test_seconds_a_day_ago_are_means_over_minutes():
    lags = Lags(Task(60.0, 1, (0.5,)))  # five minutes are five steps
    values = np.zeros(3 * 1440)
    values[-1440 - 2 : -1440 + 3] = [0, 10, 20, 30, 40]  # around a day before the newest step's end
    (row,) = gather(lags, values, np.array([len(values) - 1]))
    assert row[lags.seasons[0].lag(1)] == 20.0
