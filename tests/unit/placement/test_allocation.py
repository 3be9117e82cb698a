"""Blocks on nodes of several domains: by hand, and what must hold of every allocation."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.placement.allocation.dependent import allocate
from models.placement.allocation.nodes import Nodes
from models.placement.graph import GraphError
from models.placement.partition.count import blocks_by_equation, blocks_needed

TRIPS = np.array([[0.0, 20.0], [20.0, 0.0]])


def nodes(capacity, used, domain, trips=TRIPS):
    return Nodes(
        np.array(capacity, float).reshape(-1, 1), np.array(used, float).reshape(-1, 1), np.array(domain), trips
    )


def flows(count, edges):
    made = np.zeros((count, count))
    for a, b, flow in edges:
        made[a, b] = made[b, a] = flow
    return made


def test_five_blocks_on_three_nodes_by_hand():
    three = nodes([100, 100, 100], [10, 0, 0], [0, 0, 1])
    assert three.nearest_first() == [1, 0, 2]
    demand = np.array([[40.0], [25], [30], [20], [35]])
    flow = flows(5, [(0, 1, 9), (1, 2, 7), (2, 3, 5), (3, 4, 4), (0, 2, 2)])
    found = allocate(demand, flow, three)
    assert found.node == (1, 1, 0, 0, 2)
    assert found.used[:, 0].tolist() == [60, 65, 35] and (found.overloaded, found.free) == ((), ())
    assert three.traffic_cost(found.node, flow) == pytest.approx(84.5)
    fitting = [
        three.traffic_cost(each, flow) for each in itertools.product(range(3), repeat=5)
        if all(three.used[n, 0] + demand[[b for b in range(5) if each[b] == n], 0].sum() <= 70 for n in range(3))
    ]  # fmt: skip
    assert min(fitting) == pytest.approx(84.5)


def test_what_has_no_room_lies_where_least_is_used_and_is_told():
    two = nodes([10, 20], [0, 0], [0, 1])
    found = allocate(np.array([[6.0], [16.0], [9.0]]), flows(3, []), two)
    assert found.node == (0, 1, 1) and found.overloaded == (1,)
    alone = allocate(np.array([[1.0]]), flows(1, []), nodes([10, 10, 10], [0, 0, 0], [0, 0, 1]))
    assert (alone.node, alone.free) == ((0,), (1, 2))
    assert allocate(np.zeros((0, 1)), np.zeros((0, 0)), two) is None
    assert allocate(np.array([[1.0]]), flows(1, []), nodes([], [], [])) is None


def test_pinned_blocks_that_have_no_room_together_are_told():
    two = nodes([100, 100], [0, 0], [0, 1])
    found = allocate(np.array([[40.0], [40.0]]), flows(2, []), two, pinned={0: 0, 1: 0})
    assert found.node == (0, 0) and found.overloaded == (1,)


def test_a_block_may_ask_for_more_of_one_node_than_of_another():
    two = nodes([10, 10], [0, 0], [0, 1])
    demand = np.array([[[3.0], [7.0]]] * 3)
    found = allocate(demand, flows(3, []), two)
    assert found.node == (0, 0, 1) and found.used[:, 0].tolist() == [6, 7] and not found.overloaded
    assert allocate(demand, flows(3, []), two, pinned={0: 1, 1: 1}).overloaded == (1,)


def test_nodes_that_do_not_go_together_are_refused():
    with pytest.raises(GraphError, match="round trips are known of 0 to 1"):
        nodes([1], [0], [2])
    with pytest.raises(GraphError, match="one row a node"):
        nodes([1, 1], [0, 0], [0])


@given(st.integers(0, 5_000), st.booleans())
def test_of_every_allocation(seed, pins):
    random = np.random.default_rng(seed)
    many, count = int(random.integers(1, 12)), int(random.integers(1, 5))
    demand = random.uniform(1, 40, (many, 2))
    flow = np.triu(random.integers(0, 3, (many, many)) * random.uniform(0, 5, (many, many)), 1)
    flow += flow.T
    given_nodes = Nodes(
        random.uniform(50, 100, (count, 2)), random.uniform(0, 20, (count, 2)), random.integers(0, 2, count), TRIPS
    )
    pinned = {0: count - 1, many - 1: 0} if pins else {}
    found = allocate(demand, flow, given_nodes, pinned=pinned)
    assert len(found.node) == many and set(found.free) == set(range(count)) - set(found.node)
    assert all(found.node[block] == node for block, node in pinned.items())
    room, kept = 0.7 * given_nodes.capacity + 1e-6, given_nodes.used.copy()
    for block, node in enumerate(found.node):
        kept[node] += 0 if block in found.overloaded else demand[block]
    used = kept.copy()
    for block in found.overloaded:
        used[found.node[block]] += demand[block]
    assert used == pytest.approx(found.used) and (kept <= room).all()  # within it but for those that are told
    assert {found.node[block] for block in found.overloaded} == set(np.flatnonzero((used > room).any(axis=1)).tolist())
    order = given_nodes.nearest_first()
    for turn, node in enumerate(order):  # what came to later nodes, or to none, had no room where this one was closed
        held = kept[node] + sum(
            (demand[b] for b in pinned if b in found.overloaded and found.node[b] == node), np.zeros(2)
        )
        for block, at in enumerate(found.node):
            if block not in pinned and (block in found.overloaded or at in order[turn + 1 :]):
                assert (held + demand[block] > room[node] - 2e-6).any()


def test_a_node_that_gets_a_block_is_free_no_longer():
    three, demand = nodes([10, 10, 10], [0, 0, 0], [0, 0, 1]), np.array([[5.0], [5.0]])
    assert [allocate(demand[:many], flows(many, []), three).free for many in (1, 2)] == [(1, 2), (2,)]


@pytest.mark.parametrize(("grant", "slots", "tasks", "demand", "printed", "blocks", "needed"), [
    (100, 4, 8, 138, 1.0145, 1, 8), (400, 4, 24, 280, 6.0, 6, 4), (400, 4, 24, 560, 3.0, 3, 8),
])  # fmt: skip
def test_numbers_of_blocks_by_hand(grant, slots, tasks, demand, printed, blocks, needed):
    found, rounded = blocks_by_equation(demand, grant, slots, tasks)
    assert found == pytest.approx(printed, abs=1e-4) and rounded == blocks
    assert blocks_needed(demand, grant, slots, tasks) == needed
    assert blocks_needed(1e-9, grant, slots, tasks) == 1
