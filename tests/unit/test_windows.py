import math

import numpy as np
import pytest

from models.forecast.forecaster import Task
from models.forecast.series import Series, SeriesError
from models.forecast.windows import View, pack, season_of, windows

TASK = Task(14_400.0, 3, (0.5,))  # a day is 6 steps, a week 42
VIEW = View(TASK, 4, 6)


def counting(steps):
    return Series(0.0, 14_400.0, np.arange(float(steps)))


def test_channels_are_the_lags_they_are_called():
    newest = np.arange(VIEW.needs, dtype=float)[None]  # the value is its own index; the newest is 15
    rate, season, yesterday, before = pack(VIEW, newest)[0].T
    assert rate.tolist() == [12, 13, 14, 15, 0, 0, 0]
    assert season.tolist() == yesterday.tolist() == [6, 7, 8, 9, 10, 11, 12]
    assert before.tolist() == [0, 1, 2, 3, 4, 5, 6]


def test_a_horizon_beyond_a_day_looks_back_whole_days():
    view = View(Task(14_400.0, 8, (0.5,)), 2, 6)
    rows = pack(view, np.arange(view.needs, dtype=float)[None])[0]
    newest = view.needs - 1
    assert rows[2:, 2].max() <= newest
    assert rows[-1, 2] == newest + 8 - 12


def test_a_row_never_sees_beyond_its_moment():
    series = counting(30)
    packed, outcomes = windows(VIEW, series)
    assert len(packed) == len(outcomes) == 30 - VIEW.needs - 3 + 1
    moment = packed[:, VIEW.context - 1, 0]
    np.testing.assert_array_equal(outcomes, moment[:, None] + [1, 2, 3])
    assert (packed[:, :, 0].max(axis=1) <= moment).all() and (packed[..., 1:].max(axis=(1, 2)) <= moment).all()


def test_gaps_are_filled_as_inputs_and_missing_as_outcomes():
    series = counting(30)
    series.values[20] = math.nan
    packed, outcomes = windows(VIEW, series)
    assert np.isfinite(packed).all()
    assert np.isnan(outcomes).sum() == 3


def test_leading_gaps_are_no_history_and_a_hole_teaches_nothing():
    led = Series(0.0, 14_400.0, np.append(np.full(50, math.nan), np.arange(30.0)))
    assert len(windows(VIEW, led)[0]) == len(windows(VIEW, counting(30))[0])
    holed = counting(200)
    holed.values[40:160] = math.nan
    assert len(windows(VIEW, holed)[0]) < len(windows(VIEW, counting(200))[0]) - 110


def test_too_short_says_what_is_needed():
    with pytest.raises(SeriesError, match=r"18 steps.*need at least 19"):
        windows(VIEW, counting(18))
    assert len(windows(VIEW, counting(19))[0]) == 1


def test_the_season_is_a_week_once_there_are_two():
    assert (season_of(TASK, 83), season_of(TASK, 84)) == (6, 42)
