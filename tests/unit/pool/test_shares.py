"""Division of a pool: hand-computed cases, and what holds of every division."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from models.pool.shares import NOTHING, JobClaim, PoolSize, best_step, divide

ONE = PoolSize(1)


def claim(wanted, late_s=(0.0,), weight=1.0, floor=0, kept=0, size=ONE):
    return JobClaim(size, floor, wanted, weight, late_s, kept)


def test_who_saves_most_late_seconds_is_served_first():
    flat, steep = claim(3, (10, 8, 6, 4)), claim(3, (90, 30, 5, 1))
    assert divide(PoolSize(2), [flat, steep]) == [0, 2]  # the steep one saves 60, 25 and 4, the flat one 2 each
    assert divide(PoolSize(4), [flat, steep]) == [1, 3]
    assert divide(PoolSize(6), [flat, steep]) == [3, 3]


def test_a_late_second_counts_by_its_weight():
    late = (10, 5, 0)
    assert divide(PoolSize(2), [claim(2, late), claim(2, late, weight=3)]) == [0, 2]
    assert divide(PoolSize(2), [claim(2, late, weight=3), claim(2, late)]) == [2, 0]


def test_one_that_gains_from_two_at_once_alone_is_given_both():
    behind, calm = claim(2, (100, 100, 0)), claim(2, (30, 0, 0))
    assert divide(PoolSize(2), [behind, calm]) == [2, 0]  # 50 each, by the hull, beside 30


def test_what_saves_nothing_is_divided_by_weighted_max_min():
    assert divide(PoolSize(6), [claim(9), claim(9, weight=2)]) == [2, 4]
    assert divide(PoolSize(6), [claim(1), claim(9, weight=2)]) == [1, 5]


def test_floors_come_before_everything_else_and_are_given_no_one_who_does_not_ask():
    assert divide(PoolSize(3), [claim(3, floor=2), claim(3, (1000, 500, 100, 0), weight=9)]) == [2, 1]
    assert divide(PoolSize(3), [claim(1, floor=2), claim(3, (1000, 500, 100, 0), weight=9)]) == [1, 2]


def test_a_pool_smaller_than_the_floors_is_divided_by_weighted_max_min_up_to_them():
    assert divide(PoolSize(3), [claim(5, floor=3), claim(5, floor=3, weight=2)]) == [1, 2]
    assert divide(PoolSize(5), [claim(5, floor=1), claim(5, floor=9, weight=2)]) == [1, 4]


def test_two_that_are_alike_do_not_exchange_executors():
    late = (10, 6, 3, 1)
    for kept in ((2, 1), (1, 2)):
        assert divide(PoolSize(3), [claim(3, late, kept=has) for has in kept]) == list(kept)
    urgent = (20, 12, 6, 2)  # more than `STICKY` times as much
    assert divide(PoolSize(3), [claim(3, late, kept=2), claim(3, urgent, kept=1)]) == [1, 2]


def test_executors_of_several_cores_are_worth_what_they_save_per_core():
    large, small = claim(1, (30, 0), size=PoolSize(4)), claim(4, (40, 30, 20, 10, 0))
    assert divide(PoolSize(4), [large, small]) == [0, 4]  # 7.5 a core beside 10
    assert divide(PoolSize(5), [large, small]) == [0, 4]  # and one that is left is of no use to it
    assert divide(PoolSize(8), [large, small]) == [1, 4]


def test_memory_counts_where_the_pool_states_it():
    hungry, other = (
        claim(4, (40, 30, 20, 10, 0), size=PoolSize(1, 8)),
        claim(4, (40, 30, 20, 10, 0), size=PoolSize(1, 1)),
    )
    assert divide(PoolSize(8, 16), [hungry, other]) == [1, 4]  # 8 GB are half of the memory, a core is an eighth
    assert divide(PoolSize(8), [hungry, other]) == [4, 4]


@st.composite
def claims(draw):
    found = []
    for _ in range(draw(st.integers(1, 4))):
        wanted = draw(st.integers(0, 5))
        falls = draw(st.lists(st.floats(0, 100), min_size=wanted, max_size=wanted))
        late = [sum(falls[at:]) for at in range(wanted + 1)]
        found.append(claim(
            wanted, late, draw(st.sampled_from([0.5, 1.0, 4.0])), draw(st.integers(0, 3)), draw(st.integers(0, 5)),
            PoolSize(draw(st.integers(1, 3))),
        ))  # fmt: skip
    return found


@given(st.integers(1, 20), claims())
def test_it_fits_nobody_has_more_than_it_wants_and_floors_are_kept_where_they_fit(cores, asked):
    has = divide(PoolSize(cores), asked)
    assert sum(one.size.cores * many for one, many in zip(asked, has, strict=True)) <= cores
    assert all(0 <= many <= one.wanted for one, many in zip(asked, has, strict=True))
    floors = [min(one.floor, one.wanted) for one in asked]
    if sum(one.size.cores * many for one, many in zip(asked, floors, strict=True)) <= cores:
        assert all(many >= floor for many, floor in zip(has, floors, strict=True))


@given(st.integers(1, 20), claims())
def test_nothing_is_left_that_somebody_could_have(cores, asked):
    has = divide(PoolSize(cores), asked)
    left = cores - sum(one.size.cores * many for one, many in zip(asked, has, strict=True))
    floors = sum(one.size.cores * min(one.floor, one.wanted) for one in asked)
    if floors <= cores:
        assert all(many == one.wanted or one.size.cores > left for one, many in zip(asked, has, strict=True))


FALLS = st.tuples(st.lists(st.integers(0, 50), min_size=4, max_size=4), st.integers(1, 4))


@given(st.integers(1, 8), st.lists(FALLS, min_size=1, max_size=3))
def test_it_costs_the_least_where_each_further_executor_saves_less(cores, drawn):
    asked = []
    for falls, weight in drawn:
        falls = sorted(falls, reverse=True)
        asked.append(claim(4, [float(sum(falls[at:])) for at in range(5)], float(weight)))
    has = divide(PoolSize(cores), asked)
    cost = sum(one.cost(many) for one, many in zip(asked, has, strict=True))
    best = min(
        sum(one.cost(many) for one, many in zip(asked, split, strict=True))
        for split in itertools.product(range(5), repeat=len(asked)) if sum(split) <= cores
    )  # fmt: skip
    assert cost <= best + 4 * len(asked) * NOTHING * 4 + 1e-9


def test_a_step_goes_as_far_as_it_saves_most_each_and_there_is_room():
    one, whole = claim(5, (100, 90, 20, 19, 2, 2)), PoolSize(10)
    assert best_step(one, 0, 0, 5, whole) == (-400, 0, 2)  # 40 a step, of a tenth of the pool each
    assert best_step(one, 0, 2, 5, whole) == (-90, 0, 4)
    assert best_step(one, 0, 0, 1, whole) == (-100, 0, 1)
    assert best_step(one, 0, 4, 5, whole) is None


def test_nobody_is_given_a_part_of_what_is_of_use_as_a_whole_alone():
    overloaded, other = claim(4, (100, 100, 100, 100, 0), weight=9), claim(2, (30, 10, 0))
    assert divide(PoolSize(3), [overloaded, other]) == [1, 2]
    assert divide(PoolSize(4), [overloaded, other]) == [4, 0]
