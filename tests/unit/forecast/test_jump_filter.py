import numpy as np
import pytest

from tests.fakes.plain_blend.jump_filter import one_off

DAY, HORIZON = 24, 3


def told(values, at):
    return one_off(np.asarray(values, float), np.array([at]), DAY, HORIZON)[0].tolist()


def load(days, jumps=()):
    """A load with small steps of 1, moved for good by each (index, by)."""
    values = 100 + np.arange(days * DAY) % 2.0
    for at, by in jumps:
        values[at:] += by
    return values


def test_a_lasting_break_is_no_daily_jump():
    values = load(4, [(60, 50.0)])
    assert told(values, 60 + DAY - 1) == [True, True, True]  # the next step is a day after the break
    assert told(values, 60 + DAY - 2) == [False, True, True]
    assert told(values, 60 + DAY) == [False, False, False]


def test_what_jumped_at_the_same_time_on_two_days_is_daily():
    daily = 100.0 + 50.0 * (np.arange(5 * DAY) % DAY >= 8) + np.arange(5 * DAY) % 2
    assert told(daily, 3 * DAY + 6) == [False, False, False]


def test_a_first_day_confirms_nothing():
    once = 100.0 + 50.0 * (np.arange(2 * DAY) % DAY >= 8) + np.arange(2 * DAY) % 2
    assert told(once, DAY + 6) == [False, True, True]


@pytest.mark.parametrize("at", [0, 5, DAY, 2 * DAY])
def test_a_short_past_and_a_calm_one_echo_nothing(at):
    assert told(load(3), at) == [False] * HORIZON


def test_many_moments_are_as_each_alone():
    values = load(6, [(60, 50.0), (100, -30.0)]) + np.random.default_rng(1).normal(size=6 * DAY)
    at = np.arange(30, len(values))
    together = one_off(values, at, DAY, HORIZON)
    assert together.any()
    for i, moment in enumerate(at):
        alone = one_off(
            values[max(moment - 2 * DAY - 1, 0) : moment + 1], np.array([min(moment, 2 * DAY + 1)]), DAY, HORIZON
        )
        assert (together[i] == alone[0]).all()
