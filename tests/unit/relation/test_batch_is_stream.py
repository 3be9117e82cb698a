"""What must hold for every operator, alone and behind others, on random change logs."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.relation.aggregates import Aggregate, Distinct
from models.relation.changelog import ChangeLog, LogShape, draw_changelog, reorder
from models.relation.join import Join
from models.relation.linear import Difference, FlatMap, Map, Rekey, Select, SlidingWindow, Union, tumbling
from models.relation.operators import StatefulOperator
from models.relation.ordered import Max, Min, Quantile, TopN
from models.relation.plan import LogicalPlan, Node, run_batch
from models.relation.records import net
from models.relation.reducers import Count, Mean, RowOf, Sum
from models.relation.sessions import SessionWindow
from models.relation.stream import MicroBatch, advance, begin, run_stream
from models.relation.watermark import Source
from models.relation.windows import WindowedKey

ALL = RowOf((Count(), Sum(), Mean(), Min(), Max(), TopN(2), Quantile(0.5)))
SHAPE = LogShape(records=10, partitions=2, keys=3, disorder_ms=30.0, retract_ms=40.0, orphaned=0.1)
seeds = st.integers(0, 2**32 - 1)
modes = st.tuples(st.sampled_from(["changelog", "final"]), st.sampled_from([0, 25]))


def everything(log, emission, lateness, behind=True):
    """A plan of every operator on a log's sources; with `behind`, none of whose records is late."""
    mode = {"emission": emission, "lateness_ms": lateness}
    behind_ms = log.disorder_ms if behind else dict.fromkeys(log.sources, 0)
    sources = tuple(Source(name, behind_ms[name], SHAPE.partitions) for name in log.sources)
    nodes = {
        "select": (Select(lambda k, v, t_e: v != 1), "left"),
        "map": (Map(lambda k, v, t_e: v // 2), "left"),
        "flat_map": (FlatMap(lambda k, v, t_e: range(v)), "left"),
        "rekey": (Rekey(lambda k, v, t_e: (k + v) % 2), "right"),
        "union": (Union(), "left", "right", "left"),
        "difference": (Difference(), "left", "right"),
        "tumbling": (tumbling(40), "left"),
        "tumbling_right": (tumbling(40), "right"),
        "sliding": (SlidingWindow(50, 20), "left"),
        "session": (SessionWindow(25, **mode), "union"),
        "pairs": (Join(**mode), "left", "right"),
        "near_pairs": (Join(30, **mode), "left", "right"),
        "window_pairs": (Join(**mode), "tumbling", "tumbling_right"),
        "distinct": (Distinct(**mode), "left"),
        "window_distinct": (Distinct(**mode), "tumbling"),
        "totals": (Aggregate(ALL, **mode), "difference"),
        "window_totals": (Aggregate(ALL, **mode), "tumbling"),
        "sliding_totals": (Aggregate(ALL, **mode), "sliding"),
        "session_totals": (Aggregate(ALL, **mode), "session"),
        # second stages
        "same_window": (Rekey(lambda k, v, t_e: WindowedKey(k.window, k.key % 2)), "window_totals"),
        "sums_of_totals": (Aggregate(ALL, **mode), "totals_as_numbers"),
        "totals_as_numbers": (Map(lambda k, v, t_e: v[1]), "same_window"),
        "no_window": (Rekey(lambda k, v, t_e: "all"), "sliding_totals"),
        "wide": (tumbling(120), "no_window"),
        "wide_counts": (Aggregate(Count(), **mode), "wide"),
        "joined_totals": (Join(**mode), "window_totals", "window_distinct"),
        "pairs_by_window": (tumbling(40), "pairs"),
        "counts_of_pairs": (Aggregate(Count(), **mode), "pairs_by_window"),
        "near_by_window": (tumbling(40), "near_pairs"),
        "counts_of_near": (Aggregate(Count(), **mode), "near_by_window"),
        "sessions_of_pairs": (SessionWindow(25, **mode), "near_pairs"),
    }
    return LogicalPlan(sources, tuple(Node(name, operator, tuple(of)) for name, (operator, *of) in nodes.items()))


def drawn(seed, shape=SHAPE):
    return draw_changelog(shape, np.random.default_rng(seed))


@settings(max_examples=25)
@given(seeds, modes)
def test_a_stream_ends_in_what_a_batch_gives_for_every_operator_in_any_order(seed, mode):
    log = drawn(seed)
    for arrived in (log, reorder(log, np.random.default_rng(seed))):
        plan = everything(arrived, *mode)
        stream = run_stream(plan, arrived.batches)
        assert not any(stream.late_dropped.values())
        assert stream.relations == run_batch(plan, log.relations)


@settings(max_examples=10)
@given(seeds, modes)
def test_a_replay_in_order_of_event_time_gives_the_same(seed, mode):
    log = drawn(seed)
    past = sorted(log.arrivals, key=lambda arrival: arrival.record.t_e)
    again = [arrival._replace(record=replace(arrival.record, t_i=0, origin="replay")) for arrival in past]
    replay = ChangeLog(log.sources, tuple(MicroBatch(0, tuple(again[at : at + 7])) for at in range(0, len(again), 7)))
    plan = everything(log, *mode)
    assert run_stream(plan, replay.batches).relations == run_batch(plan, log.relations)


@settings(max_examples=15)
@given(seeds, st.sampled_from([0, 25]))
def test_final_results_are_the_net_of_the_changelog_also_where_records_are_late(seed, lateness):
    log = drawn(seed)
    names = ["session_totals", "near_pairs", "window_pairs", "window_distinct", "window_totals", "sums_of_totals"]
    plans = [everything(log, emission, lateness, behind=False) for emission in ("changelog", "final")]
    told, final = (run_stream(plan, log.batches) for plan in plans)
    assert {name: told.relations[name] for name in names} == {name: final.relations[name] for name in names}
    assert {name: told.late_dropped[name] for name in names} == {name: final.late_dropped[name] for name in names}


@settings(max_examples=15)
@given(seeds, modes)
def test_where_records_are_late_each_operator_ends_in_what_a_batch_gives_of_those_it_took(seed, mode):
    log = drawn(seed)
    plan = everything(log, *mode, behind=False)
    stateful = [node for node in plan.nodes if isinstance(node.operator, StatefulOperator)]
    taken = {node.name: [[] for _ in node.inputs] for node in stateful}
    told = {node.name: [] for node in stateful}
    execution = begin(plan)
    for batch in (*log.batches, MicroBatch(10**9, ended=frozenset(log.sources))):
        before, (execution, flows) = execution, advance(plan, execution, batch)
        for name in log.sources:
            flows[name] = [record for source, record, _ in batch.arrivals if source == name]
        for node in stateful:
            closed = before.states[node.name].watermark - node.operator.lateness_ms
            for side, name in zip(taken[node.name], node.inputs, strict=True):
                side += [record for record in flows[name] if node.operator.end(record.fact) > closed]
            told[node.name] += flows[node.name]
    for node in stateful:
        assert net(told[node.name]) == node.operator.apply(*map(net, taken[node.name])), node.name


@settings(max_examples=15)
@given(seeds, modes)
def test_watermarks_never_fall_and_no_state_outlives_the_end(seed, mode):
    log = drawn(seed)
    plan = everything(log, *mode, behind=False)
    execution = begin(plan)
    for batch in (*log.batches, MicroBatch(10**9, ended=frozenset(log.sources))):
        before, (execution, _) = execution, advance(plan, execution, batch)
        assert all(execution.sources[name].value >= mark.value for name, mark in before.sources.items())
        for name, state in before.states.items():
            after = execution.states[name]
            assert after.watermark >= state.watermark and after.frontier >= state.frontier
            assert after.frontier <= after.watermark
    for state in execution.states.values():
        assert state.content in (None, {}, ({}, {})) and not state.held and state.frontier == math.inf


@settings(max_examples=15)
@given(seeds)
def test_every_insertion_is_counted_in_a_result_or_as_late(seed):
    log = drawn(seed, replace(SHAPE, retracted=0.0))
    stream = run_stream(everything(log, "final", 0, behind=False), log.batches)
    counted = sum(v[0] * count for (_, v, _), count in stream.relations["window_totals"].items())
    assert counted + stream.late_dropped["window_totals"] == SHAPE.records


@settings(max_examples=15)
@given(seeds)
def test_in_mode_final_nothing_is_taken_back_where_nothing_is_late(seed):
    log = drawn(seed, replace(SHAPE, orphaned=0.0))
    plan = everything(log, "final", 0)
    execution = begin(plan)
    for batch in (*log.batches, MicroBatch(10**9, ended=frozenset(log.sources))):
        execution, told = advance(plan, execution, batch)
        for name in ("window_totals", "sums_of_totals", "wide_counts", "window_distinct", "session_totals", "pairs"):
            assert all(record.mult == 1 for record in told[name])
    assert not any(execution.states[name].negative_keys for name in ("window_totals", "session", "near_pairs"))


@pytest.mark.parametrize("emission", ["changelog", "final"])
def test_the_same_log_gives_the_same_records_in_the_same_order(emission):
    log = drawn(3)
    plan = everything(log, emission, 0)

    def told():
        execution, all_told = begin(plan), []
        for batch in log.batches:
            execution, emitted = advance(plan, execution, batch)
            all_told.append(emitted)
        return all_told

    assert told() == told()


def test_an_empty_log_is_an_empty_relation():
    log = ChangeLog(("left", "right"), (MicroBatch(0),))
    plan = everything(log, "final", 0)
    assert not any(run_stream(plan, log.batches).relations.values())
    assert run_stream(plan, []).relations == run_batch(plan, log.relations)
