import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.policy.core.capacity import Capacity, parallelism, speed_table


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


@given(st.integers(1, 30))
def test_more_executors_never_have_less_capacity(tasks):
    assert (np.diff(speed_table(30, 1, tasks)) >= 0).all()
