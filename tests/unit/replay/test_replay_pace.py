"""How many records a replay's next batch may read: worked cases, bounds, and where a loop of batches settles."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidecast.replay.pace import FASTER, Pace, rows_per_batch

TASK_S, PARTITIONS = 0.5, 4


@pytest.mark.parametrize(("rps", "before", "rows"), [
    (100.0, None, 4),  # nothing is known: a record of each partition
    (0.0, Pace(50, 1.0, 0.1), 0),
    (100.0, Pace(80, 1.0, 0.1), 100),  # the rate, a second from batch to batch
    (100.0, Pace(80, 2.0, 0.1), 160),  # twice the rate's second, twice as much as before: both bounds meet
    (1_000.0, Pace(80, 1.0, 0.1), 160),  # at most twice the batch before
    (1_000.0, Pace(80, 1.0, 1.0), 40),  # tasks of a second: half as much
    (1_000.0, Pace(80, 1.0, 0.0), 160),  # no stage was found: the rate alone
    (1.0, Pace(80, 1.0, 0.1), 4),  # Spark rounds a partition's part down
])  # fmt: skip
def test_worked_cases(rps, before, rows):
    assert rows_per_batch(rps, before, TASK_S, PARTITIONS) == rows


@given(
    st.floats(0.1, 1e6), st.integers(1, 10**6), st.floats(0.01, 100), st.floats(0, 100), st.floats(0.01, 10),
    st.integers(1, 100),
)  # fmt: skip
def test_it_never_exceeds_what_is_asked_for_nor_grows_at_once(rps, rows, period_s, task_s, most_s, partitions):
    found = rows_per_batch(rps, Pace(rows, period_s, task_s), most_s, partitions)
    assert partitions <= found <= max(rps * period_s, partitions)
    assert found <= max(FASTER * rows, partitions)


@pytest.mark.parametrize(("rps", "record_s", "expected"), [(200.0, 0.001, 200.0), (5_000.0, 0.002, 1_000.0)])
def test_a_loop_of_batches_settles_at_the_rate_or_where_its_tasks_are_as_long_as_they_may_be(rps, record_s, expected):
    """Batches begin a second apart; a task runs 10 ms and its quarter of the records."""
    before = None
    for _ in range(30):
        rows = rows_per_batch(rps, before, TASK_S, PARTITIONS)
        before = Pace(rows, 1.0, 0.01 + rows / PARTITIONS * record_s)
    assert rows == pytest.approx(expected, rel=0.05)
    assert before.task_s <= 1.05 * TASK_S
