"""How many records a replay's next batch may read: worked cases, bounds, and what a loop of batches keeps to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidecast.replay.pace import FASTER, SAVE_S, Balance, Pace, Reached, apart_s, fixed_part, rows_per_batch

TASK_S, PARTITIONS = 0.5, 4


@pytest.mark.parametrize(("rps", "before", "rows"), [
    (100.0, None, 4),  # nothing is known: a record of each partition
    (0.0, Pace(50, 0.1), 0),
    (10.0, Pace(80, 0.1), 100),  # the rate, ten seconds of it
    (100.0, Pace(80, 0.1), 320),  # at most four times the batch before
    (1_000.0, Pace(80, 1.0), 40),  # tasks of a second: half as much
    (1_000.0, Pace(80, 1.2, 0.0, 0.2), 40),  # a fifth of a second of which every task takes
    (1_000.0, Pace(80, 0.2, 0.0, 0.2), 320),  # the records took nothing that was seen
    (1_000.0, Pace(80, 0.0), 320),  # no stage was found: the rate alone
    (0.1, Pace(80, 0.1), 4),  # Spark rounds a partition's part down
])  # fmt: skip
def test_worked_cases(rps, before, rows):
    assert rows_per_batch(rps, before, TASK_S, PARTITIONS) == rows


def test_a_batch_is_worth_its_tasks_or_waits_unless_its_records_are_slow():
    assert rows_per_batch(0.5, Pace(80, 0.1), TASK_S, PARTITIONS, worth=16) == 16
    assert rows_per_batch(0.5, Pace(2, 0.1), TASK_S, PARTITIONS, worth=16) == 8
    assert rows_per_batch(0.5, Pace(80, 5.0), TASK_S, PARTITIONS, worth=16) == 8
    assert rows_per_batch(0.0, Pace(80, 0.1), TASK_S, PARTITIONS, worth=16) == 0
    assert rows_per_batch(0.5, None, TASK_S, PARTITIONS, worth=16) == 16


def test_where_more_records_are_more_tasks_it_is_never_less_than_worth_them():
    assert rows_per_batch(0.5, Pace(80, 5.0), TASK_S, PARTITIONS, worth=16, split=True) == 16
    assert rows_per_batch(10.0, Pace(8, 3.0), TASK_S, PARTITIONS, worth=16, split=True) == 16
    assert rows_per_batch(10.0, Pace(80, 0.1), TASK_S, PARTITIONS, worth=16, split=True) == 100


def test_batches_of_a_topic_with_fewer_records_than_offsets_grow_by_the_offsets_that_a_limit_counts():
    """Of a compacted one with a record in ten offsets each batch went through four of each partition, for good."""
    before = Pace(5, 0.1, fixed_s=0.1, span=48)
    assert rows_per_batch(1_000.0, before, TASK_S, 12, worth=48) == before.may_grow_to == 192
    assert rows_per_batch(1_000.0, Pace(20, 1.0, span=192), TASK_S, 12, worth=48) == 96  # tasks of a second
    assert Pace(48, 0.1, span=0).may_grow_to == 192


def test_a_small_batch_leaves_live_records_what_it_took_and_a_large_one_nothing():
    assert [apart_s(seconds) for seconds in (0.3, 2.0, 3.0, 5.0, 9.0)] == [0.6, 4.0, 5.0, 5.0, 9.0]


def test_beside_live_batches_that_leave_no_pause_one_of_them_is_without_it():
    assert apart_s(2.0, 2.0) == 4.0 and apart_s(0.3, 9.0) == 0.6  # never more than it took itself
    assert apart_s(8.0, 5.0) == 13.0 and apart_s(4.0, 2.5) == 6.5


@given(
    st.floats(0.1, 1e6), st.integers(1, 10**6), st.floats(0, 100), st.floats(0, 1), st.floats(0.01, 10),
    st.integers(1, 100), st.integers(0, 1000), st.floats(0, 1e4),
)  # fmt: skip
def test_it_never_exceeds_the_rate_and_what_is_saved_nor_grows_at_once(
    rps, rows, task_s, fixed, most_s, partitions, worth, saved
):
    before = Pace(rows, task_s, 0.0, fixed * task_s)
    found = rows_per_batch(rps, before, most_s, partitions, worth, saved=saved)
    assert partitions <= found <= max(rps * SAVE_S + saved, worth, partitions)
    assert found <= max(FASTER * rows, partitions)
    own_s = task_s - fixed * task_s
    assert own_s <= 0 or found <= max(rows * most_s / own_s, partitions)


def test_a_first_batch_is_cold_and_the_least_of_the_others_is_believed_up_to_a_part_of_the_limit():
    assert fixed_part([9.0], 1.0) == 2.0
    assert fixed_part([0.1, 0.2], 1.0) == 0.2
    assert fixed_part([9.0, 0.4, 0.2, 2.0], 1.0) == 0.2
    assert fixed_part([9.0, 3.0], 1.0) == 0.3
    cold = Pace(48, 4.0, 9.0, fixed_part([4.0], 1.0), first=True)
    assert rows_per_batch(100.0, cold, 1.0, 12) == 24


def test_the_second_batch_is_no_larger_than_the_first_as_nothing_is_known_of_a_record():
    for task_s in (0.5, 1.9, 2.1):
        assert rows_per_batch(100.0, Pace(42, task_s, 3.0, fixed_part([task_s], 0.5), first=True), 0.5, 8) == 42
    warm = Pace(42, 1.0, 2.0, fixed_part([1.9, 1.0], 0.5))
    assert rows_per_batch(100.0, warm, 0.5, 8) == 24


def test_what_was_read_ahead_is_paid_off_by_the_rate_and_what_it_allows_while_a_batch_waits_is_saved():
    balance = Balance()
    balance.allow(10.0, 2.0)
    balance.read(100)
    assert balance.rows == -80
    balance.allow(10.0, 3.0)
    balance.allow(0.0, 60.0)  # paused
    balance.bound(0.0, 32, 1_000, saves=True)
    assert balance.rows == -50
    balance.allow(20.0, 4.0)  # a pause between live batches came only now
    balance.bound(20.0, 32, 1_000, saves=True)
    assert balance.rows == 30
    assert rows_per_batch(20.0, Pace(200, 0.1), TASK_S, PARTITIONS, saved=balance.rows) == 230


def test_no_more_is_saved_than_ten_seconds_of_the_rate_as_it_is_now_and_nothing_in_an_application_of_its_own():
    found = []
    for rps, saves in ((50.0, True), (20.0, True), (0.0, True), (50.0, False)):
        balance = Balance(1_000.0)
        balance.bound(rps, 32, 10_000, saves)
        found.append(balance.rows)
    assert found == [500.0, 200.0, 0.0, 0.0]


@given(st.floats(0.5, 500), st.floats(0.0005, 0.01), st.floats(0.05, 0.15))
def test_over_many_batches_the_rate_is_kept_and_batches_are_few(rps, record_s, overhead_s):
    """A task takes a part that no record shortens, and its records' time; a batch follows when its debt is paid."""
    before, balance, now, read, told = None, Balance(), 0.0, 0, []
    while now < 300:
        rows = rows_per_batch(rps, before, TASK_S, PARTITIONS, saved=balance.rows)
        task_s = overhead_s + rows / PARTITIONS * record_s
        told.append(task_s)
        before, read = Pace(rows, task_s, 0.0, fixed_part(told, TASK_S), len(told) == 1), read + rows
        spent_s = max(task_s, (rows - balance.rows) / rps)
        balance.allow(rps, spent_s)
        balance.read(rows)
        balance.bound(rps, 0, 10**9, saves=True)
        now += spent_s
    assert read <= rps * now + PARTITIONS
    assert rows >= max(0.9 * min(rps * SAVE_S, PARTITIONS * TASK_S / record_s) - 1, PARTITIONS)


