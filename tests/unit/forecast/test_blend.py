import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.forecast.baselines.naive import Naive
from models.forecast.blend.blend import Blend
from models.forecast.core.conformal import KEPT
from models.forecast.core.forecaster import Task
from models.forecast.core.series import Series, SeriesError
from models.forecast.selection.backtest import roll
from models.kinds import describe, revive
from tests.fakes.plain_blend.experts import Experts

HOURS = Task(3600.0, 3, (0.05, 0.5, 0.95))
BLEND = Blend(HOURS)


def series(values, step_s=3600.0):
    return Series(0.0, step_s, np.asarray(values, dtype=float))


def load(steps, seed=1, level=100.0):
    hours = np.arange(steps)
    wave = 1 + 0.5 * np.sin(2 * np.pi * hours / 24) + 0.3 * (hours // 24 % 7 >= 5)
    return level * wave * np.exp(np.random.default_rng(seed).normal(0, 0.05, steps))


def stepped(values):
    track, made = BLEND.begin(series([])), []
    for value in values:
        track.step(float(value))
        made.append(track.quantiles.copy())
    return track, made


@settings(max_examples=6, deadline=None)
@given(st.integers(1, 260), st.sets(st.integers(0, 259), max_size=20))
def test_a_history_taken_at_once_is_the_history_stepped_through(steps, gaps):
    values = load(steps)
    values[[gap for gap in gaps if gap < steps]] = np.nan
    at_once = BLEND.begin(series(values))
    one_by_one, _ = stepped(values)
    np.testing.assert_allclose(one_by_one.quantiles, at_once.quantiles, rtol=1e-9, atol=1e-9)
    for track in (one_by_one, at_once):
        track.step(77.0)
    np.testing.assert_allclose(one_by_one.quantiles, at_once.quantiles, rtol=1e-9, atol=1e-9)
    assert one_by_one.basis() == at_once.basis()


def test_every_forecast_rises_and_is_not_negative():
    values = np.random.default_rng(0).poisson(0.7, 300).astype(float)
    values[150:200] = 0.0
    values[250] = 500.0
    made = np.stack(stepped(values)[1])
    assert np.isfinite(made).all() and (made >= 0).all() and (np.diff(made, axis=-1) >= 0).all()


def test_a_lost_step_after_a_lasting_change_moves_no_forecast():
    values = load(373)
    values[300:] /= 3
    known = BLEND.begin(series(values)).quantiles[:, 1]
    values[-1] = math.nan
    np.testing.assert_allclose(BLEND.begin(series(values)).quantiles[:, 1], known, rtol=0.1)


def test_nothing_seen_is_not_zero_and_the_first_value_is_repeated():
    track = BLEND.begin(series([]))
    assert np.isnan(track.quantiles).all() and track.basis() == "none"
    track.step(math.nan)
    assert np.isnan(track.quantiles).all() and track.basis() == "none"
    track.step(40.0)
    np.testing.assert_allclose(track.quantiles, 40.0)
    assert track.basis() == "last value"
    assert BLEND.begin(series(load(60))).basis() == "blend"


@pytest.mark.parametrize("value", [0.0, 5.0, 1e9])
def test_a_constant_load_stays_what_it_is(value):
    quantiles = BLEND.begin(series(np.full(250, value))).quantiles
    np.testing.assert_allclose(quantiles, value, rtol=1e-6)


def test_after_days_without_any_record_the_first_load_is_forecast_as_it_is():
    values = np.concatenate([np.zeros(72), load(48)])
    made = np.stack(stepped(values)[1])
    assert (made[:72] == 0).all() and (np.diff(made, axis=-1) >= 0).all()
    assert made[72:].max() < 3 * values.max()  # an error of a load of 0 has no unit, and would count as a million


def test_after_weeks_without_any_record_the_first_load_is_forecast_with_a_spread():
    track = BLEND.begin(series(np.concatenate([load(400), np.zeros(KEPT + 100)])))
    for value in load(12, seed=2):
        track.step(float(value))
        assert (np.ptp(track.quantiles, axis=1) > 0.1 * value).all()


@pytest.mark.parametrize("share", [0.0, 0.02])
def test_after_a_weekend_at_rest_the_first_monday_is_forecast_in_its_size(share):
    half_hours = np.arange(48 * 14)
    busy = (half_hours % 48 >= 16) & (half_hours % 48 < 36) & (half_hours // 48 % 7 < 5)
    noise = 1 + 0.03 * np.random.default_rng(0).normal(size=len(busy))
    older, held = series(np.where(busy, 2000 * (1 + 0.2 * np.sin(half_hours / 5)), 2000 * share) * noise, 1800.0).split(
        48 * 7
    )
    found = roll(Blend(Task(1800.0, 12, (0.05, 0.5, 0.95))), older, held)
    assert found.quantiles.max() < 5 * held.values.max()


def test_it_is_ahead_of_every_naive_forecast_on_a_load_with_seasons():
    older, held = series(load(24 * 28)).split(24 * 4)
    pinball = {
        rival.kind: roll(rival, older, held).scores()["pinball"]
        for rival in (BLEND, Naive(HOURS), Naive(HOURS, weekly=False), Naive(HOURS, seasonal=False))
    }
    assert pinball.pop("blend") < 0.85 * min(pinball.values())


@pytest.mark.parametrize("factor", [1 / 30, 2.0])
def test_a_day_after_a_lasting_break_it_is_no_worse_than_the_last_value(factor):
    values = load(24 * 24)
    values[24 * 20 :] *= factor
    older, held = series(values).split(24 * 3)  # the break is a day ago
    rmse = [roll(rival, older, held).scores()["rmse_h1"] for rival in (BLEND, Naive(HOURS, seasonal=False))]
    assert rmse[0] <= 1.1 * rmse[1]


def test_a_load_in_another_unit_gives_the_same_forecast_in_that_unit():
    values = load(400)
    here, there = (BLEND.begin(series(factor * values)).quantiles for factor in (1.0, 1e-3))
    np.testing.assert_allclose(1e3 * there, here, rtol=1e-9)


def test_it_is_deterministic_and_stepping_changes_no_other_track():
    track = BLEND.begin(series(load(300)))
    kept, before = track.state(), track.quantiles.copy()
    first, second, third = track, BLEND.resume(kept)[0], BLEND.begin(series(load(300)))
    for one in (first, second):
        one.step(90.0)
    np.testing.assert_array_equal(first.quantiles, second.quantiles)
    np.testing.assert_array_equal(BLEND.resume(kept)[0].quantiles, before)
    np.testing.assert_array_equal(third.quantiles, before)


@pytest.mark.parametrize("value", [-1.0, math.inf])
def test_what_is_no_load_is_refused(value):
    with pytest.raises(SeriesError, match="not negative"):
        BLEND.begin(series(load(30))).step(value)


def test_it_steps_by_the_second():
    blend = Blend(Task(1.0, 5, (0.1, 0.5, 0.9)))
    seconds = np.arange(200)
    track = blend.begin(series(50 + 10 * np.sin(seconds / 9), 1.0))
    ahead = 50 + 10 * np.sin(np.arange(200, 205) / 9)
    np.testing.assert_allclose(track.quantiles[:, 1], ahead, rtol=0.05)


def test_every_expert_speaks_once_there_is_a_history():
    experts = Experts(HOURS)
    values = load(24 * 10)
    learnt, said, levels, _ = experts.follow(experts.start(), values, np.ones(len(values), dtype=bool))
    assert said.shape == (240, experts.count, 3)
    assert np.isfinite(said[-1]).all() and np.isfinite(said[0]).all(axis=1).tolist().count(True) == 3
    assert levels[-1] == pytest.approx(values[-24:].mean())
    assert learnt.seen == 240 and learnt.taught
    rows = [part.rows for each in learnt.regressions for part in each.parts]
    assert min(rows) > 240 - 3 - 4 and max(rows) == 240 - 3  # a cycle is 4 steps
    np.testing.assert_allclose(said[-1, 3], values[-24:-21])  # same time yesterday
    np.testing.assert_allclose(said[-1, 4], values[-168:-165])  # same time last week


def test_rows_that_cannot_be_complete_yet_are_counted_without_being_made():
    values, every_row = load(200), Blend(HOURS)
    values[[30, 31, 100]] = np.nan
    for ridge in every_row.experts.ridges:
        ridge.__dict__["reach"] = -HOURS.horizon  # each is looked at from the first step on
    tracks = [blend.begin(series([])) for blend in (Blend(HOURS), every_row)]
    for at, value in enumerate(values):
        for track in tracks:
            track.step(float(value))
        if at in (0, 5, 23, 40, 167, 199):
            assert tracks[0].state() == tracks[1].state()


def test_it_is_its_task_and_nothing_else():
    described = json.loads(json.dumps(describe(BLEND)))
    assert revive(described) == BLEND
