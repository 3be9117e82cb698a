"""Fused or not, a plan gives the same nets, watermarks and snapshots: the reference run as queries and topics."""

import math
from collections import Counter, defaultdict
from graphlib import CycleError, TopologicalSorter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.placement.fusion.parts import FusionTask, Link, QueryStage, groups_of, illegal_because
from models.placement.fusion.planner import fuse
from models.relation.aggregates import Aggregate, Distinct
from models.relation.changelog import LogShape, draw_changelog
from models.relation.join import Join
from models.relation.linear import Map, Rekey, Select, Union, tumbling
from models.relation.ordered import Max
from models.relation.plan import LogicalPlan, Node, run_batch
from models.relation.records import net
from models.relation.reducers import Count, RowOf, Sum
from models.relation.sessions import SessionWindow
from models.relation.stream import MicroBatch, advance, begin
from models.relation.watermark import Source

SHAPE = LogShape(records=12, partitions=2, keys=3, disorder_ms=30.0, retract_ms=40.0, orphaned=0.1, batches=6)
US = 1e-6


def plan_of(log, emission, late):
    """Two sources, windows, a session, a join, and second stages behind all of them; `late`: some records are."""
    mode = {"emission": emission, "lateness_ms": 10}
    behind_ms = dict.fromkeys(log.sources, 0) if late else log.disorder_ms
    nodes = {
        "select": (Select(lambda k, v, t_e: v != 1), "left"),
        "windowed": (tumbling(40), "select"),
        "totals": (Aggregate(RowOf((Count(), Sum(), Max())), **mode), "windowed"),
        "near": (Join(30, **mode), "left", "right"),
        "both": (Union(), "left", "right"),
        "session": (SessionWindow(25, **mode), "both"),
        "distinct": (Distinct(**mode), "session"),
        "keyed": (Rekey(lambda k, v, t_e: "all"), "near"),
        "wide": (tumbling(80), "keyed"),
        "pairs": (Aggregate(Count(), **mode), "wide"),
        "doubled": (Map(lambda k, v, t_e: 2 * v[0]), "totals"),
        "sums": (Aggregate(Sum(), **mode), "doubled"),
        "joined": (Join(**mode), "totals", "distinct"),
    }
    sources = tuple(Source(name, behind_ms[name], SHAPE.partitions) for name in log.sources)
    return LogicalPlan(sources, tuple(Node(name, operator, tuple(of)) for name, (operator, *of) in nodes.items()))


def task_of(plan, random=None):
    """The plan's nodes as operators that may all be one query, at drawn costs."""
    random = random or np.random.default_rng(0)
    at = {node.name: place for place, node in enumerate(plan.nodes)}
    edges = [(at[other], at[node.name]) for node in plan.nodes for other in node.inputs if other in at]
    stages = tuple(QueryStage(US, 1000.0, name=node.name) for node in plan.nodes)
    return FusionTask(stages, tuple(
        Link(*edge, float(random.uniform(10, 2000)), 8 * US, 2 * US, float(random.uniform(0, 20)) * US)
        for edge in edges
    ))  # fmt: skip


class Queries:
    """A plan as one query per group; a micro-batch of a query takes some of each topic that it reads.

    What lies on a topic: the records that a micro-batch has sent, and the watermark that they leave behind them.
    """

    def __init__(self, plan, group, log):
        self.topics = {name: [] for name in (*log.sources, *(node.name for node in plan.nodes))}
        self.of = {node.name: number for node, number in zip(plan.nodes, group, strict=True)}
        self.members = {number: [node for node in plan.order if self.of[node.name] == number] for number in group}
        self.states = {node.name: node.operator.start() for node in plan.nodes}
        self.taken, self.marks = Counter(), defaultdict(lambda: -math.inf)

    def read_by(self, number):
        names = {name for node in self.members[number] for name in node.inputs}
        return {name for name in names if self.of.get(name) != number}

    def upstream_first(self):
        """Numbers of the queries; an illegal cut has no such order, and none of its queries would ever begin."""
        needs = {number: {self.of[name] for name in self.read_by(number) & {*self.of}} for number in self.members}
        return list(TopologicalSorter(needs).static_order())

    def run(self, number, many):
        """One micro-batch of a query, of `many` micro-batches of each of its topics, or what is there."""
        flows, marks = {}, {}
        for name in self.read_by(number):
            begun = self.taken[number, name]
            part = self.topics[name][begun : begun + many]
            self.taken[number, name] += len(part)
            flows[name] = [record for records, _ in part for record in records]
            if part:
                _, self.marks[number, name] = part[-1]
            marks[name] = self.marks[number, name]
        for node in self.members[number]:
            batches, mark = [flows[name] for name in node.inputs], min(marks[name] for name in node.inputs)
            state, told = node.operator.step(self.states[node.name], batches, mark)
            self.states[node.name], flows[node.name], marks[node.name] = state, told, state.frontier
            self.topics[node.name].append((told, state.frontier))

    def net_of(self, name):
        return net(record for records, _ in self.topics[name] for record in records)


