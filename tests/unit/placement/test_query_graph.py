"""Queries in micro-batches, followed: by hand, beside the single-job twin and the closed form, and after a step."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from configs.settings import ROOT
from configs.topology import load_topology
from models.contract.queueing import micro_batch
from models.placement.plan import followed
from models.placement.plan.choose import choose_placement
from models.placement.plan.followed import followed_quantile_s, query_graph
from models.placement.plan.measured import Measure
from models.placement.rates import rates_of
from models.placement.twin.queries import QueryGraph, follow_queries, path_latencies_s
from models.twin.sim.given import Load
from models.twin.sim.job import TwinJob, stack
from models.twin.sim.run import advance
from models.twin.sim.state import begin

ADVERTS = load_topology("adverts", ROOT / "configs" / "topologies")
EVEN = np.ones((9, 1))


def chain(*busy, overhead_s=0.3, trigger_s=1.0, most_s=5.0, way_s=0.0):
    """Queries of which each reads what the one before writes."""
    many = len(busy)
    each = [np.full(many, value) for value in (overhead_s, trigger_s, most_s)]
    last = np.arange(many) == many - 1
    return QueryGraph(
        *each, np.arange(many + 1), np.arange(many) - 1, np.full(many, way_s), np.array(busy, float), last
    )


def latencies(queries, seconds=40, made_s=None, longer=None, scale=None):
    longer = np.ones((len(queries.trigger_s), 1)) if longer is None else longer
    batches = follow_queries(queries, np.ones(seconds) if scale is None else scale, longer)
    return path_latencies_s(queries, batches, np.arange(10.0, 20.0, 0.25) if made_s is None else made_s)


def test_two_queries_wait_for_their_triggers_by_hand():
    # 0.3 + 0.4 s a batch: what came up to 10 is done at 10.7, read at 11 and done at 11.7.
    queries = chain(0.4, 0.4)
    batches = follow_queries(queries, np.ones(20), np.ones((2, 1)))
    assert batches.end_s[0, :3].tolist() == pytest.approx([1.7, 2.7, 3.7])
    assert batches.told_s[0, :3].tolist() == pytest.approx([1.0, 2.0, 3.0])
    assert batches.end_s[1, :3].tolist() == pytest.approx([2.7, 3.7, 4.7])
    assert batches.told_s[1, :3].tolist() == pytest.approx([1.0, 2.0, 3.0])
    assert latencies(queries, made_s=np.array([9.25, 10.0, 10.5])).tolist() == pytest.approx([2.45, 1.7, 2.2])
    # A way of 0.4 s is too long for the trigger at 11, and what was made at 9.75 cannot be read at 10.
    far = latencies(chain(0.4, 0.4, way_s=0.4), made_s=np.array([9.5, 9.75]))
    assert far.tolist() == pytest.approx([12.7 - 9.5, 13.7 - 9.75])


def test_batches_longer_than_the_trigger_run_back_to_back():
    # 0.6/(1 - 0.7): equilibrium of T = 0.6 + 0.7 T.
    batches = follow_queries(chain(0.7, overhead_s=0.6), np.ones(200), np.ones((1, 1)))
    end_s = batches.end_s[0][np.isfinite(batches.end_s[0])]
    assert np.diff(end_s)[-5:].tolist() == pytest.approx([2.0] * 5, rel=1e-6)


@pytest.mark.parametrize(("busy", "overhead_s"), [(0.2, 0.3), (0.5, 0.3), (0.6, 0.6), (0.8, 0.3)])
def test_one_query_comes_to_the_closed_form(busy, overhead_s):
    found = latencies(chain(busy, overhead_s=overhead_s), 400, np.arange(200.0, 300.0, 0.01))
    said = micro_batch(busy, 1.0, overhead_s, 1.0)
    for level in (0.05, 0.5, 0.95):
        assert np.quantile(found, level) == pytest.approx(said.quantile_s(level), abs=0.03)
    assert found.mean() == pytest.approx(said.mean_s, abs=0.03)


@pytest.mark.parametrize(("rps", "cores", "trigger_s"), [(100.0, 2, 1.0), (170.0, 1, 1.0), (300.0, 4, 2.0)])
def test_one_query_is_followed_as_the_single_job_twin_does(rps, cores, trigger_s):
    record_s, seconds = 0.005, 120
    rows = np.full(seconds, rps)
    rows[60:75] *= 1.6  # both fall behind, and catch up
    job = TwinJob(0.4, record_s, trigger_s=trigger_s, batch_rows=5.0 * cores / record_s)
    jobs = stack([job])
    load = Load(np.concatenate([[0.0], np.cumsum(rows)])[None], np.zeros(1, np.int64))
    state = begin(jobs, np.array([float(cores)]), np.zeros(1, np.int64))
    ours = follow_queries(chain(rps * record_s / cores, overhead_s=0.4, trigger_s=trigger_s), rows / rps, EVEN[:1])
    for second in range(1, seconds):
        advance(state, jobs, load, second - 1.0, float(second))
        done = ours.told_s[0][ours.end_s[0] <= second]
        told = done.max(initial=0.0)
        records = np.interp(told, np.arange(seconds + 1), load.arrived[0])
        assert state.x["done"][0] == pytest.approx(records, abs=1e-6), second


def test_a_step_beyond_what_it_can_is_worked_off_by_full_batches():
    scale = np.ones(120)
    scale[40:50] = 3.0
    made_s = np.array([39.5, 49.5, 110.0])
    before, during, after = latencies(chain(0.5, most_s=2.0), made_s=made_s, scale=scale)
    assert before < 2.0 < 8.0 < during and after < 2.0
    never = latencies(chain(1.5), 60, np.array([50.0]))
    assert np.isinf(never).all()


def two(tails, busy):
    """Query 1 reads a source, query 2 the topics of `tails`; their work by topic."""
    each = [np.full(2, value) for value in (0.3, 1.0, 5.0)]
    return QueryGraph(
        *each, np.array([0, 1, 3]), np.array([-1, *tails]), np.zeros(3), np.array(busy), np.array([False, True])
    )


def test_results_are_whole_when_the_slower_of_two_ways_has_told():
    # Query 2 reads the source and what query 1 makes of it: it is as late as that.
    found = latencies(two([-1, 0], [0.4, 0.1, 0.1]), made_s=np.array([10.0]))
    assert found == pytest.approx(11.0 + 0.3 + 0.2 - 10.0)


@settings(max_examples=60)
@given(
    st.lists(st.floats(0.05, 0.85), min_size=1, max_size=4), st.floats(0.1, 0.6), st.integers(0, 1000),
    st.floats(0.0, 0.5),
)  # fmt: skip
def test_nothing_is_told_twice_or_before_it_was_made(busy, overhead_s, seed, way_s):
    longer = np.exp(0.1 * np.random.default_rng(seed).standard_normal((len(busy), 50)))
    queries = chain(*busy, overhead_s=overhead_s, way_s=way_s)
    batches = follow_queries(queries, np.ones(60), longer)
    for own in range(len(busy)):
        whole = np.isfinite(batches.end_s[own])
        end_s, told = batches.end_s[own][whole], batches.told_s[own][whole]
        assert (np.diff(end_s) > 0).all() and (np.diff(told) >= 0).all() and (told + overhead_s / 2 <= end_s).all()
    again = follow_queries(queries, np.ones(60), longer)
    assert (again.end_s == batches.end_s).all()


def test_a_query_that_nothing_reaches_holds_nobody_up():
    # Query 1 reads a source without records; query 2 what it makes, and another source.
    found = latencies(two([0, -1], [0.0, 0.0, 0.4]), made_s=np.array([10.0]))
    assert found == pytest.approx(11.0 + 0.3 + 0.4 - 10.0)  # the empty batch of query 1 is done at 10.3


def test_a_plan_is_followed_with_the_work_and_the_ways_that_it_tells():
    measure = Measure(ADVERTS, rates_of(ADVERTS, 2.0))
    made = choose_placement(ADVERTS, 2.0).placement
    assert len(made.blocks) == 2 and {block.cluster for block in made.blocks} == {"east", "west"}
    queries = query_graph(measure, made)
    for number, block in enumerate(made.blocks):
        own = slice(queries.first[number], queries.first[number + 1])
        assert queries.busy[own].sum() * block.executors == pytest.approx(block.load)
    assert queries.tail.tolist() == [-1, 0] and queries.last.tolist() == [False, True]
    # Twenty ms from one cluster to the other and back; the broker is in the east.
    first, second = (0.0 if block.cluster == "east" else 0.01 for block in made.blocks)
    assert queries.way_s.tolist() == pytest.approx([first, first + second])
    found = followed_quantile_s(measure, made)
    assert found == followed_quantile_s(measure, made)
    assert 0.5 * made.latency_s < found < 1.3 * made.latency_s


@pytest.mark.parametrize("trigger_s", [0.5, 5.0, 60.0])
def test_whatever_keeps_up_is_done_in_the_time_that_is_followed(trigger_s):
    slow = ADVERTS.model_copy(update={"trigger_s": trigger_s, "target_s": 1000.0})
    measure = Measure(slow, rates_of(slow))
    made = measure.given((("parse", "views", "project"), ("join",), ("count",)), ("east", "west", "west"), (1, 1, 1))
    assert made is not None and followed_quantile_s(measure, made) < 2 * made.latency_s
    idle = Measure(slow, rates_of(slow, 0.0))
    made = idle.given((("parse", "views", "project"), ("join", "count")), ("east", "west"), (1, 1))
    assert made is not None and followed_quantile_s(idle, made) < 2 * made.latency_s


def test_where_triggers_are_long_no_more_records_are_followed(monkeypatch):
    many = []

    def counted(queries, batches, made_s):
        many.append(len(made_s))
        return path_latencies_s(queries, batches, made_s)

    monkeypatch.setattr(followed, "path_latencies_s", counted)
    for trigger_s in (1.0, 3_600.0):
        slow = ADVERTS.model_copy(update={"trigger_s": trigger_s})
        measure = Measure(slow, rates_of(slow))
        made = measure.given((("parse", "views", "project"), ("join", "count")), ("east", "west"), (1, 1))
        assert followed_quantile_s(measure, made) < 3 * made.latency_s
    assert many[0] == 4_800 and many[1] <= 100_000
