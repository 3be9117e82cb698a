"""What is kept of a job is enough: restored, it goes on bit by bit; and what is no such state is refused."""

import math

import numpy as np
import pytest
from online_cases import KINDS, forecaster, load, series, spoilt

from models.forecast.core.series import Series, SeriesError
from models.forecast.online import Online, OnlineError

AT, STEPS = 230, 40


def values(name, seed=2):
    """A history with gaps of its own, what was stepped through before the state was kept, and what came then."""
    task = forecaster(name).task
    return spoilt(load(AT + 2 * STEPS, seed, task.day), seed), task


def kept(name, seed=2):
    found, task = values(name, seed)
    online = Online(forecaster(name))
    online.admit("a", series(found[:AT], task))
    for value in found[AT : AT + STEPS]:
        online.step("a", value)
    return online, online.state("a"), found, task


@pytest.mark.parametrize("name", KINDS)
def test_restored_it_goes_on_with_the_very_same_bits(name):
    online, state, found, task = kept(name)
    again = Online(forecaster(name))
    again.restore("b", state, series(found[: AT + STEPS], task))
    np.testing.assert_array_equal(again.current("b"), online.current("a"))
    assert again.basis("b") == online.basis("a") and again.state("b") == state
    for value in found[AT + STEPS :]:
        np.testing.assert_array_equal(again.step("b", value), online.step("a", value))
    assert again.state("b") == online.state("a")


@pytest.mark.parametrize("name", KINDS)
def test_an_older_state_catches_up_on_a_longer_history(name):
    online, state, found, task = kept(name)
    for value in found[AT + STEPS :]:
        online.step("a", value)
    again = Online(forecaster(name))
    again.restore("a", state, series(found, task))
    np.testing.assert_array_equal(again.current("a"), online.current("a"))
    assert again.state("a") == online.state("a")


@pytest.mark.parametrize("name", KINDS)
def test_no_older_samples_are_asked_for(name):
    online, state, _, task = kept(name)
    again, end = Online(forecaster(name)), AT + STEPS
    again.restore("a", state, series([], task, end * task.step_s))
    np.testing.assert_array_equal(again.step("a", 90.0), online.step("a", 90.0))


@pytest.mark.parametrize("name", KINDS)
def test_a_job_that_has_seen_nothing_is_restored_too(name):
    task = forecaster(name).task
    online, again = Online(forecaster(name)), Online(forecaster(name))
    online.admit("a", series([], task))
    online.step("a", math.nan)
    again.restore("a", online.state("a"), series([math.nan], task))
    for value in (math.nan, 5.0, 7.0):
        np.testing.assert_array_equal(again.step("a", value), online.step("a", value))


@pytest.mark.parametrize("name", ["gru", "seasonal_naive", "ridge", "blend", "ets"])
def test_what_is_no_state_is_refused_and_leaves_the_job_as_it_was(name):
    online, state, found, task = kept(name)
    whole, before = series(found[: AT + STEPS], task), online.current("a")
    other = Online(forecaster("yesterday" if name != "yesterday" else "gru"))
    with pytest.raises(OnlineError, match="the state is of"):
        other.restore("a", state, whole)
    assert "a" not in other
    for broken in (b"", b"nonsense", state[:-3], state + b"x"):
        with pytest.raises(OnlineError):
            online.restore("a", broken, whole)
    with pytest.raises(OnlineError, match="Give the samples"):
        online.restore("a", state, series(found[:AT], task))
    with pytest.raises(OnlineError, match="Give the samples"):
        online.restore("a", state, series(found[: AT + STEPS], task, 0.5 * task.step_s))
    twice = Series(whole.start, 2 * task.step_s, whole.values)
    with pytest.raises(OnlineError, match="steps of"):
        online.restore("a", state, twice)
    with pytest.raises(SeriesError, match="not negative"):
        online.restore("a", state, series([*found[: AT + STEPS], 5.0, -1.0], task))
    np.testing.assert_array_equal(online.current("a"), before)
    assert online.state("a") == state
