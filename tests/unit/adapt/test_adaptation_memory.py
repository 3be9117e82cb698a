import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.adapt.memory import HALF_WIDTHS, corrections, inputs, rule

DAY = 48
NOTHING = np.zeros(len(HALF_WIDTHS))


def habitual(days: int, seed: int = 0, noise: float = 0.5, horizon: int = 2) -> np.ndarray:
    """(T, p) errors with the same course every day."""
    course = 3 * np.sin(np.arange(DAY) * 2 * np.pi / 12)
    draw = np.random.default_rng(seed)
    return np.tile(course, days)[:, None] + noise * draw.standard_normal((days * DAY, horizon))


def test_inputs_are_means_around_the_same_time_yesterday():
    errors = np.arange(3.0 * DAY)[:, None]
    found = inputs(errors, DAY)
    assert found[2 * DAY, 0].tolist() == [DAY, DAY, DAY, DAY]  # the windows lie around it, evenly
    assert found[DAY, 0].tolist() == [0.0, 1.0, 3.0, 9.0]  # there is nothing before the first error
    assert not found[: DAY - HALF_WIDTHS[-1]].any()


def test_inputs_never_read_an_outcome_to_come():
    errors = habitual(3)
    at = 2 * DAY + 7
    before = inputs(errors, DAY)[at]
    changed = errors.copy()
    changed[at - 1 :] = 99.0  # errors two steps ahead of rows from here on end after `at`
    np.testing.assert_array_equal(inputs(changed, DAY)[at], before)


@settings(deadline=None, max_examples=20)
@given(st.integers(DAY, 4 * DAY - 1))
def test_corrections_know_only_what_came_before(at):
    errors = habitual(4)
    before = corrections(errors, DAY, NOTHING)[at]
    changed = errors.copy()
    changed[at - 1 :] = np.nan
    np.testing.assert_allclose(corrections(changed, DAY, NOTHING)[at], before, atol=1e-9)


def test_a_daily_course_is_learned_while_serving():
    errors = habitual(6)
    left = errors - corrections(errors, DAY, NOTHING)
    last = slice(4 * DAY, 6 * DAY)
    assert np.sqrt(np.mean(left[last] ** 2)) < 0.5 * np.sqrt(np.mean(errors[last] ** 2))


def test_noise_is_left_nearly_as_it_is():
    errors = np.random.default_rng(1).standard_normal((8 * DAY, 2))
    left = errors - corrections(errors, DAY, NOTHING)
    assert np.sqrt(np.mean(left**2)) < 1.03 * np.sqrt(np.mean(errors**2))


def test_one_spike_is_no_habit():
    errors = 0.1 * np.random.default_rng(2).standard_normal((6 * DAY, 2))
    errors[2 * DAY + 3] = 100.0
    made = corrections(errors, DAY, np.array([0.5, 0.2, 0.1, 0.1]))
    assert np.abs(made).max() < 1.0


def test_a_source_with_a_habit_teaches_the_second_day_of_a_target():
    taught = rule(habitual(10, seed=3), DAY)
    target = habitual(2, seed=4)
    second = slice(DAY, DAY + DAY // 3)  # before the target's own rows have said much
    with_rule, without = (
        np.mean((target - corrections(target, DAY, prior))[second] ** 2) for prior in (taught, NOTHING)
    )
    assert with_rule < 0.7 * without


@pytest.mark.parametrize(
    "errors", [np.random.default_rng(5).standard_normal((10 * DAY, 2)), habitual(2), np.full((5 * DAY, 2), np.nan)]
)
def test_a_source_without_habit_or_history_teaches_nothing(errors):
    assert not rule(errors, DAY).any()


def test_nothing_is_corrected_without_a_yesterday():
    assert not corrections(habitual(1)[: DAY // 2], DAY, np.ones(4)).any()
