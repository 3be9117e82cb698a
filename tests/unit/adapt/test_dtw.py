from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from models.adapt.dtw import accumulated_costs, compare_shapes, dtw_distance, z_normalise
from models.forecast.core.series import Series, SeriesError

A, B = np.array([1.0, 3, 4, 9]), np.array([1.0, 3, 7, 8])
HOUR = 3600.0
equal_lengths = st.integers(3, 14).flatmap(
    lambda n: st.tuples(*(arrays.arrays("float64", n, elements=st.floats(-9, 9, width=32)) for _ in range(2)))
)


def test_the_whole_cost_matrix():
    expected = [[0, 2, 8, 15], [2, 0, 4, 9], [5, 1, 3, 7], [13, 7, 3, 4]]
    np.testing.assert_array_equal(accumulated_costs(A, B, 4), expected)
    assert dtw_distance(A, B) == 1.0


def test_shape_alone_counts_after_normalising():
    assert dtw_distance(z_normalise(A), z_normalise(B)) == pytest.approx(0.435576, abs=1e-6)
    assert dtw_distance(z_normalise(np.array([10.0, 20, 30, 20])), z_normalise(np.array([1.0, 2, 3, 2]))) == 0


def test_a_shifted_copy_needs_the_band():
    early, late = np.array([0.0, 1, 2, 1, 0]), np.array([0.0, 0, 1, 2, 1])
    assert dtw_distance(early, late) == pytest.approx(0.2)
    assert accumulated_costs(early, late, 0)[-1, -1] == 4


@settings(deadline=None)
@given(equal_lengths)
def test_it_is_a_distance_that_warping_only_shortens(pair):
    a, b = pair
    assert dtw_distance(a, a) == 0
    assert dtw_distance(a, b) == pytest.approx(dtw_distance(b, a), abs=1e-12)
    by_band = [accumulated_costs(a, b, w)[-1, -1] / len(a) for w in range(len(a))]
    assert all(wide <= narrow + 1e-12 for narrow, wide in pairwise(by_band))
    assert 0 <= by_band[-1] <= by_band[0] + 1e-12
    assert by_band[0] == pytest.approx(np.abs(a - b).mean(), abs=1e-12)


@settings(max_examples=30, deadline=None)
@given(equal_lengths)
def test_the_inputs_stay_as_they_are(pair):
    before = [part.copy() for part in pair]
    dtw_distance(*pair)
    for part, copy in zip(pair, before, strict=True):
        np.testing.assert_array_equal(part, copy)


def test_unequal_lengths_widen_the_band_as_far_as_needed():
    assert dtw_distance(np.array([0.0, 5.0]), np.array([0.0, 0, 0, 5, 5, 5])) == 0


@pytest.mark.parametrize(
    ("segment", "said"),
    [
        (np.full(5, 7.0), "constant at"),
        (np.array([1.0, np.nan]), "1 of 2 steps are missing"),
        (np.array([0.0, np.inf]), "1 of 2"),
    ],
)
def test_a_segment_without_shape_is_refused(segment, said):
    with pytest.raises(SeriesError, match=said):
        z_normalise(segment)


def daily(days: float, seed: int, start: float = 0.0, noise: float = 0.1, peak: int = 6) -> Series:
    hours = np.arange(days * 24) + start / HOUR
    shape = np.sin((hours - peak) / 24 * 2 * np.pi) + 0.4 * np.sin((hours - peak) / 12 * 2 * np.pi)
    return Series(start, HOUR, 100 + 30 * shape + 30 * noise * np.random.default_rng(seed).standard_normal(len(hours)))


@pytest.mark.parametrize("days", [0.4, 1, 3])
def test_a_source_with_the_same_day_is_kept_and_noise_is_not(days):
    target = daily(days, 1, start=40 * HOUR)
    noise = Series(0.0, HOUR, 100 + np.random.default_rng(2).standard_normal(24 * 10))
    same = compare_shapes(daily(10, 3), target, np.random.default_rng(0))
    other = compare_shapes(noise, target, np.random.default_rng(0))
    assert same.near and same.ratio < 0.5
    assert not other.near and other.ratio == pytest.approx(1, abs=0.25)
    assert same == compare_shapes(daily(10, 3), target, np.random.default_rng(0))


@pytest.mark.parametrize("peak", [6, 18])
def test_another_time_zone_is_the_same_shape(peak):
    target = daily(2, 1, start=7 * HOUR, noise=0.0)
    found = compare_shapes(daily(10, 3, noise=0.0, peak=peak), target, np.random.default_rng(0))
    assert found.distance == pytest.approx(0, abs=1e-9)


def test_another_shape_is_far_at_every_hour():
    hours = np.arange(240)
    burst = Series(0.0, HOUR, 100.0 + 80 * (hours % 24 == 3) + np.random.default_rng(1).standard_normal(240))
    assert compare_shapes(burst, daily(2, 1), np.random.default_rng(0)).ratio > 0.6


def test_a_source_shorter_than_a_segment_cannot_be_compared():
    found = compare_shapes(Series(0.0, HOUR, np.arange(10.0)), daily(2, 1), np.random.default_rng(0))
    assert np.isnan(found.distance) and np.isnan(found.ratio) and not found.near


@pytest.mark.parametrize(
    ("source", "target", "said"),
    [
        (Series(0.0, 60.0, np.arange(99.0)), daily(2, 1), "steps of 60 s, the target of 3600 s"),
        (daily(3, 1), Series(0.0, HOUR, np.arange(7.0)), "the target has 7 steps; a third of a day, 8"),
    ],
)
def test_what_cannot_be_compared_says_why(source, target, said):
    with pytest.raises(SeriesError, match=said):
        compare_shapes(source, target, np.random.default_rng(0))
