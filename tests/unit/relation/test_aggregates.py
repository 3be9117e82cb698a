import math
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.relation.aggregates import Aggregate, Distinct
from models.relation.linear import SlidingWindow, tumbling
from models.relation.records import END_OF_TIME, RelationError, net
from models.relation.reducers import Count, Mean, RowOf, Sum
from tests.fakes.signed import Driven, minus, plus, table, within

COUNT_AND_SUM = Aggregate(RowOf((Count(), Sum())))
FIRST = within(0, 10, "a")
finite = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e12, max_value=1e12)


def test_count_and_sum_tell_the_old_result_before_the_new():
    driven = Driven(COUNT_AND_SUM)
    assert driven.take([plus("a", 5, 0)]) == [(1, "a", (1, 5), END_OF_TIME)]
    assert driven.take([plus("a", 7, 0)]) == [(-1, "a", (1, 5), END_OF_TIME), (1, "a", (2, 12), END_OF_TIME)]
    assert driven.take([minus("a", 5, 0)]) == [(-1, "a", (2, 12), END_OF_TIME), (1, "a", (1, 7), END_OF_TIME)]
    assert driven.take([minus("a", 7, 0)]) == [(-1, "a", (1, 7), END_OF_TIME)]
    assert not driven.state.content


def test_within_a_micro_batch_only_what_has_changed_at_its_end_is_told():
    driven = Driven(COUNT_AND_SUM)
    assert driven.take([plus("a", 5, 0), plus("a", 7, 0), minus("a", 5, 0)]) == [(1, "a", (1, 7), END_OF_TIME)]
    assert driven.take([plus("a", 1, 0), minus("a", 1, 0)]) == []


def test_a_retraction_before_its_insertion_is_kept_and_not_told():
    driven = Driven(COUNT_AND_SUM)
    assert driven.take([minus("a", 5, 0)]) == []
    assert driven.take([plus("a", 7, 0)]) == []  # n = 0
    assert driven.take([plus("a", 5, 0)]) == [(1, "a", (1, 7), END_OF_TIME)]


def test_retractions_of_what_never_came_are_counted_when_the_window_closes():
    driven = Driven(Aggregate(Count(), lateness_ms=5))
    driven.take([minus(FIRST, 5, 3), plus(within(10, 20, "a"), 5, 13)], watermark=14)
    assert driven.state.negative_keys == 0
    driven.take(watermark=15)
    assert driven.state.negative_keys == 1


def test_a_final_result_comes_once_at_the_end_of_its_window():
    driven = Driven(Aggregate(Count(), emission="final"))
    assert driven.take([plus(FIRST, 1, 3)], watermark=9) == []
    assert driven.take([plus(FIRST, 2, 9), plus(within(10, 20, "a"), 1, 15)], watermark=10) == [(1, FIRST, 2, 9)]
    assert driven.take([minus(within(10, 20, "a"), 1, 15)], watermark=math.inf) == []


def test_what_comes_within_the_lateness_corrects_a_final_result_and_later_it_is_dropped():
    driven = Driven(Aggregate(Count(), emission="final", lateness_ms=15))
    window = within(60, 90, "a")
    assert driven.take([plus(window, 1, 75)], watermark=90) == [(1, window, 1, 89)]
    assert driven.take([plus(within(80, 110, "a"), 1, 85)], watermark=104) == []  # [80, 110) is not final
    assert driven.take([plus(window, 2, 70)], watermark=105) == [(-1, window, 1, 89), (1, window, 2, 89)]
    assert driven.take([plus(window, 3, 70)]) == [] and driven.state.late_dropped == 1
    assert driven.state.frontier == 90  # the watermark less the lateness: corrections came as late


def test_behind_a_sliding_window_a_record_counts_per_window():
    counts, records = Driven(Aggregate(Count())), table(("a", 1, 65))
    counts.take(watermark=80)  # closes [40, 70) and [50, 80) of the three that hold 65
    batch = [plus(k, v, t_e) for k, v, t_e in SlidingWindow(30, 10).apply(records)]
    assert counts.take(batch) == [(1, within(60, 90, "a"), 1, 89)]
    assert counts.state.late_dropped == 2


