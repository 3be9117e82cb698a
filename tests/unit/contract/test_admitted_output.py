"""What a control log admits of a replay: one seed and one log give one output, and no log changes what it comes to."""

import json

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from models.contract.state import begin
from models.contract.trace import header, replay, trace_line
from models.relation.aggregates import Aggregate
from models.relation.changelog import ChangeLog, LogShape, draw_changelog
from models.relation.join import Join
from models.relation.linear import tumbling
from models.relation.ordered import Max
from models.relation.plan import LogicalPlan, Node, run_batch
from models.relation.records import net
from models.relation.reducers import Count, RowOf, Sum
from models.relation.stream import MicroBatch, advance
from models.relation.stream import begin as begin_run
from models.relation.watermark import Source
from tests.fakes.shared_job import run_queue, shared_plan, shared_terms

TERMS = shared_terms(seed=5)
SHAPE = LogShape(records=30, replayed=0.6, batches=6)


def control_log(loads):
    """The lines that a controller leaves at these live rates."""
    state = begin(TERMS, shared_plan(), 1e9)
    closed = run_queue(TERMS, loads, state=state)
    return [header(TERMS, shared_plan(), state, {}), *(trace_line(one.line) for one in closed)]


def output(seed, lines):
    """The changes of every node, interval by interval: live records as they come, replayed ones as is admitted."""
    log = draw_changelog(SHAPE, np.random.default_rng(seed))
    parts = {kind: [one for one in log.arrivals if one.record.origin == kind] for kind in ("live", "replay")}
    batches = []
    for n, line in enumerate(lines[1:]):
        many = {"live": 3, "replay": int(json.loads(line)["controls"]["replay_rps"] // 40)}
        taken = {kind: part[: many[kind]] for kind, part in parts.items()}
        parts = {kind: part[many[kind] :] for kind, part in parts.items()}
        batches.append(MicroBatch(10**6 + n, (*taken["live"], *taken["replay"])))
    batches.append(MicroBatch(2 * 10**6, (*parts["live"], *parts["replay"])))
    behind_ms = ChangeLog(log.sources, tuple(batches)).disorder_ms
    plan = LogicalPlan(tuple(Source(name, behind_ms[name]) for name in log.sources), (
        Node("windowed", tumbling(40), ("left",)), Node("pairs", Join(30), ("left", "right")),
        Node("totals", Aggregate(RowOf((Count(), Sum(), Max())), emission="final"), ("windowed",)),
    ))  # fmt: skip
    execution, told = begin_run(plan), []
    for batch in (*batches, MicroBatch(3 * 10**6, ended=frozenset(log.sources))):
        execution, changes = advance(plan, execution, batch)
        told.append(changes)
    return told, run_batch(plan, log.relations)


@settings(max_examples=10)
@given(st.integers(0, 2**32 - 1), st.lists(st.floats(100, 900), min_size=3, max_size=8))
def test_one_seed_and_one_control_log_give_one_output_and_every_log_the_same_net(seed, loads):
    lines = control_log(loads)
    assert control_log(loads) == lines and replay(lines) is None
    told, whole = output(seed, lines)
    assert output(seed, [json.dumps(json.loads(line)) for line in lines]) == (told, whole)
    for other in (told, output(seed, control_log([100.0] * 8))[0], output(seed, lines[:1])[0]):
        for name, relation in whole.items():
            assert net(record for changes in other for record in changes[name]) == relation


def test_another_seed_or_another_log_gives_another_output():
    calm, busy = control_log([100.0] * 8), control_log([950.0] * 8)
    assert output(1, calm)[0] != output(2, calm)[0] and output(1, calm)[0] != output(1, busy)[0]
    assert json.loads(calm[-1])["controls"]["replay_rps"] > 0 == json.loads(busy[-1])["controls"]["replay_rps"]
