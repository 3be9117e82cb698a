import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.policy.core.batch_time import MOST_CORRECTION, BatchTime, learn_from_batch

GUESS = BatchTime.guess(0.6, 0.005)


def _taught(known, batches, overhead_s, per_record_s):
    for rows, slots in batches:
        known = learn_from_batch(known, rows, slots, overhead_s + per_record_s * rows / slots)
    return known


def test_one_batch_by_hand():
    """Guessed 1 s of overhead and 0.01 s a record, 100 records: half of 2 s each, f = (1, 1) / 2; it took 2 e^0.55 s.

    Information 0.3 I - 0.05 * 0.3 f f' / f'f + f f' = [[0.5425, 0.2425], [0.2425, 0.5425]], times (1, 1) 0.785 (1, 1):
    both guesses rise by the factor e^(0.55 * 0.5 / 0.785).
    """
    known = learn_from_batch(BatchTime.guess(1.0, 0.01), rows=100, slots=1, duration_s=2 * math.exp(0.55))
    assert (known.sure_overhead, known.sure_both, known.sure_record) == pytest.approx((0.5425, 0.2425, 0.5425))
    assert known.overhead_s == pytest.approx(math.exp(0.55 * 0.5 / 0.785))
    assert known.per_record_s == pytest.approx(0.01 * math.exp(0.55 * 0.5 / 0.785))


