import numpy as np

from models.forecast.baselines.naive import Naive
from models.forecast.blend.blend import Blend
from models.forecast.core.forecaster import Task
from models.forecast.core.series import Series
from models.forecast.selection.backtest import roll

TASK = Task(1800.0, 6, (0.1, 0.5, 0.9))
DAY = 48


def nights(days, seed=3):
    """Counts by day, nothing at all by night."""
    steps = np.arange(days * DAY)
    wave = np.maximum(np.sin(2 * np.pi * (steps % DAY - 12) / DAY), 0.0)
    return np.random.default_rng(seed).poisson(40 * wave).astype(float)


def batches(days, seed=4):
    """A quiet load with a batch every six hours, in steps of 5 minutes."""
    steps = np.arange(days * 288)
    return np.where(steps % 72 < 3, 500.0, 5.0) + np.random.default_rng(seed).poisson(3, len(steps))


def rmses(values, held, task):
    """(4, 2): of the blend and the naive forecasts, one step ahead and as far ahead as the task reaches."""
    older, newer = Series(0.0, task.step_s, values).split(held)
    naive = (Naive(task, seasonal, weekly) for seasonal, weekly in ((False, False), (True, False), (True, True)))
    made = [roll(forecaster, older, newer) for forecaster in (Blend(task), *naive)]
    return np.array([[each.scores_ahead(h)["rmse"] for h in (1, task.horizon)] for each in made])


def test_a_load_that_rests_every_night_is_foreseen_in_the_evening():
    blend, *naive = rmses(nights(12), 3 * DAY, TASK)
    assert (blend < np.min(naive, axis=0)).all()


def test_a_quiet_night_is_no_lasting_break():
    older, newer = Series(0.0, TASK.step_s, nights(6)).split(2 * DAY)
    track, trusted = Blend(TASK).begin(older), set()
    for value in newer.values:
        track.step(float(value))
        trusted.add(track.basis())
    assert trusted == {"blend"}


def test_experts_that_wake_with_the_second_week_do_no_harm():
    # The weekly ones first speak among the held steps, and have never seen a batch.
    blend, *naive = rmses(batches(8), 288 + 144, Task(300.0, 2, (0.1, 0.5, 0.9)))
    assert (blend < np.min(naive, axis=0)).all()
