import numpy as np
import pytest

from models.forecast.backtest import roll
from models.forecast.forecaster import Task
from models.forecast.naive import Naive
from models.forecast.series import Series, SeriesError

TASK = Task(3600.0, 3, (0.5, 0.9))


def test_every_origin_meets_what_came_after_it():
    older, held = Series(0.0, 3600.0, np.arange(10.0)).split(4)
    found = roll(Naive(TASK, seasonal=False), older, held)
    np.testing.assert_equal(found.actual, [[6, 7, 8], [7, 8, 9], [8, 9, np.nan], [9, np.nan, np.nan]])
    np.testing.assert_equal(found.median, [[5] * 3, [6] * 3, [7] * 3, [8] * 3])
    assert found.figures()["rmse_h1"] == 1.0 and found.figures()["rmse_h3"] == 3.0
    assert len(found.pinball_by_horizon()) == 3


def test_held_out_steps_must_follow():
    older, held = Series(0.0, 3600.0, np.arange(10.0)).split(4)
    with pytest.raises(SeriesError, match="Split one series"):
        roll(Naive(TASK), held, older)
    with pytest.raises(SeriesError, match="0 held-out"):
        roll(Naive(TASK), older, Series(older.end, 3600.0, np.empty(0)))
