"""The blend at every step from a second to a day and any horizon: stepped it says what it says at once, and it is blind
to what is to come."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from online_cases import load, spoilt

from configs.bounds import DAY_S
from models.forecast.blend.blend import Blend
from models.forecast.core.conformal import KEPT
from models.forecast.core.forecaster import Task, fill_gaps
from models.forecast.core.series import Series
from models.forecast.online import Online
from tests.fakes.plain_blend.blend import Blend as PlainBlend

STEPS_S = [1.0, 7.0, 60.0, 450.0, 3600.0, 3 * 3600.0, 6 * 3600.0, DAY_S / 2, DAY_S]
TASKS = st.builds(Task, st.sampled_from(STEPS_S), st.integers(1, 96), st.just((0.1, 0.5, 0.9)))


def jumpy(task, steps, seed):
    """A load with lasting breaks, so that the jump filter has something to do at every time of day."""
    values = spoilt(load(steps, seed, max(task.day, 2)), seed)
    values[0] = 90.0
    return values


def stepped(task, values):
    online = Online(Blend(task))
    online.admit("a", Series(0.0, task.step_s, np.empty(0)))
    return [online.step("a", value) for value in values]


def said_along(task, values):
    """What the plain blend says after each step."""
    history = Series(0.0, task.step_s, values)
    return [carried.quantiles for carried in PlainBlend(task).along(history, len(values))]


def assert_same_at_once_and_stepped(task, steps, seed, silent=0):
    values = jumpy(task, steps, seed)
    values[:silent] = 0.0
    mine, plain = stepped(task, values), said_along(task, values)
    near = {"rtol": 1e-6, "atol": 1e-6 * float(np.nanmax(values))}
    at_once = Blend(task).begin(Series(0.0, task.step_s, values)).quantiles
    np.testing.assert_allclose(mine[-1], at_once, **near)
    for i in (*range(0, steps, max(steps // 3, 1)), steps - 1):
        np.testing.assert_allclose(mine[i], plain[i], **near)


@settings(max_examples=10, deadline=None)
@given(TASKS, st.integers(1, 60), st.integers(0, 10**6))
def test_stepped_it_says_what_it_says_at_once(task, steps, seed):
    assert_same_at_once_and_stepped(task, steps, seed)


@pytest.mark.parametrize(("hours", "horizon"), [(6, 12), (24, 5), (1, 48)])
def test_a_horizon_beyond_a_day_is_as_correct_as_a_short_one(hours, horizon):
    assert_same_at_once_and_stepped(Task(3600.0 * hours, horizon, (0.1, 0.5, 0.9)), 64, 3)


def test_a_load_that_begins_with_zeros_is_read_alike():
    assert_same_at_once_and_stepped(Task(3600.0, 12, (0.1, 0.5, 0.9)), 96, 3, silent=40)


@pytest.mark.parametrize("rest", [50, KEPT + 50])
def test_a_load_that_rests_for_days_or_weeks_is_read_alike(rest):
    task = Task(3600.0, 12, (0.1, 0.5, 0.9))
    values = jumpy(task, 150 + rest, 3)
    values[100 : 100 + rest] = 0.0
    mine, plain = stepped(task, values), said_along(task, values)
    for at in (90 + rest, 110 + rest, 150 + rest):
        np.testing.assert_allclose(mine[at - 1], plain[at - 1], rtol=1e-6, atol=1e-6 * np.nanmax(values))


@settings(max_examples=10, deadline=None)
@given(TASKS, st.integers(2, 60), st.integers(0, 10**6), st.data())
def test_what_comes_later_changes_no_earlier_forecast(task, steps, seed, data):
    values = jumpy(task, steps, seed)
    at = data.draw(st.integers(1, steps - 1))
    other = values.copy()
    other[at:] = 1e4 * (1 + np.arange(steps - at) % 3)
    for one, two in zip(stepped(task, values)[:at], stepped(task, other)[:at], strict=True):
        np.testing.assert_array_equal(one, two)
    plain = PlainBlend(task)
    along = [
        plain.experts.follow(plain.experts.start(), fill_gaps(each, task), np.isfinite(each))[1]
        for each in (values, other)
    ]
    np.testing.assert_allclose(along[0][:at], along[1][:at], rtol=1e-9)
