import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.policy.core.capacity import BatchModel, Capacity, learn_from_batch, parallelism, speed_table, tells_capacity


@pytest.mark.parametrize(
    ("executors", "tasks", "expected"),
    [(1, 8, 1), (2, 8, 2), (3, 8, 8 / 3), (4, 8, 4), (5, 8, 4), (7, 8, 4), (8, 8, 8), (20, 8, 8), (0, 8, 0)],
)
def test_parallelism_counts_half_empty_last_waves(executors, tasks, expected):
    assert parallelism(executors, 1, tasks) == pytest.approx(expected)


def test_capacity_by_hand():
    # 4 slots, 5 ms per record, 0.5 s overhead in batches of 2 s: 4 / 0.005 * 0.75
    capacity = Capacity(speed_table(8, 1, 8)[None], np.array([0.5]), np.array([0.005]), 2.0)
    assert capacity.sustained_rps(np.array([4.0])) == pytest.approx([600])


def test_an_idle_batch_teaches_nothing():
    model = BatchModel.guess(0.6, 0.005)
    assert not tells_capacity(model.overhead_s, model.per_record_s, rows=40, slots=1, duration_s=0.8)
    assert not tells_capacity(model.overhead_s, model.per_record_s, rows=0, slots=1, duration_s=5.0)
    assert tells_capacity(model.overhead_s, model.per_record_s, rows=400, slots=1, duration_s=2.6)


def test_who_thinks_too_little_of_the_executors_learns_it_although_they_are_never_busy():
    """Batches of 60 records on 4 slots take 0.9 s: by a model of 0.05 s a record they could not."""
    model = BatchModel.guess(0.6, 0.05)
    for _ in range(40):
        if tells_capacity(model.overhead_s, model.per_record_s, 60, 4, 0.9):
            model = learn_from_batch(model, 60, 4, 0.9)
    assert 0.02 < model.per_record_s < 0.03  # 15 records take a slot 0.3 s; below 0.03 the batch would be half idle


def test_learns_the_true_service_time_from_busy_batches():
    model = BatchModel.guess(0.6, 0.005)
    for rows in range(300, 600, 10):
        model = learn_from_batch(model, rows, 2, 0.6 + 0.009 * rows / 2)
    assert model.per_record_s == pytest.approx(0.009, rel=0.15)


@given(st.lists(st.tuples(st.integers(1, 5000), st.integers(1, 8), st.floats(0.001, 60)), max_size=30))
def test_learning_stays_within_its_bounds(batches):
    model = BatchModel.guess(0.6, 0.005)
    for rows, slots, duration in batches:
        model = learn_from_batch(model, rows, slots, duration)
    assert 0.005 / 5 <= model.per_record_s <= 0.005 * 5


@given(st.integers(1, 30))
def test_more_executors_never_have_less_capacity(tasks):
    assert (np.diff(speed_table(30, 1, tasks)) >= 0).all()


def test_a_pause_with_few_rows_hardly_moves_the_service_time():
    model = learn_from_batch(BatchModel.guess(0.6, 0.005), rows=16, slots=1, duration_s=2.7)
    assert model.per_record_s == pytest.approx(0.005, rel=0.1)
