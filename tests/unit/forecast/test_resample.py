"""The numbers of the paper's specification, worked by hand and by its own text."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.forecast.core.resample import NOISE_FLOOR, coarsen, count, match, refine
from models.forecast.core.series import SeriesError

FOUR = (0.0, 300.0, 600.0, 900.0)


def refined(values, step_s, noise=0.0, seed=1):
    times = 300.0 * np.arange(len(values))
    return refine(times, values, step_s, np.random.default_rng(seed), noise)


@pytest.mark.parametrize(
    ("values", "step_s", "expected"),
    [
        ((100, 200, 300, 400), 60, list(range(20, 84, 4))),
        ((100, 160, 100, 160), 60, [20, 26, 30, 32, 33, 32, 29, 27, 24, 22, 20, 18, 19, 21, 25, 32]),
        ((100, 160, 100, 160), 120, [40, 61, 66, 59, 49, 40, 38, 50]),
        ((100, 160, 100, 160), 300, [100, 160, 100, 160]),
    ],
)
def test_algorithm_1_without_noise(values, step_s, expected):
    assert refined(values, step_s).values.tolist() == expected


def test_a_spline_that_undershoots_is_clipped():
    load = refined((100, 0, 0, 100), 60)
    assert load.clean.min() == 0.0 and (load.clean[6:9] == 0).all()  # the spline itself reaches -12 there
    assert load.clean[4] > 0


@pytest.mark.parametrize(("step_s", "points"), [(300, 6048), (120, 15_118), (60, 30_236)])
def test_three_weeks_of_five_minutes_have_the_specified_lengths(step_s, points):
    assert len(refined(np.full(6048, 50.0), step_s).values) == points


def test_the_noise_is_of_its_width_and_costs_the_floor():
    load = refined(np.full(6048, 1e6), 60, noise=0.1)
    ratio = load.values / load.clean
    assert 0.9 <= ratio.min() < 0.901 and 1.099 < ratio.max() <= 1.1
    smape = 100 * np.mean(np.abs(load.values - load.clean) / (load.values + load.clean))
    assert pytest.approx(2.503, abs=5e-4) == NOISE_FLOOR
    assert smape == pytest.approx(NOISE_FLOOR, abs=0.03)
    assert np.array_equal(load.values, refined(np.full(6048, 1e6), 60, noise=0.1).values)
    assert not np.array_equal(load.values, refined(np.full(6048, 1e6), 60, noise=0.1, seed=2).values)


def test_gaps_are_bridged_and_ends_are_held():
    load = refined((math.nan, 100, 200, math.nan, 400, 500, math.nan), 300)
    np.testing.assert_allclose(load.clean, [100, 100, 200, 300, 400, 500, 500])
    assert np.isfinite(load.values).all()


@given(st.lists(st.floats(-50, 50), min_size=4, max_size=4), st.sampled_from([60, 100, 150, 300]))
def test_the_spline_is_exact_on_cubics(coefficients, step_s):
    def cubic(t):
        return 1000 + np.polynomial.polynomial.polyval(t / 3000, coefficients)

    load = refined(cubic(300.0 * np.arange(10)), step_s)
    axis = step_s * np.arange(len(load.clean))
    np.testing.assert_allclose(load.clean * 300 / step_s, cubic(axis), rtol=1e-9)


@pytest.mark.parametrize(
    ("times", "values", "step_s", "words"),
    [
        (FOUR[:3], (1, 2, 3), 60, "3 known values"),
        (FOUR, (1, 2, math.nan, 3), 60, "3 known values"),
        ((0, 300, 500, 900), (1, 2, 3, 4), 60, "row 2"),
        ((0, 0, 0, 0), (1, 2, 3, 4), 60, "row 1"),
        (FOUR, (1, 2, -3, 4), 60, "row 2: value=-3"),
        (FOUR, (1, 2, 3, 4), 600, "at most the 300 s"),
        (FOUR, (1, 2, 3, 4), 0, "above 0 s"),
    ],
)
def test_what_makes_no_series_is_refused(times, values, step_s, words):
    with pytest.raises(SeriesError, match=words):
        refine(times, values, step_s, np.random.default_rng(0))


def test_algorithm_2():
    counts = count((61, 0, 180, 10, 59, 60), 60, 0, 240)
    assert counts.tolist() == [3, 2, 0, 1]
    moved, clipped = match(counts, 100, 20)
    np.testing.assert_allclose(moved, [126.832816, 108.944272, 73.167184, 91.055728], atol=1e-6)
    assert clipped == 0


@pytest.mark.parametrize(("step_s", "steps"), [(300, 8928), (120, 22_320), (60, 44_640)])
def test_january_has_the_specified_lengths(step_s, steps):
    begin, end = 1_704_067_200, 1_706_745_600
    counts = count([begin - 1, begin, end - 1, end], step_s, begin, end)
    assert len(counts) == steps and counts.sum() == 2 and counts[0] == counts[-1] == 1


@given(st.lists(st.floats(0, 3599), max_size=50), st.sampled_from([2, 5, 7]))
def test_counts_add_up_over_steps(events, factor):
    fine = count(events, 60, 0, 3600)
    coarse = coarsen(fine, factor)
    assert len(coarse) == 60 // factor
    if 60 % factor == 0:
        assert coarse.tolist() == count(events, 60 * factor, 0, 3600).tolist()


@given(st.lists(st.integers(0, 40), min_size=2, max_size=60).filter(lambda x: len(set(x)) > 1))
def test_matching_gives_the_mean_and_the_deviation(counts):
    moved, clipped = match(np.array(counts, dtype=float), 1e4, 10.0)
    assert clipped == 0
    assert moved.mean() == pytest.approx(1e4) and moved.std() == pytest.approx(10.0)


def test_matching_clips_below_zero_and_says_so():
    moved, clipped = match(np.array([0.0, 0.0, 0.0, 9.0]), 1.0, 4.0)
    assert clipped == 3 and (moved[:3] == 0).all()


def test_constant_counts_and_odd_borders_are_refused():
    with pytest.raises(SeriesError, match="without any spread"):
        match(np.full(5, 3.0), 1, 1)
    with pytest.raises(SeriesError, match="whole steps"):
        count([1.0], 60, 30, 90)
