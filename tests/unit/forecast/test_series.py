import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.forecast.core.series import Accumulator, Partial, Series, SeriesError, resample

STEP = 60.0


def pushed(records, step_s=STEP):
    state, steps = Partial(), []
    for time, value, span in records:
        state, completed = Accumulator(step_s).push(state, time, value, span)
        steps += completed
    return steps


def test_mean_is_weighted_by_the_seconds_that_lie_in_the_step():
    # [0, 40) at 10, [40, 80) at 40: step 0 is (40·10 + 20·40) / 60 = 20; step 1 is not complete
    series = resample([0, 40], [10, 40], [40, 40], STEP)
    assert (series.start, series.end) == (0, 60)
    assert series.values.tolist() == pytest.approx([20])


def test_steps_are_aligned_to_the_epoch_and_a_half_seen_one_counts():
    assert resample([150], [7], [30], STEP).values.tolist() == [7]  # 30 of [120, 180)
    assert resample([151], [7], [29], STEP).start == 120
    assert math.isnan(resample([151], [7], [29], STEP).values[0])


@given(
    st.lists(st.tuples(st.booleans(), st.floats(0, 1e6)), min_size=1, max_size=12), st.sampled_from([0.1, 1, 60, 300])
)
def test_a_record_of_a_whole_step_counts_as_its_two_halves_do(records, step_s):
    whole, halves = [], []
    for number, (split, value) in enumerate(records, 29_000_000):
        begin, middle, end = number * step_s, (number + 0.5) * step_s, (number + 1) * step_s
        whole.append((begin, value, end - begin))
        halves += [(begin, value, middle - begin), (middle, value, end - middle)] if split else whole[-1:]
    found, expected = pushed(whole, step_s), pushed(halves, step_s)
    assert [begin for begin, _ in found] == [begin for begin, _ in expected]
    assert [value for _, value in found] == pytest.approx([value for _, value in expected])


def test_a_gap_is_missing_not_zero():
    series = resample([0, 180], [5, 6], [60, 60], STEP)
    np.testing.assert_equal(series.values, [5, math.nan, math.nan, 6])


def test_order_and_doubles_change_nothing():
    times, values, spans = [120, 0, 60, 60], [3, 1, 2, 2], [60] * 4
    assert resample(times, values, spans, STEP).values.tolist() == [1, 2, 3]


def test_no_records_make_an_empty_series():
    assert len(resample([], [], [], STEP)) == 0


@pytest.mark.parametrize(
    ("times", "values", "spans", "word"),
    [
        ([0, math.nan], [1, 1], [60, 60], "row 1: time=nan"),
        ([0], [math.inf], [60], "value=inf"),
        ([0], [1], [0], "span=0.0"),
        ([0, 1e12], [1, 1], [60, 60], "wrong time"),
        ([0], [1, 2], [60], "1 times, 2 values"),
    ],
)
def test_records_that_make_no_series_are_named(times, values, spans, word):
    with pytest.raises(SeriesError, match=word):
        resample(times, values, spans, STEP)


def test_a_clock_that_jumps_is_refused():
    state, _ = Accumulator(1.0).push(Partial(), 0.0, 1.0, 1.0)
    with pytest.raises(SeriesError, match="wrong clock"):
        Accumulator(1.0).push(state, 1e9, 1.0, 1.0)


def test_what_falls_into_a_completed_step_is_left_out():
    assert pushed([(0, 5, 60), (10, 99, 20), (60, 6, 60)]) == [(0, 5), (60, 6)]


@settings(max_examples=200, deadline=None)
@given(
    start=st.floats(1.4e9, 1.5e9),
    parts=st.lists(st.tuples(st.floats(0, 200), st.floats(0.1, 300), st.floats(0, 1e4)), min_size=1, max_size=30),
)
def test_pushing_one_by_one_equals_the_batch(start, parts):
    records, time = [], start
    for gap, span, value in parts:
        time += gap
        records.append((time, value, span))
        time += span
    series = resample(*map(np.array, zip(*[(t, v, s) for t, v, s in records], strict=True)), STEP)
    steps = pushed(records)
    assert [begin for begin, _ in steps] == (series.start + STEP * np.arange(len(series))).tolist()
    np.testing.assert_allclose([value for _, value in steps], series.values, rtol=1e-6, atol=1e-6)


def test_split_keeps_time():
    older, newest = Series(0.0, STEP, np.arange(5.0)).split(2)
    assert (len(older), newest.start, newest.values.tolist()) == (3, 180.0, [3, 4])
    assert len(Series(0.0, STEP, np.arange(2.0)).split(5)[0]) == 0