@pytest.mark.parametrize(("overhead_s", "per_record_s"), [(0.2, 0.02), (1.5, 0.008), (0.6, 0.005)])
def test_learns_both_where_the_load_varies(overhead_s, per_record_s):
    batches = [(200 + 180 * math.sin(i / 5), 2 + i // 100) for i in range(200)]
    known = _taught(GUESS, batches, overhead_s, per_record_s)
    assert known.overhead_s == pytest.approx(overhead_s, rel=0.2)
    assert known.per_record_s == pytest.approx(per_record_s, rel=0.2)


def test_one_load_tells_how_long_its_batches_take_but_not_of_what():
    known = _taught(GUESS, [(100, 1)] * 400, 0.3, 0.012)
    assert known.overhead_s + known.per_record_s * 100 == pytest.approx(1.5, rel=1e-3)
    assert known.overhead_s > 0.6  # both guesses rose


def test_hours_of_one_load_do_not_undo_what_a_range_of_loads_told():
    known = _taught(GUESS, [(20 * (1 + i % 20), 1) for i in range(200)], 0.3, 0.012)
    assert known.per_record_s == pytest.approx(0.012, rel=0.05)
    later = _taught(known, [(4, 1)] * 3000, 0.3, 0.012)
    assert later.per_record_s == pytest.approx(known.per_record_s, rel=0.05)
    # And if the records become dearer meanwhile, that is learned as soon as there are some again.
    assert _taught(later, [(400, 1)] * 60, 0.3, 0.024).per_record_s == pytest.approx(0.024, rel=0.1)


def test_who_thinks_too_little_of_the_executors_learns_it_although_they_are_never_busy():
    """Batches of 60 records on 4 slots take 0.9 s: by a guess of 0.05 s a record they could not."""
    known = _taught(BatchTime.guess(0.6, 0.05), [(60, 4)] * 60, 0.6, 0.02)
    assert known.overhead_s + known.per_record_s * 15 == pytest.approx(0.9, rel=0.01)
    assert known.per_record_s < 0.035


def test_a_pause_with_few_rows_hardly_moves_the_service_time():
    known = learn_from_batch(GUESS, rows=16, slots=1, duration_s=2.7)
    assert known.per_record_s == pytest.approx(0.005, rel=0.15)


def test_a_pause_of_minutes_moves_what_is_believed_by_no_more_than_a_batch_of_e_times_as_long():
    known = _taught(GUESS, [(100, 1)] * 100, 0.6, 0.005)
    after = learn_from_batch(known, 100, 1, 600.0)
    assert after.overhead_s + after.per_record_s * 100 < 1.1 * 1.06


def test_a_guess_of_no_overhead_is_corrected():
    known = _taught(BatchTime.guess(0.0, 0.005), [(20 * (1 + i % 20), 1) for i in range(300)], 0.15, 0.005)
    assert known.overhead_s == pytest.approx(0.15, rel=0.2)


@pytest.mark.parametrize(("rows", "slots", "duration_s"), [(0, 2, 5.0), (10, 0, 5.0), (10, 2, 0.0)])
def test_a_batch_without_rows_slots_or_duration_teaches_nothing(rows, slots, duration_s):
    assert learn_from_batch(GUESS, rows, slots, duration_s) is GUESS


@given(st.lists(st.tuples(st.integers(1, 10**6), st.integers(1, 64), st.floats(0.001, 3600)), max_size=60))
def test_whatever_batches_tell_what_is_learned_stays_within_its_bounds_and_finite(batches):
    known = GUESS
    for rows, slots, duration_s in batches:
        known = learn_from_batch(known, rows, slots, duration_s)
    assert 1 / MOST_CORRECTION <= known.overhead_s / 0.6 <= MOST_CORRECTION
    assert 1 / MOST_CORRECTION <= known.per_record_s / 0.005 <= MOST_CORRECTION
    assert known.sure_overhead > 0 and known.sure_record > 0


def test_an_endless_run_keeps_its_information_bounded():
    chance = np.random.default_rng(1)
    known, most = GUESS, []
    for _ in range(20_000):
        rows, noise = float(chance.uniform(1, 500)), math.exp(0.2 * chance.standard_normal())
        known = learn_from_batch(known, rows, 3, (0.4 + 0.009 * rows / 3) * noise)
        most.append(known.sure_overhead + known.sure_record)
    assert max(most) < 100
    assert known.sure_overhead * known.sure_record > known.sure_both**2
    assert known.per_record_s == pytest.approx(0.009, rel=0.25) and known.overhead_s == pytest.approx(0.4, rel=0.25)


def test_the_time_of_a_batchs_tasks_bounds_its_work_by_hand():
    """After the batch above, 2 e^0.275 s are believed; its tasks ran for 1 s: a record took 0.01 s and not e^0.275 of
    that.

    Information [[a, b], [b, c]] of 0.5425 and 0.2425 becomes [[a - 0.05 b^2 / c, 0.95 b], [., 0.95 c + 1]], and the
    work falls, the overhead rises by the error of -0.55 * 0.5 / 0.785 times (-b, a) / determinant.
    """
    error = -0.55 * 0.5 / 0.785
    known = learn_from_batch(BatchTime.guess(1.0, 0.01), 100, 1, 2 * math.exp(0.55), tasks_s=1.0)
    a, b, c = 0.5425 - 0.05 * 0.2425**2 / 0.5425, 0.95 * 0.2425, 0.95 * 0.5425 + 1
    assert (known.sure_overhead, known.sure_both, known.sure_record) == pytest.approx((a, b, c))
    assert known.per_record_s == pytest.approx(0.01 * math.exp(-error + error * a / (a * c - b * b)))
    assert known.overhead_s == pytest.approx(math.exp(-error - error * b / (a * c - b * b)))


def test_a_dear_overhead_is_told_from_work_by_batches_of_one_load_where_their_tasks_are_measured():
    """A merge of 4 s after each batch, where 0.4 s was guessed: 640 records of 0.02 s on 4 slots, all batches alike."""
    blind = measured = BatchTime.guess(0.4, 0.02)
    for _ in range(60):
        blind = learn_from_batch(blind, 640, 4, 4 + 3.2)
        measured = learn_from_batch(measured, 640, 4, 4 + 3.2, tasks_s=3.2)
    assert blind.per_record_s > 0.035
    assert measured.per_record_s == pytest.approx(0.02, rel=0.05)
    assert measured.overhead_s == pytest.approx(4.0, rel=0.05)


@given(st.floats(0.1, 3.0), st.floats(0.001, 0.05), st.lists(st.tuples(st.integers(1, 2000), st.integers(1, 8))))
def test_tasks_that_ran_longer_than_their_work_change_nothing(overhead_s, per_record_s, batches):
    known = bounded = BatchTime.guess(overhead_s, per_record_s)
    for rows, slots in batches:
        took = 0.5 + 0.01 * rows / slots
        known = learn_from_batch(known, rows, slots, took)
        bounded = learn_from_batch(bounded, rows, slots, took, tasks_s=20 * per_record_s * rows / slots * 1.001)
    assert bounded == known
