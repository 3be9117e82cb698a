"""What a stateful operator keeps of a group gives what the reference gives, in any order, and survives being stored."""

from fractions import Fraction
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.relation.aggregates import Aggregate
from models.relation.ordered import Max, Min, Quantile, TopN
from models.relation.records import relation
from models.relation.reducers import Count, RowOf, Sum
from tidecast.signed.groups import empty_partial, results
from tidecast.signed.processor import GroupPlan, GroupProcessor
from tidecast.signed.reductions import count, max_of, mean_of, min_of, quantile_of, sum_of, top

ALL = {
    "n": count(), "s": sum_of("x"), "m": mean_of("x"), "lo": min_of("x"), "hi": max_of("x"), "best": top(2, "x", "y"),
    "third": quantile_of("x", 0.3),
}  # fmt: skip
REFERENCE = Aggregate(RowOf((Count(), Sum(), Min(), Max(), Quantile(0.3))))
numbers = st.integers(-5, 5) | st.sampled_from([0.1, 0.2, 1e300, -1e300, 2**60])
changes = st.lists(st.tuples(numbers, st.integers(0, 2), st.sampled_from([1, -1])), max_size=12)


def reduced(found):
    partial = empty_partial(tuple(ALL.values()))
    for x, y, mult in found:
        partial.add({"x": x, "y": y}, mult)
    return partial


@given(changes, st.randoms(use_true_random=False))
def test_results_are_the_references_in_any_order(found, random):
    wanted = REFERENCE.apply(relation((("k", x, 0), mult) for x, _, mult in found))
    partial = reduced(found)
    again = found.copy()
    random.shuffle(again)
    mine = results(ALL, partial)
    assert results(ALL, reduced(again)) == mine
    assert (mine is None) == (not wanted)
    if mine:
        ((_, (n, s, lo, hi, third), _),) = wanted
        assert [mine["n"], float(mine["s"]), mine["m"]] == [n, float(s), float(s) / n]  # a mean as Spark rounds it
        assert (mine["lo"], mine["hi"], mine["third"]) == (lo, hi, third)
    ranked = Aggregate(TopN(2)).apply(relation((("k", (x, y), 0), mult) for x, y, mult in found))
    assert [tuple(row.values()) for row in mine["best"]] == list(next(iter(ranked))[1]) if mine else not ranked


@given(changes)
def test_what_is_taken_out_again_leaves_nothing(found):
    undone = reduced([*found, *((x, y, -mult) for x, y, mult in found)])
    assert undone.empty and results(ALL, undone) is None


@given(changes, st.booleans())
def test_a_stored_group_is_the_same(found, final):
    processor = GroupProcessor(GroupPlan(("k",), ALL, schema_of(ALL), {}, final, 0))
    partial = reduced(found)
    partial.t_i, partial.live, partial.told = 7, True, True
    assert processor._partial(processor._stored(partial)) == partial
    assert processor._partial(None).told is not final


def test_a_state_that_names_no_columns_as_of_an_older_release_is_read_if_it_has_as_many_sums():
    summed = {"s": sum_of("x"), "m": mean_of("y")}
    processor = GroupProcessor(GroupPlan(("k",), summed, schema_of(summed), {}, False, 0))
    known = processor._partial((1, 7, True, True, [(1, "2"), (1, "5/2")]))
    assert known.sums == {"x": (1, 2), "y": (1, Fraction(5, 2))}
    with pytest.raises(ValueError, match=r"this checkpoint keeps 1 sums, one of the plan keeps sums of \['x', 'y'\]"):
        processor._partial((1, 7, True, True, [(1, "2")]))
    counted = GroupProcessor(GroupPlan(("k",), {"n": count()}, schema_of({"n": 0}), {}, False, 0))
    assert counted._stored(counted._partial((1, 7, True, True, []))) == (1, 7, True, True, [])
    with pytest.raises(ValueError, match=r"keeps sums of \['x', 'y'\], values of \[\], .* keeps sums of \[\]:"):
        counted._partial(processor._stored(known))


def test_a_state_of_other_ordered_columns_is_refused_though_their_types_are_the_same():
    one, other = (
        GroupProcessor(GroupPlan(("k",), made, schema_of(made), {}, False, 0))
        for made in ({"lo": min_of("x"), "hi": max_of("x")}, {"lo": min_of("y")})
    )
    stored = one._stored(one._partial(None))
    assert one._partial(stored).values == {("x",): {}}
    with pytest.raises(ValueError, match=r"\['x'\]\], one of the plan keeps sums of \[\], values of \[\['y'\]\]:"):
        other._partial(stored)


def schema_of(reductions):
    from pyspark.sql import types as T

    return T.StructType([T.StructField(name, T.LongType()) for name in reductions])


def test_nulls_take_no_part_but_are_counted():
    partial = reduced([(None, 1, 1), (None, 1, 1)])
    assert results(ALL, partial) == {"n": 2, "s": None, "m": None, "lo": None, "hi": None, "best": [], "third": None}
    partial.add({"x": 3, "y": None}, 1)
    assert results(ALL, partial) == {"n": 3, "s": 3, "m": 3.0, "lo": 3, "hi": 3, "best": [], "third": 3}


def test_a_mean_is_what_spark_divides_a_rounded_sum_by_and_infinite_beyond_doubles():
    assert results(ALL, reduced([(x, 0, 1) for x in (2**53, 1, 0)]))["m"] == 2.0**53 / 3 != (2**53 + 1) // 3
    for x in (1.7e308, -1.7e308):
        assert results(ALL, reduced([(x, 0, 1), (x, 0, 1)]))["m"] == x * 2


def test_a_sum_beyond_all_doubles_is_told_as_infinite_and_is_a_number_again_once_a_value_is_taken_out():
    from pyspark.sql import types as T

    summed = {"s": sum_of("x")}
    schema = T.StructType([T.StructField("s", T.DoubleType())])
    processor = GroupProcessor(GroupPlan(("k",), summed, schema, {}, False, 0))
    partial, old, told = empty_partial(tuple(summed.values())), None, []
    for mult in (1, 1, -1):
        partial.add({"x": 1.7e308}, mult)
        new = results(summed, partial)
        told += [(row["s"], row["_mult"]) for row in processor._changes(("a",), partial, old, new)]
        old = new
    assert told == [(1.7e308, 1), (1.7e308, -1), (inf, 1), (inf, -1), (1.7e308, 1)]


def test_a_key_may_be_named_as_an_argument_of_row_is():
    processor = GroupProcessor(GroupPlan(("cls",), {}, schema_of({}), {}, False, 0))
    assert processor._row(("a",), {}, 7, 1, "live", None).asDict() == {
        "cls": "a", "_t_i": 7, "_mult": 1, "_origin": "live", "_note": None,
    }  # fmt: skip


@pytest.mark.parametrize("x", [float("nan"), float("inf")])
def test_what_no_number_could_take_out_again_is_refused(x):
    with pytest.raises(ValueError, match="column 'x' under a sum or a mean: filter out what is no finite number"):
        reduced([(x, 0, 1)])


def test_a_nan_that_could_never_be_taken_out_again_is_refused():
    partial = empty_partial((min_of("x"),))
    with pytest.raises(ValueError, match="x: NaN has no place in an order"):
        partial.add({"x": float("nan")}, 1)
