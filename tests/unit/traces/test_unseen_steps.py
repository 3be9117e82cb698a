"""The rules of binning: what is counted, averaged, left out and taken."""

import math

import numpy as np
import pytest

from pipelines.traces.unseen.steps import Steps, average, count_events, keep_known, take_newest


def of(times, values):
    return Steps(np.array(times, np.int64), np.array(values, np.float64))


def test_events_are_counted_per_step_with_0_where_none_is_and_without_the_last_step():
    steps = count_events(np.array([130, 61, 119, 305, 60, 399]), 60)  # in any order; 305 and 399 end the data
    assert steps.times.tolist() == [60, 120, 180, 240, 300]
    assert steps.values.tolist() == [3, 1, 0, 0, 1]


def test_events_of_one_step_make_no_load_for_it_is_cut_off():
    assert not len(count_events(np.array([1, 2, 3]), 60).times)


def test_no_events_make_no_steps():
    assert not len(count_events(np.empty(0, np.int64), 60).times)


def test_rows_without_a_value_are_left_out_and_of_one_time_the_first_is_kept():
    steps = keep_known(np.array([120, 0, 60, 60, 180, 180]), np.array([5.0, 1.0, 2.0, 3.0, math.nan, 4.0]))
    assert steps.times.tolist() == [0, 60, 120, 180]
    assert steps.values.tolist() == [1, 2, 5, 4]


@pytest.mark.parametrize(
    ("least_known", "times", "values"),
    [(0.5, [0, 480], [2.5, 7.0]), (0.0, [0, 240, 480], [2.5, 9.0, 7.0]), (0.75, [0], [2.5])],
)
def test_longer_steps_are_means_of_enough_known_steps(least_known, times, values):
    # Steps of 4 min: all four minutes are known, then one, then two.
    known = of([0, 60, 120, 180, 300, 480, 660], [1, 2, 3, 4, 9, 6, 8])
    steps = average(known, 60, 240, least_known)
    assert (steps.times.tolist(), steps.values.tolist()) == (times, values)


def test_longer_steps_begin_at_multiples_of_their_length_and_not_at_the_first_row():
    steps = average(of([180, 240, 300, 360], [1, 2, 3, 4]), 60, 240, 0.5)
    assert (steps.times.tolist(), steps.values.tolist()) == ([240], [3.0])


def test_a_mean_is_of_the_exact_sum():
    steps = average(of([0, 60, 120, 180], [1e16, 1.0, 1.0, -1e16]), 60, 240, 0.5)
    assert steps.values.tolist() == [0.5]  # summed one by one: 0


def test_nothing_known_has_no_longer_steps():
    assert not len(average(of([], []), 60, 240, 0.5).times)


def test_the_newest_known_steps_are_taken_however_far_apart():
    steps = of([0, 60, 600, 6000], [1, 2, 3, 4])
    assert take_newest(steps, 2).times.tolist() == [600, 6000]
    assert take_newest(steps, 9).values.tolist() == [1, 2, 3, 4]
    assert take_newest(steps, None).values.tolist() == [1, 2, 3, 4]
