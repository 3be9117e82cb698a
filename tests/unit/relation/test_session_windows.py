import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.relation.aggregates import Aggregate
from models.relation.records import END_OF_TIME, RelationError, net, relation
from models.relation.reducers import Count
from models.relation.sessions import SessionWindow
from tests.fakes.signed import Driven, minus, plus, table, within

GAP = 10


def sessions_of(times):
    """Sessions of event times, by growing each until nothing is near."""
    found = set()
    for t_e in times:
        start, end = t_e, t_e + GAP
        while near := [one for one in times if start - GAP < one < end and not start <= one <= end - GAP]:
            start, end = min(start, *near), max(end, *(one + GAP for one in near))
        found.add((start, end))
    return found


def test_a_session_ends_when_nothing_comes_for_the_gap():
    assert SessionWindow(GAP).apply(table(("a", 1, 0), ("a", 2, 9), ("a", 3, 19), ("b", 4, 5))) == table(
        (within(0, 19, "a"), 1, 0), (within(0, 19, "a"), 2, 9), (within(19, 29, "a"), 3, 19), (within(5, 15, "b"), 4, 5)
    )


def test_sessions_merge_and_split_and_an_aggregate_tells_the_old_and_the_new():
    sessions, counts = Driven(SessionWindow(GAP)), Driven(Aggregate(Count()))

    def take(*batch):
        sessions.state, moved = sessions.operator.step(sessions.state, [list(batch)], -math.inf)
        return sorted(counts.take(list(moved)), key=lambda told: (told[0], told[1].window))

    assert take(plus("a", 1, 0), plus("a", 2, 15)) == [(1, within(0, 10, "a"), 1, 9), (1, within(15, 25, "a"), 1, 24)]
    assert take(plus("a", 3, 8)) == [
        (-1, within(0, 10, "a"), 1, 9), (-1, within(15, 25, "a"), 1, 24), (1, within(0, 25, "a"), 3, 24),
    ]  # fmt: skip
    assert take(minus("a", 3, 8)) == [
        (-1, within(0, 25, "a"), 3, 24), (1, within(0, 10, "a"), 1, 9), (1, within(15, 25, "a"), 1, 24),
    ]  # fmt: skip
    assert take(minus("a", 1, 0)) == [(-1, within(0, 10, "a"), 1, 9)]


def test_a_retraction_before_its_insertion_makes_no_session():
    driven = Driven(SessionWindow(GAP))
    assert driven.take([minus("a", 1, 5)]) == []
    assert driven.take([plus("a", 2, 8)]) == [(1, within(8, 18, "a"), 2, 8)]
    assert driven.take([plus("a", 1, 5)]) == []  # the two cancel, and the other's session stays
    assert driven.take(watermark=math.inf) == [] and driven.state.negative_keys == 0


def test_a_session_is_final_at_its_end_and_its_members_are_then_forgotten():
    driven = Driven(SessionWindow(GAP, emission="final"))
    assert driven.take([plus("a", 1, 0), plus("a", 2, 8)], watermark=17) == []
    assert driven.take(watermark=18) == [(1, within(0, 18, "a"), 1, 0), (1, within(0, 18, "a"), 2, 8)]
    assert not driven.state.content and driven.state.late_dropped == 0
    assert driven.take([plus("a", 3, 18)], watermark=28) == [(1, within(18, 28, "a"), 3, 18)]


def test_a_record_that_may_belong_to_a_closed_session_is_dropped_and_counted():
    driven = Driven(SessionWindow(GAP))
    driven.take([plus("a", 1, 0)], watermark=12)
    assert driven.take([plus("a", 2, 11)]) == [] and driven.state.late_dropped == 1
    assert driven.take([plus("a", 2, 12)]) == [(1, within(12, 22, "a"), 2, 12)]
    patient = Driven(SessionWindow(GAP, lateness_ms=5))
    patient.take([plus("a", 1, 3)], watermark=13)
    assert patient.state.frontier == 8
    assert patient.take([plus("a", 2, 8)]) == [
        (-1, within(3, 13, "a"), 1, 3), (1, within(3, 18, "a"), 1, 3), (1, within(3, 18, "a"), 2, 8),
    ]  # fmt: skip
    assert patient.take([minus("a", 2, 7)]) == [] and patient.state.late_dropped == 1


def test_retractions_of_what_never_came_are_counted_once_the_watermark_has_passed():
    driven = Driven(SessionWindow(GAP))
    driven.take([minus("a", 1, 5)], watermark=5)
    assert driven.state.negative_keys == 0
    driven.take(watermark=6)
    assert driven.state.negative_keys == 1 and not driven.state.content


@given(st.lists(st.integers(0, 80), max_size=12), st.lists(st.integers(0, 80), max_size=6), st.randoms())
def test_any_order_ends_in_the_sessions_of_what_is_left(times, gone, random):
    records = [plus("a", 0, t_e) for t_e in times] + [minus("a", 0, t_e) for t_e in gone]
    random.shuffle(records)
    driven, told = Driven(SessionWindow(GAP)), []
    while records:
        cut = random.randint(1, len(records))
        told += driven.take(records[:cut])
        del records[:cut]
    result = relation(((k, v, t_e), sign) for sign, k, v, t_e in told)
    left = net([plus("a", 0, t_e) for t_e in times] + [minus("a", 0, t_e) for t_e in gone])
    present = [t_e for (_, _, t_e), count in left.items() if count > 0]
    assert {k.window for k, _, _ in result} == sessions_of(present)
    assert {t_e: count for (_, _, t_e), count in result.items()} == {t_e: left["a", 0, t_e] for t_e in present}
    assert result == driven.operator.apply(left)


def test_bad_sessions_are_refused():
    with pytest.raises(RelationError, match="gap of a session window, 0 ms: give more than 0"):
        SessionWindow(0)
    with pytest.raises(RelationError, match="lateness_ms of SessionWindow, -1"):
        SessionWindow(1, lateness_ms=-1)
    with pytest.raises(RelationError, match="lies in no window"):
        SessionWindow(1).apply(table(("a", 1, END_OF_TIME)))
