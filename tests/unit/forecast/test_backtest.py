import numpy as np
import pytest

from models.forecast.baselines.naive import Naive
from models.forecast.core.forecaster import Task
from models.forecast.core.series import Series, SeriesError
from models.forecast.selection.backtest import Backtest, roll

TASK = Task(3600.0, 3, (0.5, 0.9))


def test_every_origin_meets_what_came_after_it():
    older, held = Series(0.0, 3600.0, np.arange(10.0)).split(4)
    found = roll(Naive(TASK, seasonal=False), older, held)
    np.testing.assert_equal(found.actual, [[6, 7, 8], [7, 8, 9], [8, 9, np.nan], [9, np.nan, np.nan]])
    np.testing.assert_equal(found.median, [[5] * 3, [6] * 3, [7] * 3, [8] * 3])
    assert found.scores()["rmse_h1"] == 1.0 and found.scores()["rmse_h3"] == 3.0
    assert len(found.pinball_by_horizon()) == 3


def test_held_out_steps_must_follow():
    older, held = Series(0.0, 3600.0, np.arange(10.0)).split(4)
    with pytest.raises(SeriesError, match="Split one series"):
        roll(Naive(TASK), held, older)
    with pytest.raises(SeriesError, match="0 held-out"):
        roll(Naive(TASK), older, Series(older.end, 3600.0, np.empty(0)))


def test_every_score_of_a_horizon_by_hand():
    found = Backtest(
        levels=(0.1, 0.5, 0.9),
        start=0.0,
        step_s=3600.0,
        actual=np.array([[10.0, 20.0], [20.0, np.nan]]),
        quantiles=np.array([[[8.0, 9.0, 12.0], [10.0, 20.0, 30.0]], [[10.0, 14.0, 18.0], [1.0, 2.0, 3.0]]]),
    )
    first, second = found.scores_ahead(1), found.scores_ahead(2)
    # Errors 1 and 6. Pinball of 10 at (8, 9, 12): 0.2, 0.5, 0.2; of 20 at (10, 14, 18): 1, 3, 1.8.
    assert first["rmse"] == pytest.approx(np.sqrt(37 / 2)) and first["mae"] == 3.5
    assert first["wape"] == pytest.approx(7 / 30)
    assert first["smape_sum"] == pytest.approx(50 * (1 / 19 + 6 / 34))
    assert first["smape"] == first["smape_half"] == pytest.approx(2 * first["smape_sum"])
    assert first["pinball"] == pytest.approx((0.2 + 0.5 + 0.2 + 1 + 3 + 1.8) / 6)
    assert first["coverage"] == {"0.8": 0.5} and second["coverage"] == {"0.8": 1.0}
    assert second["rmse"] == 0.0
    with pytest.raises(SeriesError, match=r"90% interval needs 0\.05 and 0\.95"):
        found.central_interval(0.9)


def test_forecasts_of_one_step_are_averaged():
    made = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    found = Backtest((0.5,), 0.0, 3600.0, np.zeros((3, 2)), made[..., None])
    np.testing.assert_allclose(found.mean_of_medians(2), [1.0, (3 + 2) / 2, (5 + 4) / 2])
    np.testing.assert_allclose(found.mean_of_medians(1), [1.0, 3.0, 5.0])


def test_losses_are_summed_by_the_step_that_was_forecast():
    made = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    actual = np.array([[2.0, np.nan], [np.nan, 8.0], [8.0, np.nan]])
    found = Backtest((0.5,), 0.0, 3600.0, actual, made[..., None])
    # Of the third step two forecasts: 4 issued before the second, 5 before the third.
    np.testing.assert_allclose(found.losses_by_step(), [0.5, np.nan, (8 - 5) / 2 + (8 - 4) / 2])
    rolled = roll(Naive(TASK, seasonal=False), *Series(0.0, 3600.0, np.arange(10.0)).split(4))
    pairs = np.isfinite(rolled.actual).sum()
    assert rolled.losses_by_step().sum() == pytest.approx(rolled.scores()["pinball"] * pairs)
