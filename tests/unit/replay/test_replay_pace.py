"""How many records a replay's next batch may read: worked cases, bounds, and what a loop of batches keeps to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidecast.replay.pace import FASTER, SAVE_S, Debt, Pace, rows_per_batch

TASK_S, PARTITIONS = 0.5, 4


@pytest.mark.parametrize(("rps", "before", "rows"), [
    (100.0, None, 4),  # nothing is known: a record of each partition
    (0.0, Pace(50, 1.0, 0.1), 0),
    (10.0, Pace(80, 1.0, 0.1), 100),  # the rate, ten seconds of it
    (100.0, Pace(80, 2.0, 0.1), 160),  # at most twice the batch before, however long that took
    (1_000.0, Pace(80, 1.0, 1.0), 40),  # tasks of a second: half as much
    (1_000.0, Pace(80, 1.0, 0.0), 160),  # no stage was found: the rate alone
    (0.1, Pace(80, 1.0, 0.1), 4),  # Spark rounds a partition's part down
])  # fmt: skip
def test_worked_cases(rps, before, rows):
    assert rows_per_batch(rps, before, TASK_S, PARTITIONS) == rows


@given(
    st.floats(0.1, 1e6), st.integers(1, 10**6), st.floats(0.01, 100), st.floats(0, 100), st.floats(0.01, 10),
    st.integers(1, 100),
)  # fmt: skip
def test_it_never_exceeds_what_is_saved_up_nor_grows_at_once(rps, rows, period_s, task_s, most_s, partitions):
    found = rows_per_batch(rps, Pace(rows, period_s, task_s), most_s, partitions)
    assert partitions <= found <= max(rps * SAVE_S, partitions)
    assert found <= max(FASTER * rows, partitions)


def test_a_debt_is_paid_at_the_rate_of_each_second_and_never_becomes_credit():
    debt = Debt()
    debt.owe(100, 10.0, 2.0)  # 20 of them were allowed while it ran
    assert debt.rows == 80
    debt.pay(10.0, 3.0)
    debt.pay(0.0, 60.0)  # paused
    debt.pay(20.0, 2.0)
    assert debt.rows == 10
    debt.pay(20.0, 60.0)
    assert debt.rows == 0
    debt.owe(5, 10.0, 1.0)
    assert debt.rows == 0


@given(st.floats(0.5, 500), st.floats(0.0005, 0.01), st.floats(0.2, 3.0))
def test_over_many_batches_the_rate_is_kept_and_batches_are_few(rps, record_s, overhead_s):
    """A batch takes its overhead and its records' time; one that the rate allows follows when its debt is paid."""
    before, debt, now, read = None, Debt(), 0.0, 0
    while now < 300:
        rows = rows_per_batch(rps, before, TASK_S, PARTITIONS)
        task_s = 0.01 + rows / PARTITIONS * record_s
        debt.owe(rows, rps, overhead_s + task_s)
        before, read = Pace(rows, 1.0, task_s), read + rows
        now += overhead_s + task_s + debt.rows / rps
        debt.pay(rps, debt.rows / rps)
    assert read <= rps * now + PARTITIONS
    assert rows >= max(0.45 * min(rps * SAVE_S, PARTITIONS * (TASK_S - 0.01) / record_s), PARTITIONS)
