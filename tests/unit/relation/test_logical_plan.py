import math

import pytest

from models.relation.aggregates import Aggregate
from models.relation.join import Join
from models.relation.linear import Difference, Map, Rekey, Union, tumbling
from models.relation.plan import LogicalPlan, Node, run_batch
from models.relation.records import RelationError, SignedRecord
from models.relation.reducers import Count, Sum
from models.relation.stream import Arrival, MicroBatch, advance, begin, run_stream
from models.relation.watermark import Source
from tests.fakes.signed import minus, plus, table, within

SAME = Map(lambda k, v, t_e: v)
LEFT = Source("left")


def plan_of(*nodes, sources=(LEFT,)):
    return LogicalPlan(tuple(sources), tuple(nodes))


COUNTS = plan_of(
    Node("counts", Aggregate(Count(), emission="final"), ("windowed",)),  # nodes may stand in any order
    Node("windowed", tumbling(10), ("left",)),
)


def batch_of(now, *records, source="left", partition=0, ended=()):
    return MicroBatch(now, tuple(Arrival(source, record, partition) for record in records), frozenset(ended))


def test_a_batch_gives_every_nodes_relation():
    assert run_batch(COUNTS, {"left": table(("a", 1, 3), ("a", 2, 4), ("a", 1, 13))}) == {
        "windowed": table((within(0, 10, "a"), 1, 3), (within(0, 10, "a"), 2, 4), (within(10, 20, "a"), 1, 13)),
        "counts": table((within(0, 10, "a"), 2, 9), (within(10, 20, "a"), 1, 19)),
    }


def test_a_micro_batch_is_judged_by_the_watermark_before_it():
    execution, told = advance(COUNTS, begin(COUNTS), batch_of(0, plus("a", 1, 12), plus("a", 1, 3)))
    assert [record.fact for record in told["counts"]] == [(within(0, 10, "a"), 1, 9)]  # 3 is behind 12, and in time
    execution, told = advance(COUNTS, execution, batch_of(1, plus("a", 1, 4)))
    assert told["counts"] == () and execution.states["counts"].late_dropped == 1
    _, told = advance(COUNTS, execution, batch_of(2, ended=["left"]))
    assert [record.fact for record in told["counts"]] == [(within(10, 20, "a"), 1, 19)]


def test_two_stages_become_final_in_one_micro_batch():
    hourly = plan_of(
        Node("windowed", tumbling(10), ("left",)),
        Node("counts", Aggregate(Count(), emission="final"), ("windowed",)),
        Node("all", Rekey(lambda k, v, t_e: "all"), ("counts",)),
        Node("wide", tumbling(20), ("all",)),
        Node("sums", Aggregate(Sum(), emission="final"), ("wide",)),
    )
    _, told = advance(hourly, begin(hourly), batch_of(0, plus("a", 1, 3), plus("b", 1, 15), plus("b", 1, 20)))
    assert [record.fact for record in told["sums"]] == [(within(0, 20, "all"), 2, 19)]
    result = run_stream(hourly, [batch_of(0, plus("a", 1, 3)), batch_of(1, plus("b", 1, 15), plus("b", 1, 20))])
    assert result.relations["sums"] == table((within(0, 20, "all"), 2, 19), (within(20, 40, "all"), 1, 39))
    assert result.late_dropped == {"counts": 0, "sums": 0}


def test_the_least_of_two_sources_holds_both_back():
    plan = plan_of(
        Node("both", Union(), ("left", "right")), Node("windowed", tumbling(10), ("both",)),
        Node("counts", Aggregate(Count(), emission="final"), ("windowed",)),
        sources=(LEFT, Source("right")),
    )  # fmt: skip
    execution, _ = advance(plan, begin(plan), batch_of(0, plus("a", 1, 25)))
    assert execution.states["counts"].watermark == -math.inf
    execution, told = advance(plan, execution, batch_of(1, plus("a", 1, 9), plus("a", 1, 11), source="right"))
    assert execution.states["counts"].watermark == 11 and len(told["counts"]) == 1


