import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.relation.linear import Difference, FlatMap, Map, Rekey, Select, SlidingWindow, Union, tumbling
from models.relation.records import END_OF_TIME, RelationError, relation
from models.relation.windows import Span, spans_at
from tests.fakes.signed import Driven, minus, plus, table, within

relations = st.dictionaries(
    st.tuples(st.sampled_from("ab"), st.integers(0, 2), st.integers(-30, 30)), st.integers(-3, 3), max_size=8
).map(lambda facts: relation(facts.items()))


def test_each_takes_a_retraction_the_way_of_its_insertion():
    batch = [plus("a", 3, 10), plus("b", 5, 20), minus("a", 3, 10)]
    for operator, became in [
        (Select(lambda k, v, t_e: v < 4), [(1, "a", 3, 10), (-1, "a", 3, 10)]),
        (Map(lambda k, v, t_e: v * 2), [(1, "a", 6, 10), (1, "b", 10, 20), (-1, "a", 6, 10)]),
        (
            FlatMap(lambda k, v, t_e: [v, v] if k == "a" else []),
            [(1, "a", 3, 10), (1, "a", 3, 10), (-1, "a", 3, 10), (-1, "a", 3, 10)],
        ),
        (Rekey(lambda k, v, t_e: t_e), [(1, 10, 3, 10), (1, 20, 5, 20), (-1, 10, 3, 10)]),
    ]:
        assert Driven(operator).take(batch) == became


def test_union_adds_and_difference_subtracts():
    assert Driven(Union()).take([plus("a", 1, 1)], [minus("b", 1, 1)], []) == [(1, "a", 1, 1), (-1, "b", 1, 1)]
    assert Driven(Difference()).take([plus("a", 1, 1)], [plus("b", 1, 1), minus("a", 1, 1)]) == [
        (1, "a", 1, 1), (-1, "b", 1, 1), (1, "a", 1, 1),
    ]  # fmt: skip
    one, two = table(("a", 1, 1), ("a", 1, 1)), table(("a", 1, 1), ("b", 1, 1))
    assert Union().apply(one, two) == {("a", 1, 1): 3, ("b", 1, 1): 1}
    assert Difference().apply(one, two) == {("a", 1, 1): 1, ("b", 1, 1): -1}


@given(relations, relations)
def test_a_relation_less_itself_is_empty_and_less_another_is_undone_by_it(one, two):
    assert not Difference().apply(one, one)
    assert Union().apply(Difference().apply(one, two), two) == one


def test_values_that_fall_together_add_up():
    assert Map(lambda k, v, t_e: 0).apply(table(("a", 1, 1), ("a", 2, 1))) == {("a", 0, 1): 2}


def test_a_watermark_passes_through_and_never_falls():
    driven = Driven(Union())
    for given_, passed in [(5, 5), (3, 5), (9, 9)]:
        driven.take([], [], watermark=given_)
        assert driven.state.frontier == driven.state.watermark == passed


def test_a_record_is_in_every_window_that_holds_it():
    assert spans_at(65_000, 30_000, 10_000) == [(40_000, 70_000), (50_000, 80_000), (60_000, 90_000)]
    assert Driven(SlidingWindow(30, 10)).take([minus("a", 1, 60)]) == [
        (-1, within(40, 70, "a"), 1, 60), (-1, within(50, 80, "a"), 1, 60), (-1, within(60, 90, "a"), 1, 60),
    ]  # fmt: skip
    assert tumbling(10).apply(table(("a", 1, 19), ("a", 1, 20), ("a", 1, -1))) == table(
        (within(10, 20, "a"), 1, 19), (within(20, 30, "a"), 1, 20), (within(-10, 0, "a"), 1, -1)
    )


@given(st.integers(-1000, 1000), st.integers(1, 40), st.integers(1, 40))
def test_windows_are_all_those_that_hold_the_time(t_e, size, slide):
    slide = min(slide, size)
    every = [Span(n * slide, n * slide + size) for n in range(-1100, 1101)]
    assert spans_at(t_e, size, slide) == [span for span in every if span.start <= t_e < span.end]


@pytest.mark.parametrize(
    ("size", "slide", "message"),
    [
        (0, 1, "size of a window, 0 ms: give more than 0"),
        (-5, 1, "size of a window, -5 ms"),
        (10, 0, "slide of a window of 10 ms, 0 ms"),
        (10, 11, "slide of a window of 10 ms, 11 ms: .*select the others before"),
    ],
)
def test_windows_of_no_length_or_with_gaps_are_refused(size, slide, message):
    with pytest.raises(RelationError, match=message):
        SlidingWindow(size, slide)


def test_a_result_over_all_time_lies_in_no_window():
    with pytest.raises(RelationError, match="lies in no window; put the window before the aggregate"):
        tumbling(10).apply(table(("a", 1, END_OF_TIME)))


def test_what_a_function_returns_must_be_comparable():
    with pytest.raises(RelationError, match=r"key 'a' with value \[1\]"):
        Map(lambda k, v, t_e: [v]).apply(table(("a", 1, 1)))