def test_keys_in_no_window_are_never_late_before_the_end():
    driven = Driven(Aggregate(Count(), emission="final"))
    assert driven.take([plus("a", 1, 50)], watermark=1e15) == []
    assert driven.take([plus("a", 1, 0)]) == []
    assert driven.take(watermark=math.inf) == [(1, "a", 2, END_OF_TIME)]
    assert driven.take([plus("a", 1, 0)]) == [] and driven.state.late_dropped == 1 and not driven.state.content


def test_distinct_tells_when_a_net_rises_above_nothing_and_falls_back():
    driven = Driven(Distinct())
    assert driven.take([plus(FIRST, 5, 1)]) == [(1, FIRST, 5, 9)]
    assert driven.take([plus(FIRST, 5, 2), plus(FIRST, 6, 2), minus(FIRST, 7, 2)]) == [(1, FIRST, 6, 9)]
    assert driven.take([minus(FIRST, 5, 1)]) == []
    assert driven.take([minus(FIRST, 5, 2)]) == [(-1, FIRST, 5, 9)]
    driven.take(watermark=10)
    assert driven.state.negative_keys == 1 and not driven.state.content


def test_arrival_is_the_newest_of_the_group_and_origin_live_once_anything_was():
    operator = Aggregate(Count())
    state, _ = operator.step(operator.start(), [[plus("a", 1, 0, t_i=7)]], -math.inf)
    _, told = operator.step(state, [[plus("a", 1, 0, t_i=3)]], -math.inf)
    assert [(record.t_i, record.origin) for record in told] == [(7, "live"), (7, "live")]


@given(st.lists(st.tuples(st.sampled_from("ab"), finite, st.integers(0, 30)), max_size=20), st.randoms())
def test_sums_and_means_are_exact_in_any_order(facts, random):
    values = defaultdict(list)
    for k, v, _ in facts:
        values[k].append(Fraction(v))
    expected = {
        (k, (len(of), float(sum(of)), float(sum(of) / len(of))), END_OF_TIME): 1 for k, of in values.items()
    }  # fmt: skip
    operator = Aggregate(RowOf((Count(), Sum(), Mean())))
    for order in (facts, random.sample(facts, len(facts))):
        driven = Driven(operator)
        told = [told for fact in order for told in driven.take([plus(*fact)])]
        assert net([plus(*fact) if sign > 0 else minus(*fact) for sign, *fact in told]) == expected
    assert operator.apply(table(*facts)) == expected


def test_a_record_more_often_there_counts_as_often():
    assert COUNT_AND_SUM.apply(net([plus("a", 5, 1)] * 3 + [minus("b", 5, 1)])) == table(("a", (3, 15), END_OF_TIME))


def test_a_second_stage_sums_results_whose_retractions_pass_through():
    first, second = Driven(Aggregate(Count())), Driven(Aggregate(Sum()))

    def take(*batch):
        first.state, told = first.operator.step(first.state, [list(batch)], -math.inf)
        by_hour = Driven(tumbling(60)).take([replace(record, k="all") for record in told])
        return second.take([plus(*fact) if sign > 0 else minus(*fact) for sign, *fact in by_hour])

    hour = within(0, 60, "all")
    assert take(plus(FIRST, 1, 3), plus(within(10, 20, "b"), 1, 13)) == [(1, hour, 2, 59)]
    assert take(plus(FIRST, 1, 4)) == [(-1, hour, 2, 59), (1, hour, 3, 59)]
    assert take(minus(within(10, 20, "b"), 1, 13)) == [(-1, hour, 3, 59), (1, hour, 2, 59)]
    assert take(minus(FIRST, 1, 3), minus(FIRST, 1, 4)) == [(-1, hour, 2, 59)]


@pytest.mark.parametrize("value", [None, "7", math.inf, (1, 2)])
def test_only_finite_numbers_are_summed(value):
    with pytest.raises(RelationError, match=r"value .* under a sum or a mean: map it to a finite number"):
        Aggregate(Sum()).apply(table(("a", value, 0)))


def test_bad_options_are_refused():
    with pytest.raises(RelationError, match="lateness_ms of Aggregate, -1: give 0 or more"):
        Aggregate(Count(), lateness_ms=-1)
    with pytest.raises(RelationError, match="emission of Distinct, 'append': give 'changelog' or 'final'"):
        Distinct(emission="append")
