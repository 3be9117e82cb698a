"""Which operators are one query: costs and slopes by hand, the planner beside all legal groups, and what is refused."""

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
from models.placement.fusion.planner import fuse, fuse_exactly, relax
from models.placement.graph import GraphError

US = 1e-6


def chain(*inline_us, **more):
    """Three operators of 10, 20 and 5 us a record at 1,000 records/s; a topic takes 8 and 2 us a record."""
    stages = tuple(QueryStage(work * US, 1000.0) for work in (10, 20, 5))
    links = tuple(Link(at, at + 1, 1000.0, 8 * US, 2 * US, inline * US) for at, inline in enumerate(inline_us))
    return FusionTask(stages, links, **more)


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


def test_a_tail_moves_an_operator_to_its_neighbours_group():
    task = chain(9, 9.5)
    assert fuse(task) == [0, 0, 0]
    assert fuse(task, lambda group: 1.0 if group.count(0) == 3 else 0.0) == [0, 0, 0]  # alone it has no neighbour
    apart = chain(9, 10.5)
    assert fuse(apart) == [0, 0, 2]
    assert fuse(apart, lambda group: float(group[1] == 0)) == [0, 1, 1]


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