def ended(log):
    return (*log.batches, MicroBatch(10**9, ended=frozenset(log.sources)))


def executions(plan, batches):
    """The plan as one query: its execution and what each node told, micro-batch by micro-batch."""
    execution = begin(plan)
    for batch in batches:
        execution, told = advance(plan, execution, batch)
        yield batch, execution, told


def send(queries, log, batch, execution):
    for name in log.sources:
        records = [record for source, record, _ in batch.arrivals if source == name]
        queries.topics[name].append((records, execution.sources[name].value))


@settings(max_examples=10)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["changelog", "final"]), st.booleans())
def test_fused_unfused_and_planned_give_equal_records_watermarks_and_snapshots(seed, emission, late):
    random = np.random.default_rng(seed)
    log = draw_changelog(SHAPE, random)
    plan = plan_of(log, emission, late)
    task = task_of(plan, random)
    drawn = groups_of(task, random.integers(0, 2, len(task.links)).tolist())
    cuts = [[0] * len(task.stages), list(range(len(task.stages))), fuse(task)]
    cuts += [] if illegal_because(task, drawn) else [drawn]
    parted = [Queries(plan, group, log) for group in cuts]
    for batch, execution, told in executions(plan, ended(log)):
        for queries in parted:
            send(queries, log, batch, execution)
            for number in queries.upstream_first():
                queries.run(number, 1)
            assert queries.states == execution.states  # contents, held results, watermarks, late ones
            for node in plan.nodes:
                assert queries.topics[node.name][-1] == (told[node.name], execution.states[node.name].frontier)


@settings(max_examples=15)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["changelog", "final"]))
def test_queries_that_take_their_topics_at_their_own_pace_end_in_the_same_nets_and_watermarks(seed, emission):
    random = np.random.default_rng(seed)
    log = draw_changelog(SHAPE, random)
    plan = plan_of(log, emission, late=False)
    *_, (_, whole, _) = executions(plan, log.batches)  # open: the watermarks are still on their way
    queries = Queries(plan, range(len(plan.nodes)), log)
    for batch, execution, _ in executions(plan, log.batches):
        send(queries, log, batch, execution)
        for number in queries.upstream_first():
            if random.random() < 0.6:
                queries.run(number, int(random.integers(1, 4)))
    for number in queries.upstream_first():
        queries.run(number, 10**6)
    marks = {name: (state.watermark, state.frontier) for name, state in queries.states.items()}
    assert marks == {name: (state.watermark, state.frontier) for name, state in whole.states.items()}
    assert not any(state.late_dropped for state in queries.states.values())
    for name in log.sources:
        queries.topics[name].append(([], math.inf))
    for number in queries.upstream_first():
        queries.run(number, 10**6)
    batch = run_batch(plan, log.relations)
    assert {name: queries.net_of(name) for name in batch} == batch


def test_an_illegal_cut_has_no_order_in_which_its_queries_can_run():
    log = draw_changelog(SHAPE, np.random.default_rng(1))
    plan = plan_of(log, "final", late=False)
    task, names = task_of(plan), [node.name for node in plan.nodes]
    around = [0 if name in ("totals", "sums") else 1 + place for place, name in enumerate(names)]
    assert illegal_because(task, around) == "queries would wait for each other in a circle"
    with pytest.raises(CycleError):
        Queries(plan, around, log).upstream_first()
