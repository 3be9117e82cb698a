import math

import numpy as np
import pytest

from models.forecast.core.series import Series
from pipelines.serve.fleet import Champion, JobState
from tidecast.messages import MetricSample

STEP = 60.0


class Last:
    """A forecaster that repeats the last value: the smallest thing with the interface."""

    kind, step_s, horizon, levels = "last", STEP, 2, (0.5, 0.9)

    def init(self, history: Series):
        known = [v for v in history.values if not math.isnan(v)]
        return known[-1] if known else math.nan

    def step(self, state, value):
        state = state if math.isnan(value) else value
        return state, self.current(state)

    def current(self, state):
        return np.full((2, 2), state)

    def trust(self, state):
        return "none" if math.isnan(state) else "last value"


def sample(time, rate, span=STEP):
    return MetricSample(
        job="j", kind="interval", time=time, wall_time=time + span, time_scale=60.0, span_s=span, arrival_rps=rate
    )


@pytest.fixture
def champion():
    return Champion("j-forecaster", "3", Last())


def test_without_champion_or_history_there_is_no_forecast(champion):
    state = JobState(STEP)
    assert state.forecast("j", 0.0, 1) is None
    state.crown(champion)
    assert state.forecast("j", 0.0, 1) is None


def test_a_forecast_begins_where_the_last_complete_step_ended(champion):
    state = JobState(STEP)
    state.warm([sample(0, 10), sample(60, 20)])
    state.crown(champion)
    forecast = state.forecast("j", 500.0, 7)
    assert (forecast.time, forecast.epoch, forecast.version, forecast.kind) == (120.0, 7, "3", "last value")
    assert forecast.quantiles == [[20, 20], [20, 20]] and forecast.time_scale == 60.0


def test_warming_at_once_equals_pushing_one_by_one(champion):
    samples = [sample(t, 5 + t % 7, span=20) for t in range(0, 610, 20)]
    warm, pushed = JobState(STEP), JobState(STEP)
    warm.warm(samples)
    for one in samples:
        pushed.push(one)
    assert list(warm.steps) == pytest.approx(list(pushed.steps))
    assert warm.end == pushed.end
    for state in (warm, pushed):
        state.push(sample(620, 100, span=40))
    assert warm.steps[-1] == pytest.approx(pushed.steps[-1])


def test_a_missing_step_stays_missing_and_forecasts_go_on(champion):
    state = JobState(STEP)
    state.warm([sample(0, 10)])
    state.crown(champion)
    assert state.push(sample(180, 30))
    assert [math.isnan(v) for v in state.steps] == [False, True, True, False]
    assert state.forecast("j", 0.0, 1).quantiles[0] == [30, 30]


def test_the_first_step_ever_starts_the_forecasts(champion):
    state = JobState(STEP)
    state.crown(champion)
    assert not state.push(sample(6000, 10, span=30))
    assert state.push(sample(6030, 20, span=30))
    assert state.forecast("j", 0.0, 1).quantiles[0] == [15, 15]


def test_old_samples_change_nothing(champion):
    state = JobState(STEP)
    state.warm([sample(t, 10) for t in (0, 60, 120, 180)])
    state.crown(champion)
    before = list(state.steps)
    assert not state.push(sample(0, 999))
    assert list(state.steps) == before


def test_a_swap_keeps_the_history(champion):
    state = JobState(STEP)
    state.warm([sample(0, 10), sample(60, 20)])
    state.crown(champion)
    state.crown(Champion("j-forecaster", "4", Last()))
    assert state.forecast("j", 0.0, 1).version == "4"
    assert state.forecast("j", 0.0, 1).quantiles[0] == [20, 20]


def test_a_broken_forecast_is_not_published(champion):
    class Broken(Last):
        def current(self, state):
            return np.full((2, 2), math.nan)

    state = JobState(STEP)
    state.warm([sample(0, 10)])
    state.crown(Champion("j-forecaster", "5", Broken()))
    assert state.forecast("j", 0.0, 1) is None
