import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.report import seconds

INF = math.inf


def test_a_record_is_committed_by_the_first_batch_that_ends_beyond_it():
    committed = np.array([10.0, 20.0, 30.0])
    ends = {0: np.array([2, 2, 5]), 1: np.array([0, 3, 3])}
    partition = np.array([0, 0, 0, 1, 1, 2])
    offset = np.array([1, 2, 4, 2, 3, 0])  # offset 2 is the next one after an end of 2; 3 of partition 1 and 2/0 never
    times = seconds.commit_times(partition, offset, committed, ends)
    assert times.tolist() == [10, 30, 30, 20, INF, INF]


@given(st.lists(st.integers(0, 6), min_size=1, max_size=8), st.lists(st.integers(0, 40), max_size=20))
def test_commit_times_equal_a_search_from_the_front(steps, offsets):
    ends = np.cumsum(steps)
    committed = np.arange(len(steps), dtype=float)
    found = seconds.commit_times(np.zeros(len(offsets), dtype=int), np.array(offsets, dtype=int), committed, {0: ends})
    assert found.tolist() == [next((c for c, e in zip(committed, ends, strict=True) if e > o), INF) for o in offsets]


def test_seconds_by_hand():
    produced, committed = np.array([100.2, 100.7, 101.5]), np.array([101.1, 103.5, INF])
    frame = seconds.latency_by_second(produced, committed, start=100.0, seconds=4)
    assert frame["produced"].tolist() == [2, 1, 0, 0]
    assert frame["latency_max_s"].iloc[0] == pytest.approx(2.8)
    assert frame["latency_max_s"].iloc[1] == INF
    assert math.isnan(frame["latency_max_s"].iloc[2])
    assert frame["lag"].tolist() == [2, 2, 2, 1]
    assert frame["waiting"].tolist() == [0, 1, 2, 1]


def test_busy_seconds_by_hand():
    frame = seconds.tasks_by_second(np.array([99.0, 100.5, 101.0]), np.array([99.9, 101.5, 101.25]), 100.0, 4)
    assert frame["tasks"].tolist() == pytest.approx([0.5, 0.75, 0, 0])
    assert frame["ran"].tolist() == [True, True, False, False]


@given(st.lists(st.tuples(st.integers(-20, 60), st.integers(0, 30)), max_size=12))
def test_busy_seconds_equal_a_sum_over_tasks(tasks):
    begin = np.array([b / 8 for b, _ in tasks])
    end = np.array([(b + d) / 8 for b, d in tasks])
    frame = seconds.tasks_by_second(begin, end, 0.0, 5)
    for s in range(5):
        shares = [max(0.0, min(e, s + 1) - max(b, s)) for b, e in zip(begin, end, strict=True)]
        assert frame["tasks"].iloc[s] == pytest.approx(sum(shares))
        assert frame["ran"].iloc[s] or sum(shares) == 0


def test_the_longest_pause_counts_only_while_something_waits():
    begin, end = np.array([0.0, 5.0, 11.0]), np.array([1.0, 6.0, 12.0])
    # One record waits from 4.5 to 6.2, one from 8 on: pauses are 4.5 to 5 and 8 to 11; 1 to 4.5 and 6.2 to 8 are idle.
    assert seconds.longest_pause(begin, end, np.array([4.5, 8.0]), np.array([6.2, 12.1])) == pytest.approx(3.0)
    assert seconds.longest_pause(begin, end, np.array([0.1]), np.array([1.2])) == pytest.approx(0.2)
    assert seconds.longest_pause(begin, end, np.empty(0), np.empty(0)) == 0.0
    assert seconds.longest_pause(np.empty(0), np.empty(0), np.array([1.0]), np.array([2.0])) == 0.0


def test_executor_seconds_and_steps():
    added, removed = np.array([-5.0, 10.0, 20.0]), np.array([np.nan, 30.0, 25.0])
    assert seconds.executor_seconds(added, removed, 0.0, 40.0) == 40 + 20 + 5
    times, count = seconds.count_open(added, removed, 0.0, 40.0)
    assert times.tolist() == [0, 10, 20, 25, 30, 40]
    assert count.tolist() == [1, 2, 3, 2, 1, 1]


def test_spread_of_nothing_and_of_something():
    assert seconds.percentiles(np.array([INF, np.nan])) == {"p50": None, "p95": None, "n": 0}
    assert seconds.percentiles(np.array([1.0, 2.0, 3.0, np.nan])) == {"p50": 2.0, "p95": 2.9, "n": 3}
