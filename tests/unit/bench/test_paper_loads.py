"""The numbers of the paper's specification, worked by hand and by its own text."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.forecast.core.series import Series, SeriesError
from pipelines.bench.table2.loads import NOISE_FLOOR, coarsen, match_moments, refine, simulate_cells
from pipelines.traces.series_file import read_series
from pipelines.traces.unseen.steps import count_events


def refined(values, step_s, noise=0.0, seed=1):
    return refine(Series(0.0, 300.0, np.array(values, dtype=float)), step_s, np.random.default_rng(seed), noise)


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
    assert refined(values, step_s)[0].tolist() == expected


def test_a_spline_that_undershoots_is_clipped():
    _, clean = refined((100, 0, 0, 100), 60)
    assert clean.min() == 0.0 and (clean[6:9] == 0).all()  # the spline itself reaches -12 there
    assert clean[4] > 0


@pytest.mark.parametrize(("step_s", "points"), [(300, 6048), (120, 15_118), (60, 30_236)])
def test_three_weeks_of_five_minutes_have_the_specified_lengths(step_s, points):
    assert len(refined(np.full(6048, 50.0), step_s)[0]) == points


def test_the_noise_is_of_its_width_and_costs_the_floor():
    load, clean = refined(np.full(6048, 1e6), 60, noise=0.1)
    ratio = load / clean
    assert 0.9 <= ratio.min() < 0.901 and 1.099 < ratio.max() <= 1.1
    smape = 100 * np.mean(np.abs(load - clean) / (load + clean))
    assert pytest.approx(2.503, abs=5e-4) == NOISE_FLOOR
    assert smape == pytest.approx(NOISE_FLOOR, abs=0.03)
    assert np.array_equal(load, refined(np.full(6048, 1e6), 60, noise=0.1)[0])
    assert not np.array_equal(load, refined(np.full(6048, 1e6), 60, noise=0.1, seed=2)[0])


def test_gaps_are_bridged_and_ends_are_held():
    load, clean = refined((math.nan, 100, 200, math.nan, 400, 500, math.nan), 300)
    np.testing.assert_allclose(clean, [100, 100, 200, 300, 400, 500, 500])
    assert np.isfinite(load).all()


@given(st.lists(st.floats(-50, 50), min_size=4, max_size=4), st.sampled_from([60, 100, 150, 300]))
def test_the_spline_is_exact_on_cubics(coefficients, step_s):
    def cubic(t):
        return 1000 + np.polynomial.polynomial.polyval(t / 3000, coefficients)

    _, clean = refined(cubic(300.0 * np.arange(10)), step_s)
    axis = step_s * np.arange(len(clean))
    np.testing.assert_allclose(clean * 300 / step_s, cubic(axis), rtol=1e-9)


@pytest.mark.parametrize("file_step_s", [5, 30, 60])
def test_events_are_counted_in_the_step_that_they_open_and_an_empty_step_is_zero(tmp_path, file_step_s):
    """Events at 60 and 180 s open a step, the third step has none; the event at 240 s ends the data."""
    counts = count_events(np.array([0, 10, 59, 60, 61, 180, 240]), file_step_s).values
    (path := tmp_path / "trips.csv").write_text(
        "\n".join(["time,count", *(f"{i * file_step_s},{count}" for i, count in enumerate(counts))])
    )
    read = read_series(path)
    assert read.step_s == file_step_s
    found = coarsen(read.values, 60 // file_step_s)
    assert found.tolist() == [3, 2, 0, 1]
    np.testing.assert_allclose(
        match_moments(found, 100, 20)[0], [126.832816, 108.944272, 73.167184, 91.055728], atol=1e-6
    )


def test_algorithm_2():
    moved, clipped = match_moments(np.array([3.0, 2.0, 0.0, 1.0]), 100, 20)
    np.testing.assert_allclose(moved, [126.832816, 108.944272, 73.167184, 91.055728], atol=1e-6)
    assert clipped == 0


def test_counts_add_up_and_what_is_left_over_is_dropped():
    assert coarsen(np.arange(7.0), 3).tolist() == [3.0, 12.0]


@given(st.lists(st.integers(0, 40), min_size=2, max_size=60).filter(lambda x: len(set(x)) > 1))
def test_matching_gives_the_mean_and_the_deviation(counts):
    moved, clipped = match_moments(np.array(counts, dtype=float), 1e4, 10.0)
    assert clipped == 0
    assert moved.mean() == pytest.approx(1e4) and moved.std() == pytest.approx(10.0)


def test_matching_clips_below_zero_and_says_so():
    moved, clipped = match_moments(np.array([0.0, 0.0, 0.0, 9.0]), 1.0, 4.0)
    assert clipped == 3 and (moved[:3] == 0).all()


def test_constant_counts_are_refused():
    with pytest.raises(SeriesError, match="without any spread"):
        match_moments(np.full(5, 3.0), 1, 1)


def test_trips_are_not_summed_over_other_steps_than_said():
    with pytest.raises(SeriesError, match="steps of 90 s"):
        next(simulate_cells((90,), 1))
