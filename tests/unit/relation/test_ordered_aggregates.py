import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.relation.aggregates import Aggregate
from models.relation.ordered import Max, Min, Quantile, TopN
from models.relation.records import END_OF_TIME, RelationError, net
from models.relation.reducers import RowOf
from tests.fakes.signed import Driven, minus, plus, table

ALL = RowOf((Min(), Max(), TopN(2), Quantile(0.5)))


def result(reducer, values):
    ((_, v, _),) = Aggregate(reducer).apply(table(*(("a", value, 0) for value in values)))
    return v


def test_a_retraction_of_an_extreme_brings_the_next_one_back():
    driven = Driven(Aggregate(RowOf((Min(), Max()))))
    assert driven.take([plus("a", v, 0) for v in (5, 3, 9)]) == [(1, "a", (3, 9), END_OF_TIME)]
    assert driven.take([minus("a", 9, 0)]) == [(-1, "a", (3, 9), END_OF_TIME), (1, "a", (3, 5), END_OF_TIME)]
    assert driven.take([plus("a", 4, 0)]) == []  # neither extreme changes
    assert driven.take([minus("a", v, 0) for v in (3, 4, 5)]) == [(-1, "a", (3, 5), END_OF_TIME)]


def test_a_value_taken_out_before_it_came_has_no_part():
    driven = Driven(Aggregate(ALL))
    assert driven.take([minus("a", 1, 0), plus("a", 8, 0)]) == []
    assert driven.take([plus("a", 4, 0)]) == [(1, "a", (4, 8, (8, 4), 4), END_OF_TIME)]
    assert driven.take([plus("a", 1, 0)]) == []


def test_the_top_keeps_equal_values_and_breaks_ties_of_a_score_by_the_item():
    assert result(TopN(3), [5, 9, 9, 1]) == (9, 9, 5)
    assert result(TopN(3), [5]) == (5,)
    assert result(TopN(2), [(7, "x"), (7, "z"), (7, "y"), (3, "a")]) == ((7, "z"), (7, "y"))


@pytest.mark.parametrize(("q", "expected"), [(0.25, 1), (0.26, 2), (0.5, 2), (0.75, 3), (0.76, 4), (1.0, 4), (1e-9, 1)])
def test_a_quantile_is_the_least_value_that_enough_do_not_exceed(q, expected):
    assert result(Quantile(q), [3, 1, 4, 2]) == expected


def test_a_quantile_takes_its_share_as_written():
    assert 0.07 * 100 > 7  # what doubles make of it
    assert result(Quantile(0.07), range(1, 101)) == 7


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=12),
    st.lists(st.integers(0, 5), max_size=6),
    st.integers(1, 100),
)
def test_extremes_top_and_quantile_are_those_of_what_is_left(came, gone, percent):
    records = [plus("a", v, 0) for v in came] + [minus("a", v, 0) for v in gone]
    driven = Driven(Aggregate(RowOf((Min(), Max(), TopN(2), Quantile(percent / 100)))))
    told = [told for record in records for told in driven.take([record])]
    left = Counter(came)
    left.subtract(gone)
    values = sorted(v for v, count in left.items() for _ in range(count))
    expected = {}
    if len(came) > len(gone):
        ranked = next(v for v in values if 100 * sum(w <= v for w in values) >= percent * len(values))
        expected = table(("a", (values[0], values[-1], tuple(values[:-3:-1]), ranked), END_OF_TIME))
    assert net([plus(*fact) if sign > 0 else minus(*fact) for sign, *fact in told]) == expected
    assert driven.operator.apply(net(records)) == expected


def test_values_without_an_order_and_bad_options_are_refused():
    with pytest.raises(RelationError, match=r"values \[1, 'x'\] have no order .*map them to one kind"):
        result(Min(), [1, "x"])
    with pytest.raises(RelationError, match="n of TopN, 0: give 1 or more"):
        TopN(0)
    for q in (0, -0.1, 1.1, math.nan):
        with pytest.raises(RelationError, match=r"q of Quantile, .*: give more than 0 and at most 1"):
            Quantile(q)
