"""Which operators are one query: costs and slopes by hand, the planner beside all legal groups, and what is refused."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.placement.fusion.parts import (
    FusionTask,
    Link,
    QueryStage,
    cut_of,
    fusion_cost,
    fusion_slope,
    groups_of,
    illegal_because,
)
from models.placement.fusion.planner import fuse, relax
from models.placement.graph import GraphError

US = 1e-6


def chain(*inline_us, **more):
    """Three operators of 10, 20 and 5 us a record at 1,000 records/s; a topic takes 8 and 2 us a record."""
    stages = tuple(QueryStage(work * US, 1000.0) for work in (10, 20, 5))
    links = tuple(Link(at, at + 1, 1000.0, 8 * US, 2 * US, inline * US) for at, inline in enumerate(inline_us))
    return FusionTask(stages, links, **more)


def fuse_exactly(task):
    """The cheapest groups of all that may be, by trying every set of edges."""
    found = []
    for cut in itertools.product((0, 1), repeat=len(task.links)):
        group = groups_of(task, cut)
        if not illegal_because(task, group):
            found.append((fusion_cost(task, cut_of(task, group)), group))
    return min(found)[1]


def test_costs_and_slopes_by_hand():
    task = chain(1, 15)
    costs = {cut: fusion_cost(task, cut) for cut in ((0, 0), (0, 1), (1, 0), (1, 1), (0.5, 0.5))}
    assert costs == pytest.approx({(0, 0): 0.051, (0, 1): 0.046, (1, 0): 0.060, (1, 1): 0.055, (0.5, 0.5): 0.053})
    assert fusion_slope(task, (0.5, 0.5)) == pytest.approx([0.009, -0.005])
    assert relax(task) == pytest.approx([0, 1])
    assert cut_of(task, fuse(task)) == [0, 1] and fuse(task) == fuse_exactly(task) == [0, 0, 2]


def test_a_kernel_that_is_too_large_costs_more_by_hand():
    task = chain(1, 2, kernel_size=2, kernel_weight=0.02)
    costs = [fusion_cost(task, cut) for cut in ((0, 0), (0, 1), (1, 0), (1, 1))]
    assert costs == pytest.approx([0.058, 0.046, 0.047, 0.055])
    assert cut_of(task, fuse(task)) == [0, 1] and fuse(task) == fuse_exactly(task)


def test_slopes_are_those_of_the_relaxed_cost():
    task = chain(1, 2, kernel_size=1.5, kernel_weight=0.02, memory_weight=1e-9)
    at, step = np.array([0.3, 0.6]), 1e-6
    for edge, slope in enumerate(fusion_slope(task, at)):
        more, less = at.copy(), at.copy()
        more[edge] += step
        less[edge] -= step
        assert (fusion_cost(task, more) - fusion_cost(task, less)) / (2 * step) == pytest.approx(slope, rel=1e-4)


def test_a_diamond_is_not_fused_around_its_middle():
    stages = tuple(QueryStage(US, 1000.0) for _ in range(3))
    links = tuple(Link(a, b, 1000.0, 8 * US, 2 * US, US) for a, b in ((0, 1), (1, 2), (0, 2)))
    task = FusionTask(stages, links)
    assert illegal_because(task, [0, 1, 0]) == "queries would wait for each other in a circle"
    assert illegal_because(task, [0, 0, 0]) == "" and fuse(task) == [0, 0, 0]
    assert groups_of(task, (1, 1, 0)) == [0, 1, 0]


@pytest.mark.parametrize(("changes", "said"), [
    (({"pin": "east"}, {"pin": "west"}), "0 and 1 have to run on different clusters"),
    (({"trigger": "1 second"}, {"trigger": "5 seconds"}), "0 and 1 have different triggers"),
    (({"unit": "a"}, {}), "0 and 1 have different recovery units"),
    (({"commit": "a"}, {"commit": "b"}), "0 and 1 have sinks that commit apart"),
    (({"timer": True}, {"timer": True}), "0 and 1 both own event-time timers"),
    (({"pin": "east"}, {}), ""), (({"timer": True}, {}), ""), (({"commit": "a"}, {}), ""),
])  # fmt: skip
def test_what_may_not_be_one_query_is_named(changes, said):
    stages = tuple(QueryStage(US, 10.0, **one) for one in changes)
    task = FusionTask(stages, (Link(0, 1, 10.0, 8 * US, 2 * US, US),))
    found = illegal_because(task, [0, 0])
    assert (found == "") if not said else (said in found)
    assert fuse(task) == ([0, 1] if said else [0, 0]) == fuse_exactly(task)


def test_an_edge_that_has_to_be_a_topic_stays_one_and_unknown_operators_are_refused():
    stages = (QueryStage(US, 10.0), QueryStage(US, 10.0))
    assert fuse(FusionTask(stages, (Link(0, 1, 10.0, 1.0, 1.0, 0.0, fusible=False),))) == [0, 1]
    with pytest.raises(GraphError, match="edge 0 to 2: two of the 2 operators"):
        FusionTask(stages, (Link(0, 2, 1.0, 1.0, 1.0, 1.0),))


@settings(max_examples=60)
@given(st.integers(0, 10_000))
def test_of_every_plan(seed):
    random = np.random.default_rng(seed)
    count = int(random.integers(2, 6))
    stages = tuple(
        QueryStage(random.uniform(1, 30) * US, 1000.0, pin=("", "", "east", "west")[random.integers(4)])
        for _ in range(count)
    )
    links = tuple(
        Link(a, b, float(random.uniform(10, 2000)), 8 * US, 2 * US, float(random.uniform(0, 20)) * US)
        for a in range(count) for b in range(a + 1, count) if random.random() < 0.6
    )  # fmt: skip
    task = FusionTask(stages, links)
    group = fuse(task)
    cost = fusion_cost(task, cut_of(task, group))
    assert illegal_because(task, group) == ""
    assert cost <= fusion_cost(task, [1] * len(links)) + 1e-12
    assert cost >= fusion_cost(task, cut_of(task, fuse_exactly(task))) - 1e-12


@settings(max_examples=60)
@given(st.integers(0, 10_000))
def test_legal_groups_are_those_without_a_way_that_leads_back_and_they_are_convex(seed):
    random = np.random.default_rng(seed)
    count = int(random.integers(2, 7))
    edges = [pair for pair in itertools.combinations(range(count), 2) if random.random() < 0.5]
    task = FusionTask((QueryStage(US, 1.0),) * count, tuple(Link(*pair, 1.0, US, US, US) for pair in edges))
    group = random.integers(0, 3, count).tolist()
    reach, over = np.eye(count, dtype=bool), np.zeros((3, 3), bool)
    for tail, head in sorted(edges, key=lambda edge: edge[1]):
        reach[:, head] |= reach[:, tail]
        over[group[tail], group[head]] |= group[tail] != group[head]
    for middle in range(3):
        over |= over[:, [middle]] & over[[middle], :]
    legal, ways = illegal_because(task, group) == "", reach.tolist()
    assert legal == (not over.diagonal().any())
    for one, through, other in itertools.combinations(range(count), 3):
        if legal and ways[one][through] and ways[through][other] and group[one] == group[other]:
            assert group[through] == group[one]


def linked(*links, **more):
    """A chain of operators, whose edges are (inline us, buffered bytes, records/s)."""
    stages = tuple(QueryStage(US, 1.0) for _ in range(len(links) + 1))
    made = [Link(at, at + 1, rps, 8 * US, 2 * US, inline * US, held) for at, (inline, held, rps) in enumerate(links)]
    return FusionTask(stages, tuple(made), **more)


@pytest.mark.parametrize(("inline", "held", "cut"), [
    (9.9, 0, 0), (10, 0, 1), (10.1, 0, 1), (10, 1, 0), (11.9, 4, 0), (12.1, 4, 1),
])  # fmt: skip
def test_an_edge_is_inside_where_that_costs_less_than_a_topic_with_its_buffer(inline, held, cut):
    """At 1,000 records/s and 0.5 core-ms/s a byte: four bytes that are held come to 2 us a record."""
    task = linked((inline, held, 1000.0), memory_weight=0.5e-3)
    assert fusion_cost(task, [1]) - fusion_cost(task, [0]) == pytest.approx((10 - inline) * 1e-3 + held * 0.5e-3)
    assert cut_of(task, fuse(task)) == [cut]
    assert fusion_cost(task, cut_of(task, fuse_exactly(task))) == fusion_cost(task, [cut])


@given(st.lists(st.tuples(st.floats(0, 30), st.floats(0, 9), st.floats(1, 1e4)), min_size=1, max_size=6))
def test_without_large_kernels_the_relaxed_optimum_is_a_vertex(edges):
    task = linked(*edges, memory_weight=1e-3)
    slopes, relaxed = fusion_slope(task, [0.5] * len(edges)), relax(task)
    for (inline, held, rps), slope, share in zip(edges, slopes, relaxed, strict=True):
        assert slope == pytest.approx(((10 - inline) * US + 1e-3 * held / rps) * rps, abs=1e-12)
        if abs(slope) > max(map(abs, slopes)) / 39:  # else its 200 steps do not lead to the end
            assert share == (slope < 0)
        assert (share - 0.5) * slope <= 0
    assert fusion_cost(task, [int(slope < 0) for slope in slopes]) == pytest.approx(
        min(fusion_cost(task, cut) for cut in itertools.product((0, 1), repeat=len(edges)))
    )


def test_a_slope_of_large_kernels_by_hand():
    """Sizes 1, 2 and 4, shares 0.5 and 0.25: s = 1 + 1, 2 + 0.5 + 3 and 4 + 1.5; K = 3 and omega = 0.1."""
    stages = tuple(QueryStage(US, 1.0, size=size) for size in (1.0, 2.0, 4.0))
    links = tuple(Link(at, at + 1, 1.0, 0.0, 0.0, 0.0) for at in (0, 1))
    task = FusionTask(stages, links, kernel_weight=0.1, kernel_size=3.0)
    assert fusion_slope(task, (0.5, 0.25)) == pytest.approx([
        -2 * 0.1 * (0 * 2 + 2.5 * 1), -2 * 0.1 * (2.5 * 4 + 2.5 * 2),
    ])  # fmt: skip
    without = fusion_cost(replace(task, kernel_weight=0.0), (0.5, 0.25))
    assert fusion_cost(task, (0.5, 0.25)) - without == pytest.approx(0.1 * (0 + 2.5**2 + 2.5**2))
    assert (FusionTask(stages, links).kernel_size, FusionTask(stages, links).kernel_weight) == (12.0, 0.0)


def test_benefit_over_risk_decides_who_is_joined_first():
    """Timers at both ends, so that the middle pair, joined first, goes to one: who saves more, unless that is riskier.

    Joined to the first it saves 9 core-ms/s, to the last 6; none of its two is better off alone.
    """
    links = tuple(Link(at, at + 1, 1000.0, 8 * US, 2 * US, inline * US) for at, inline in enumerate((1, 0, 4)))

    def fused(first, middle, last):
        held = enumerate((first, 0, middle, last))
        return fuse(
            FusionTask(tuple(QueryStage(US, 1.0, timer=at % 3 == 0, state_bytes=one) for at, one in held), links)
        )

    assert fused(0, 0, 0) == fused(0, 1, 0) == [0, 0, 0, 3]
    assert fused(1, 1, 0) == [0, 1, 1, 1]  # 9 / 2 where both have state, against 6
    assert fused(1, 1, 1) == [0, 0, 0, 3]  # against 6 / 2
    assert fused(0.45e9, 0, 0) == [0, 0, 0, 3] and fused(0.55e9, 0, 0) == [0, 1, 1, 1]  # 9 / 1.45, 9 / 1.55
