"""Whatever the kind: followed step by step it says what its plain form says, many jobs what each says alone."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from online_cases import KINDS, PLAIN, forecaster, load, plain, series, spoilt

from models.forecast.core.series import SeriesError
from models.forecast.online import Online, OnlineError

RATES = st.one_of(st.floats(1e-3, 500.0), st.just(0.0), st.just(math.nan), st.floats(1e3, 1e6))
RUNS = st.lists(st.tuples(RATES, st.integers(1, 4)), min_size=1, max_size=8)


def task(name):
    return forecaster(name).task


def past(name, steps, seed=3):
    made = task(name)
    return series(load(steps, seed, made.day), made)


def followed(name, history):
    online = Online(forecaster(name))
    online.admit("a", history)
    return online


def assert_follows(name, history, values):
    """Step by step both ways; what is said, what it rests on, and what is said first."""
    made, online = plain(name), followed(name, history)
    state = made.state_after(history)
    known = np.concatenate([history.values, values])
    scale = np.nanmax(known) if np.isfinite(known).any() else 1.0
    pairs = [(online.current("a"), made.quantiles_of(state))]
    for value in values:
        state, expected = made.step(state, value)
        pairs.append((online.step("a", value), expected))
        assert online.basis("a") == made.basis(state)
    mine, expected = (np.array([pair[i] for pair in pairs]) for i in range(2))
    np.testing.assert_allclose(mine, expected, rtol=1e-9, atol=1e-9 * scale)


@pytest.mark.parametrize("name", PLAIN)
@settings(max_examples=6, deadline=None)
@given(RUNS, st.sampled_from([0, 1, 30, 230]))
def test_it_says_what_the_forecaster_says(name, runs, before):
    values = [value for value, many in runs for _ in range(many)]
    if "blend" in name:  # a load that repeats itself to the last bit hits its own quantiles: rounding says which side
        values = [value * (1 + 1e-3 * i) for i, value in enumerate(values)]
    assert_follows(name, past(name, before), values)


@pytest.mark.parametrize("name", PLAIN)
def test_it_says_the_same_over_many_steps_with_gaps_zeros_and_jumps(name):
    steps = 80 if "blend" in name or name == "adapted" else 500
    assert_follows(name, past(name, 200), spoilt(load(steps, 8, task(name).day), 5))


@pytest.mark.parametrize("name", KINDS)
def test_many_jobs_side_by_side_say_what_each_says_alone(name):
    histories = [past(name, 60 * i, seed=i) for i in range(4)]
    alone, together = [followed(name, history) for history in histories], Online(forecaster(name))
    for i, history in enumerate(histories):
        together.admit(f"job {i}", history)
    values = np.stack([spoilt(load(20, i, task(name).day), i) for i in range(4)])
    for column in values.T:
        for i, value in enumerate(column):
            np.testing.assert_array_equal(together.step(f"job {i}", value), alone[i].step("a", value))


@pytest.mark.parametrize("name", KINDS)
def test_bad_input_is_refused_and_changes_nothing(name):
    online, twin = (followed(name, past(name, 60)) for _ in range(2))
    for bad in (-1.0, math.inf, -math.inf):
        with pytest.raises(SeriesError, match="finite and not negative"):
            online.step("a", bad)
    with pytest.raises(OnlineError, match="'nobody' was not admitted"):
        online.step("nobody", 1.0)
    with pytest.raises(SeriesError):
        online.admit("a", series([1.0, -5.0], task(name)))
    np.testing.assert_array_equal(online.step("a", 77.0), twin.step("a", 77.0))
    assert online.state("a") == twin.state("a")


def test_a_job_that_is_forgotten_leaves_the_others_alone():
    online = Online(forecaster("gru"))
    for i in range(5):
        online.admit(str(i), past("gru", 100, seed=i))
    said = {job: online.current(job) for job in online}
    online.forget("2")
    assert "2" not in online and len(online) == 4
    online.admit("new", past("gru", 100, seed=9))
    online.admit("0", past("gru", 50, seed=7))
    for job in ("1", "3", "4"):
        np.testing.assert_array_equal(online.current(job), said[job])
    with pytest.raises(OnlineError):
        online.forget("2")


@pytest.mark.parametrize("name", [name for name in KINDS if "blend" not in name])
def test_a_step_copies_none_of_the_newest_values(name):
    online = followed(name, past(name, 400))
    online.step("a", 40.0)
    before = online._jobs["a"].kept.values
    online.step("a", 50.0)
    after = online._jobs["a"].kept.values
    assert np.shares_memory(before, after) and after[-1] == 50.0 != before[-1]
    np.testing.assert_array_equal(after[:-1], before[1:])