def test_a_relation_joined_with_itself_or_taken_from_itself():
    plan = plan_of(Node("pairs", Join(), ("left", "left")), Node("nothing", Difference(), ("left", "left")))
    facts = table(("k", 1, 0), ("k", 2, 0))
    batch = run_batch(plan, {"left": facts})
    assert len(batch["pairs"]) == 4 and not batch["nothing"]
    stream = run_stream(plan, [batch_of(0, plus("k", 1, 0)), batch_of(1, plus("k", 2, 0))])
    assert stream.relations == batch


def test_a_replay_followed_by_live_records_is_one_relation():
    replayed = [SignedRecord("a", 1, t_e, 100, 1, "replay") for t_e in (1, 2)]
    result = run_stream(COUNTS, [batch_of(100, *replayed), batch_of(101, plus("a", 1, 3, 101), minus("a", 1, 2, 101))])
    assert result.relations["counts"] == table((within(0, 10, "a"), 2, 9))


def test_an_idle_partition_no_longer_holds_the_result_back():
    plan = LogicalPlan((Source("left", partitions=2, idle_ms=50),), COUNTS.nodes)
    execution, told = advance(plan, begin(plan), batch_of(0, plus("a", 1, 3), plus("a", 1, 30)))
    assert not told["counts"]
    _, told = advance(plan, execution, batch_of(50, plus("a", 1, 31, 50)))
    assert [record.fact for record in told["counts"]] == [(within(0, 10, "a"), 1, 9)]


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([Node("left", SAME, ("left",))], r"names that stand twice in a plan, \['left'\]"),
        ([Node("x", SAME, ("lift",))], r"inputs \['lift'\] of node 'x' are unknown: known are \['left', 'x'\]"),
        ([Node("x", Join(), ("left",))], "1 inputs of node 'x': Join takes 2"),
        ([Node("x", SAME, ("left", "left"))], "2 inputs of node 'x': Map takes 1"),
        ([Node("x", Union(), ())], "0 inputs of node 'x': Union takes one or more"),
        ([Node("x", SAME, ("y",)), Node("y", SAME, ("x",))], "cycle (x -> y -> x|y -> x -> y) in a plan: take away"),
        ([Node("x", SAME, ("x",))], "cycle x -> x in a plan"),
    ],
)
def test_what_is_no_plan_is_refused(nodes, message):
    with pytest.raises(RelationError, match=message):
        plan_of(*nodes)


def test_a_batch_needs_a_relation_for_each_source():
    for relations in ({}, {"left": table(), "right": table()}):
        with pytest.raises(RelationError, match=r"for the sources \['left'\]: give one for each source"):
            run_batch(COUNTS, relations)


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (batch_of(9, plus("a", 1, 1)), "micro-batch at 9 ms after one at 10 ms: give them in order"),
        (batch_of(10, plus("a", 1, 1), source="lift"), r"sources \['lift'\] .* are unknown: .*\['left'\]"),
        (batch_of(10, ended=["lift"]), r"sources \['lift'\] of a micro-batch are unknown"),
        (batch_of(10, plus("a", 1, 1), partition=1), "partition 1 of source 'left': it has 1, from 0 on"),
        (batch_of(10, plus("a", 1, 1, 11)), r"t_i=11.* in a micro-batch at 10 ms: cut it after"),
    ],
)
def test_what_cannot_come_is_refused(batch, message):
    execution, _ = advance(COUNTS, begin(COUNTS), MicroBatch(10))
    with pytest.raises(RelationError, match=message):
        advance(COUNTS, execution, batch)


def test_nothing_comes_after_the_end():
    execution, _ = advance(COUNTS, begin(COUNTS), batch_of(0, ended=["left"]))
    with pytest.raises(RelationError, match="of source 'left', which has ended: end a source after its last record"):
        advance(COUNTS, execution, batch_of(1, plus("a", 1, 1)))
