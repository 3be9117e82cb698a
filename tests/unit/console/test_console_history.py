"""The last hours of a job: points per step, bounded, and gaps that show."""

import math

from pipelines.console.read.history import PackedHistory, Point


def column(history, name, after=-math.inf):
    return history.columns(after)[1 + Point._fields.index(name)]


def test_a_step_is_the_mean_of_the_load_the_last_executors_and_the_worst_latency():
    history = PackedHistory(10.0, 5)
    for at, load, executors, latency_s in ((100, 10.0, 1, 4.0), (101, 20.0, 2, math.nan), (109.9, 60.0, 3, 2.0)):
        history = history.add(at, Point(load, executors, lag_records=load, latency_s=latency_s))
    assert history.columns()[0] == [100.0]
    assert column(history, "arrival_rps") == [30.0]
    assert column(history, "executors") == [3.0]
    assert column(history, "lag_records") == [60.0]
    assert column(history, "latency_s") == [4.0]
    assert column(history, "capacity_rps") == [None]


def test_it_keeps_so_many_closed_steps_and_the_open_one():
    history = PackedHistory(1.0, 3)
    for second in range(10):
        history = history.add(float(second), Point(float(second)))
    assert history.columns()[0] == [6.0, 7.0, 8.0, 9.0]
    assert history.oldest == 6.0
    assert column(history, "arrival_rps", after=7.5) == [8.0, 9.0]


def test_after_a_gap_it_shows_no_more_time_than_without_one():
    history = PackedHistory(10.0, 6)
    for at in (0.0, 10.0, 20.0, 30.0, 70.0, 80.0):
        history = history.add(at, Point(1.0))
    assert history.oldest == 20.0
    assert history.columns()[0] == [20.0, 30.0, 70.0, 80.0]
    assert history.add(1000.0, Point(1.0)).columns()[0] == [1000.0]


def test_one_point_of_a_clock_that_jumped_ahead_costs_nothing_once_it_is_set_back():
    history = PackedHistory(10.0, 6)
    for at in (0.0, 10.0, 20.0, 30.0, 40.0, 50.0):
        history = history.add(at, Point(1.0))
    ahead = history.add(1e5, Point(1.0))
    assert (ahead.oldest, ahead.columns()[0]) == (1e5, [1e5])
    back = ahead.until(60.0)
    assert (back.oldest, back.columns()[0]) == (0.0, [0.0, 10.0, 20.0, 30.0, 40.0, 50.0])
    assert back.add(70.0, Point(1.0)).columns()[0] == [10.0, 20.0, 30.0, 40.0, 50.0, 70.0]


def test_a_point_before_the_open_step_is_left_out():
    history = PackedHistory(1.0, 3).add(5.0, Point(1.0)).add(6.0, Point(2.0))
    assert history.add(5.5, Point(9.0)) == history


def test_where_nothing_was_measured_the_line_is_interrupted():
    history = PackedHistory(1.0, 50).add(0.0, Point(1.0)).add(5.0, Point(2.0)).add(20.0, Point(3.0))
    assert history.columns()[0] == [0.0, 5.0, 6.0, 20.0]
    assert column(history, "arrival_rps") == [1.0, 2.0, None, 3.0]


def test_nothing_yet_is_no_point():
    assert PackedHistory(1.0, 3).oldest is None
    assert PackedHistory(1.0, 3).columns() == [[] for _ in range(1 + len(Point._fields))]
