import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.relation.join import Join
from models.relation.records import RelationError, SignedRecord, net, relation
from tests.fakes.signed import Driven, minus, plus, table, within

keys, values, times, signs = st.sampled_from("kl"), st.integers(0, 1), st.integers(0, 20), st.sampled_from([1, 1, -1])
signed = st.lists(st.builds(SignedRecord, keys, values, times, st.just(0), signs), max_size=8)


def test_pairs_come_and_go_with_either_side():
    driven = Driven(Join())
    assert driven.take([plus("k", "a1", 1)], []) == []
    assert driven.take([], [plus("k", "b1", 5)]) == [(1, "k", ("a1", "b1"), 5)]
    assert driven.take([], [plus("k", "b2", 0), plus("other", "b3", 0)]) == [(1, "k", ("a1", "b2"), 1)]
    assert driven.take([minus("k", "a1", 1)], []) == [(-1, "k", ("a1", "b1"), 5), (-1, "k", ("a1", "b2"), 1)]


def test_what_comes_and_goes_within_a_micro_batch_is_not_told():
    driven = Driven(Join())
    assert driven.take([plus("k", "a", 1), minus("k", "a", 1)], [plus("k", "b", 1)]) == []
    assert driven.take([plus("k", "a", 1)], []) == [(1, "k", ("a", "b"), 1)]


def test_nets_are_multiplied_below_nothing_too():
    driven = Driven(Join())
    assert driven.take([plus("k", "a", 1)] * 2, [plus("k", "b", 1)] * 3) == [(1, "k", ("a", "b"), 1)] * 6
    assert driven.take([], [minus("k", "c", 1)]) == [(-1, "k", ("a", "c"), 1)] * 2
    assert driven.take([], [plus("k", "c", 1)]) == [(1, "k", ("a", "c"), 1)] * 2


def test_a_pair_arrived_with_its_newer_half_and_is_live_if_either_is():
    operator = Join()
    left, right = SignedRecord("k", "a", 1, 30, 1, "replay"), SignedRecord("k", "b", 1, 20, 1, "replay")
    _, (pair,) = operator.step(operator.start(), [[left], [right]], -math.inf)
    assert (pair.t_i, pair.origin) == (30, "replay")
    _, (pair,) = operator.step(operator.start(), [[left], [plus("k", "b", 1, 40)]], -math.inf)
    assert (pair.t_i, pair.origin) == (40, "live")


def test_a_bound_keeps_apart_what_is_further_away():
    left, right = table(("k", "a", 100)), table(*(("k", t_e, t_e) for t_e in (89, 90, 110, 111)))
    assert Join(bound_ms=10).apply(left, right) == table(("k", ("a", 90), 100), ("k", ("a", 110), 110))


def test_a_record_stays_as_long_as_a_partner_on_time_may_come():
    driven = Driven(Join(bound_ms=10))
    driven.take([plus("k", "a", 100)], [], watermark=110)
    assert driven.take([], [plus("k", "b", 110)], watermark=111) == [(1, "k", ("a", "b"), 110)]
    left, right = driven.state.content
    assert not left and len(right) == 1
    assert driven.take([], [plus("k", "c", 110)]) == [] and driven.state.late_dropped == 1
    assert driven.take([minus("k", "a", 100)], []) == [] and driven.state.late_dropped == 2


def test_lateness_keeps_records_longer_and_holds_the_output_back():
    driven = Driven(Join(bound_ms=10, lateness_ms=5))
    driven.take([plus("k", "a", 100)], [], watermark=115)
    assert driven.state.frontier == 110
    assert driven.take([], [plus("k", "b", 110)]) == [(1, "k", ("a", "b"), 110)]
    assert driven.take([], [plus("k", "b", 109)]) == [] and driven.state.late_dropped == 1


def test_keys_in_windows_close_with_them():
    driven, window = Driven(Join(emission="final")), within(0, 10, "k")
    assert driven.take([plus(window, "a", 2)], [plus(window, "b", 1)], watermark=9) == []
    assert driven.take([plus(window, "c", 0)], [], watermark=10) == [
        (1, window, ("a", "b"), 2), (1, window, ("c", "b"), 1),
    ]  # fmt: skip
    assert driven.state.content == ({}, {})
    assert driven.take([], [plus(window, "d", 9)]) == [] and driven.state.late_dropped == 1


def test_with_no_bound_all_stays_to_the_end_and_final_results_hold_the_output_back():
    driven = Driven(Join(emission="final"))
    assert driven.take([plus("k", "a", 3)], [plus("k", "b", 7), minus("k", "c", 9)], watermark=1000) == []
    assert driven.state.frontier == 7
    assert driven.take([minus("k", "a", 3), plus("k", "d", 1)], [], watermark=2000) == []
    assert sorted(driven.take([], [], watermark=math.inf)) == [(-1, "k", ("d", "c"), 9), (1, "k", ("d", "b"), 7)]
    assert driven.state.frontier == math.inf
    assert driven.state.negative_keys == 1


def test_a_final_pair_waits_until_neither_half_can_go():
    driven = Driven(Join(bound_ms=10, emission="final"))
    assert driven.take([plus("k", "a", 3)], [plus("k", "b", 7)], watermark=7) == []
    assert driven.take([], [], watermark=8) == [(1, "k", ("a", "b"), 7)]


@given(signed, signed, st.none() | st.integers(0, 12), st.randoms())
def test_it_is_symmetric_and_any_interleaving_ends_in_the_same(left, right, bound, random):
    join, mirrored = Join(bound_ms=bound), Join(bound_ms=bound)
    whole = join.apply(net(left), net(right))
    swapped = mirrored.apply(net(right), net(left))
    assert whole == {(k, (a, b), t_e): count for (k, (b, a), t_e), count in swapped.items()}
    expected = relation(
        ((a.k, (a.v, b.v), max(a.t_e, b.t_e)), a.mult * b.mult)
        for a in left for b in right
        if a.k == b.k and (bound is None or abs(a.t_e - b.t_e) <= bound)
    )  # fmt: skip
    assert whole == expected
    driven, told, mixed = Driven(join), [], [(0, one) for one in left] + [(1, one) for one in right]
    random.shuffle(mixed)
    while mixed:
        part, mixed = mixed[: (cut := random.randint(1, 4))], mixed[cut:]
        told += driven.take(*([one for side, one in part if side == which] for which in (0, 1)))
    assert relation(((k, v, t_e), sign) for sign, k, v, t_e in told) == expected


def test_a_bound_below_nothing_is_refused():
    with pytest.raises(RelationError, match="bound of a join, -1 ms: give 0 or more, or None"):
        Join(bound_ms=-1)
