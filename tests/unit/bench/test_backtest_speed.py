import numpy as np
import pytest

from models.twin.experiment.scenario import split_trace
from models.twin.experiment.setup import Setup
from pipelines.backtest.load import read_load
from pipelines.bench.twin.backtest_speed import sixty_days


def test_the_load_that_is_timed_is_the_newest_sixty_days_in_steps_of_five_minutes():
    load, whole = sixty_days().series, read_load("nyc_taxi").series
    assert len(load) == 60 * 288 and load.step_s == 300.0 and np.isfinite(load.values).all()
    assert load.values[-1] == whole.values[-1] and load.values[-7] == pytest.approx(whole.values[-2])
    assert load.start + (len(load) - 1) * 300.0 == whole.start + (len(whole) - 1) * whole.step_s
    _, test = split_trace("load", load, Setup())
    assert len(test) == 5 * 288, "less is judged than a backtest judges at most"