@given(st.floats(5, 500), st.lists(st.floats(0, 5), min_size=30, max_size=30))
def test_a_replay_whose_batches_wait_comes_to_its_rate_all_the_same(rps, waits_s):
    """Of batches of short tasks, each of which waits for a pause once the rate allows it."""
    balance, before, now, read = Balance(), Pace(1_000, 0.1, tasks=100), 0.0, 0
    for wait_s in waits_s:
        balance.allow(rps, wait_s)
        balance.bound(rps, 32, 10**9, saves=True)
        rows = rows_per_batch(rps, before, TASK_S, PARTITIONS, saved=balance.rows)
        ahead_s = (rows - balance.rows) / rps  # until the next one may begin
        balance.allow(rps, ahead_s)
        balance.read(rows)
        before, now, read = before._replace(rows=rows), now + wait_s + ahead_s, read + rows
    assert read == pytest.approx(rps * now, rel=0.02, abs=2 * len(waits_s))


@pytest.mark.parametrize(
    ("rps", "left", "most", "wait_s"),
    [(50.0, 10_000, 500, 10), (1.0, 10_000, 32, 32), (0.2, 10_000, 32, 160), (0.2, 2, 2, 10), (3.1, 31, 31, 10)],
)
def test_at_the_end_of_a_range_no_debt_takes_longer_than_an_interval(rps, left, most, wait_s):
    """A rate of what is left over ten seconds: two records were left, and a debt of 32 was paid off by 0.2/s."""
    balance = Balance(-1000.0)
    balance.bound(rps, 32, left, saves=True)
    assert balance.rows == pytest.approx(-most)
    balance.allow(rps, wait_s)
    assert balance.rows == pytest.approx(0, abs=1e-9)


def test_what_a_replay_comes_to_is_what_its_newest_batches_read_of_what_the_rate_allowed():
    reached = Reached()
    reached.allow(50.0, 20.0)
    reached.pass_over()  # of its first batches nothing is told
    assert reached.share is None
    reached.allow(50.0, 3.0)
    reached.allow(10.0, 5.0)
    reached.end(100)
    assert reached.share == pytest.approx(100 / 200)
    reached.allow(0.0, 60.0)  # paused
    reached.allow(50.0, 2.0)
    reached.end(100)
    assert reached.share == pytest.approx((70 + 100) / (140 + 100))
    for _ in range(20):
        reached.allow(50.0, 10.0)
        reached.end(125)
    assert reached.share == pytest.approx(0.25, abs=0.001)
    reached.end(10_000)
    assert reached.share == 1.0
