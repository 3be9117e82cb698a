"""Which of a job's steps belong together, and which come of a wrong clock."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from configs.bounds import DAY_S
from models.forecast.core.parts import BEYOND, FEW, GAP_DAYS, select_miscounted, select_parts
from models.forecast.core.series import MAX_STEPS, average_pieces
from pipelines.traces import series_file
from pipelines.traces.shipped import list_shipped

HOUR, YEAR = 3600.0, 365 * 24
"""Steps of an hour; a year of them."""


def kept(*parts, step_s=HOUR):
    """Of parts that are (first step, number of steps), all covered, the numbers of those that are kept whole."""
    part = np.repeat(np.arange(len(parts)), [count for _, count in parts])
    steps = np.concatenate([first + np.arange(count) for first, count in parts])
    found = select_parts(steps, np.full(len(steps), step_s), step_s)
    assert all(len(set(found[part == at])) == 1 for at in range(len(parts))), "a part is kept whole or not at all"
    return [at for at in range(len(parts)) if found[part == at].all()]


@pytest.mark.parametrize(
    ("parts", "wanted"),
    [
        ([(0, 500)], [0]),
        ([(9 * YEAR, 1), (0, 500)], [1]),  # one interval of nine years later
        ([(0, 1), (44 * YEAR, 500), (99 * YEAR, 3)], [1]),  # of 1970, and of a clock that runs ahead
        ([(0, 500), (500 + 42 * 24, 7)], [0, 1]),  # a gap of 42 days is none, if as much came after it
        ([(0, 500), (501 + 42 * 24, 7)], [0]),  # an hour more is one
        ([(0, 500), (2 * YEAR, 23)], [0]),  # another replay that has begun
        ([(0, 500), (2 * YEAR, 24)], [0, 1]),  # once it covers a day it counts
        ([(0, 5), (YEAR, 3)], [0]),  # of a job with hours only, the most
        ([(0, 5), (YEAR, 5)], [0, 1]),
        ([(0, 500), (MAX_STEPS - 100, 100)], [0, 1]),  # as long as a series may be
        ([(0, 500), (MAX_STEPS - 99, 100)], [1]),  # longer: the newest
        ([(0, 500), (MAX_STEPS, 100), (MAX_STEPS + 2 * YEAR, 100), (5 * MAX_STEPS, 2)], [1, 2]),
    ],
)
def test_far_and_few_steps_are_left_out_and_old_ones_that_make_no_series(parts, wanted):
    assert kept(*parts) == wanted


@pytest.mark.parametrize(
    ("parts", "wanted"),
    [
        ([(0, 500), (500 + 14 * 24, 1)], [0]),  # an hour of two weeks later
        ([(0, 1), (300, 500), (1500, 1), (1900, 1)], [1]),  # one before, and two far apart after
        ([(0, 500), (1100, 1), (1103, 1), (1106, 1)], [0]),  # three together
        ([(0, 500), (500 + 168, 1)], [0, 1]),  # a job that has paused for a week, and gone on for an hour
        ([(0, 500), (501 + 168, 1)], [0]),
        ([(0, 500), (700, 1), (900, 500)], [0, 1, 2]),  # between others it stretches nothing
        ([(0, 48), (216, 48)], [0, 1]),
        ([(day * 240, 1) for day in range(9)], [*range(9)]),  # one that runs an hour in ten days
        ([(0, 500), (502, 1)], [0, 1]),  # an hour that was missed is no pause
    ],
)
def test_a_few_steps_at_an_end_are_left_out_and_none_that_follow_a_pause(parts, wanted):
    assert kept(*parts) == wanted


def test_coverage_counts_not_the_number_of_steps():
    steps = np.array([*range(48), *range(2 * YEAR, 2 * YEAR + 90)])
    weights = np.array([HOUR] * 48 + [60.0] * 90)  # 90 minutes, a second year
    np.testing.assert_array_equal(select_parts(steps, weights, HOUR), steps < YEAR)
    assert select_parts(steps[:0], weights[:0], HOUR).tolist() == []


@given(
    step_s=st.sampled_from([60.0, 300.0, 1800.0]),
    days=st.integers(1, 30),
    missing=st.floats(0, 0.4),
    away=st.lists(st.floats(GAP_DAYS + 62, 3e4), max_size=9) | st.lists(st.floats(64, GAP_DAYS + 62), max_size=1),
    before=st.lists(st.booleans(), min_size=9, max_size=9),
    seed=st.integers(0, 99),
)
def test_whatever_lone_steps_lie_far_away_the_series_is_that_of_the_others(step_s, days, missing, away, before, seed):
    draw, per_day = np.random.default_rng(seed), round(DAY_S / step_s)
    origin = round(40_000 * DAY_S / step_s)
    own = origin + np.arange(2 * days * per_day)
    own = own[(draw.random(len(own)) >= missing) | (own == origin)]
    lone = np.array(
        [origin + (-1 if back else 1) * round(far * per_day) for far, back in zip(away, before, strict=False)]
    )
    steps = np.concatenate([own, lone.astype(np.int64)])
    mixed = draw.permutation(len(steps))
    found = select_parts(steps[mixed], np.full(len(steps), step_s), step_s)
    assert set(steps[mixed][found]) == set(own)
    weights, until = np.full(found.sum(), step_s), (own.max() + 1) * step_s
    series = average_pieces(steps[mixed][found], weights, 7 * weights, until, step_s)
    assert (series.start, series.end) == (origin * step_s, until)


@given(st.lists(st.tuples(st.integers(-(10**9), 10**9), st.floats(0, HOUR)), min_size=1, max_size=50))
def test_something_is_kept_always_and_what_is_kept_is_kept_again(rows):
    steps, weights = (np.array(column) for column in zip(*rows, strict=True))
    found = select_parts(steps, weights, HOUR)
    assert found.any()
    assert select_parts(steps[found], weights[found], HOUR).all()


def test_a_few_loads_far_above_all_others_are_miscounted_and_ten_are_believed():
    usual = np.r_[np.nan, 0.0, np.linspace(1.0, 200.0, 60)]
    few = np.r_[usual, np.full(FEW - 1, 1e15)]
    assert np.flatnonzero(select_miscounted(few)).tolist() == [*range(len(usual), len(few))]
    assert not select_miscounted(np.r_[few, 1e15]).any(), "a load that lasts"
    assert not select_miscounted(np.r_[usual, 200 * BEYOND / 2]).any(), "a burst"


@pytest.mark.parametrize("values", [[], [1e15], [np.nan] * 50, [0.0] * 50 + [7.0] * 3])
def test_without_a_usual_load_nothing_is_miscounted(values):
    assert not select_miscounted(np.array(values)).any()


def test_no_shipped_load_is_miscounted(monkeypatch):
    monkeypatch.setattr(series_file, "read_rows", cache(series_file.read_rows))  # the large files have several steps
    assert not any(select_miscounted(one.series().values).any() for one in list_shipped())
