"""Blocks on nodes by C_net: the worked example, each step by hand, and the search beside all ways."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.placement.allocation import least_traffic
from models.placement.allocation.least_traffic import (
    MOST_WAYS,
    TrafficTask,
    improve_places,
    place_by_traffic,
    place_exactly,
    place_greedily,
)
from models.placement.allocation.nodes import Nodes
from models.placement.graph import GraphError


def task_of(demand, edges, capacity, used=None, trips=None, further=lambda place: 0.0):
    """Blocks of some CPUs, (one, other, bytes/s) between them, and nodes, each a domain of its own, all 1 apart."""
    flow, count = np.zeros((len(demand), len(demand))), len(capacity)
    for one, other, rate in edges:
        flow[one, other] = flow[other, one] = rate
    nodes = Nodes(
        np.array(capacity, float).reshape(-1, 1), np.array(used or [0] * count, float).reshape(-1, 1),
        np.arange(count), 1.0 - np.eye(count) if trips is None else np.array(trips, float),
    )  # fmt: skip
    return TrafficTask(np.array(demand, float).reshape(-1, 1), flow, nodes, further)


WORKED = task_of([1, 2, 0.5], [(0, 1, 1000 * 200.0), (1, 2, 100 * 100.0)], [3, 2])
"""src, win and snk on two machines with 3 and 2 CPUs."""


def test_the_worked_example():
    assert place_exactly(WORKED) == place_greedily(WORKED) == place_by_traffic(WORKED) == [0, 0, 1]
    assert WORKED.cost([0, 0, 1]) == 10_000 and WORKED.fits([0, 0, 1])
    assert not WORKED.fits([0, 0, 0]) and WORKED.cost([0, 0, 0]) == 0  # d of a machine to itself
    fitting = {way: WORKED.cost(way) for way in itertools.product((0, 1), repeat=3) if WORKED.fits(way)}
    assert fitting == {
        (0, 0, 1): 10_000, (0, 1, 0): 210_000, (1, 0, 0): 200_000, (1, 0, 1): 210_000,
    }  # fmt: skip


def test_all_lies_together_where_there_is_room():
    roomy = task_of([1, 2, 0.5], [(0, 1, 2e5), (1, 2, 1e4)], [3, 3.5])
    assert place_exactly(roomy) == place_greedily(roomy) == [1, 1, 1] and roomy.cost([1, 1, 1]) == 0


def test_of_equal_nodes_the_one_with_most_free_cpu_is_taken_then_the_first():
    assert place_greedily(task_of([1, 1], [], [3, 5, 5])) == [1, 2]
    assert place_greedily(task_of([1, 1], [], [9, 5, 5], used=[5, 1, 1])) == [0, 1]


def test_who_sends_and_takes_most_comes_first():
    """The middle has 9 of traffic and takes the only large node; its ends follow in the order of theirs."""
    assert place_greedily(task_of([2, 2, 2], [(0, 1, 4), (1, 2, 5)], [4, 2, 2])) == [1, 0, 0]


def test_a_move_and_a_swap_mend_what_is_worse():
    chain = task_of([1, 1, 1], [(0, 1, 5), (1, 2, 3)], [1, 2])
    assert improve_places(chain, [0, 1, 1]) == [1, 1, 0]  # by a swap: both nodes are full
    room = task_of([1, 1, 1], [(0, 1, 5), (1, 2, 3)], [3, 3])
    assert improve_places(room, [0, 1, 1]) == [1, 1, 1] == improve_places(room, [1, 1, 1])
    with_far = task_of([1, 1], [(0, 1, 1)], [1, 1, 1], trips=[[0, 9, 2], [9, 0, 9], [2, 9, 0]])
    assert improve_places(with_far, [0, 1]) == [0, 2] and place_exactly(with_far) == [0, 2]


def test_the_critical_path_may_count_too():
    """Apart, each block has a node of its own and its records wait less."""
    edges = [(0, 1, 10.0)]
    assert place_by_traffic(task_of([1, 1], edges, [2, 2])) == [0, 0]

    def path(weight):
        return lambda place: weight * (3.0 if place[0] == place[1] else 2.0)

    assert place_by_traffic(task_of([1, 1], edges, [2, 2], further=path(9.0))) == [0, 0]
    assert place_by_traffic(task_of([1, 1], edges, [2, 2], further=path(11.0))) == [0, 1]
    assert improve_places(task_of([1, 1], edges, [2, 2], further=path(11.0)), [0, 0]) == [0, 1]


def test_without_room_there_is_no_way_and_too_many_are_not_looked_at():
    full = task_of([3, 1], [(0, 1, 1)], [2, 2])
    assert place_exactly(full) is place_greedily(full) is place_by_traffic(full) is None
    assert place_by_traffic(task_of([1], [], [5, 9], used=[6, 8.5])) is None  # too full already, without any block
    assert place_by_traffic(task_of([1], [], [5, 9], used=[6, 8])) == [1]
    assert place_exactly(task_of([], [], [1])) is None
    many = task_of([1] * 21, [(one, one + 1, 1) for one in range(20)], [11, 11])
    assert MOST_WAYS < 2**21
    with pytest.raises(GraphError, match="2 nodes, 21 blocks: 1000000 ways are looked at at most"):
        place_exactly(many)
    found = place_by_traffic(many)
    assert many.fits(found) and many.cost(found) < 20


@settings(max_examples=40)
@given(st.integers(0, 10_000))
def test_of_every_placement(seed):
    random = np.random.default_rng(seed)
    blocks, count = int(random.integers(1, 6)), int(random.integers(1, 4))
    edges = [(a, b, float(random.integers(1, 9))) for a, b in itertools.combinations(range(blocks), 2)
             if random.random() < 0.6]  # fmt: skip
    trips = np.triu(random.integers(1, 9, (count, count)), 1).astype(float)
    waits = random.uniform(0, 20, (blocks, count)) * (random.random() < 0.5)
    task = task_of(
        random.integers(1, 4, blocks), edges, random.integers(3, 8, count), trips=trips + trips.T,
        further=lambda place: sum(waits[block, node] for block, node in enumerate(place)),
    )  # fmt: skip
    ways = [way for way in itertools.product(range(count), repeat=blocks) if task.fits(way)]
    best, begun = place_exactly(task), place_greedily(task)
    assert (best is None) == (ways == [])
    if best is None:
        assert begun is None
        return
    assert task.fits(best) and task.cost(best) == pytest.approx(min(map(task.cost, ways)))
    apart = task.nodes.round_trip[task.nodes.domain][:, task.nodes.domain]
    direct = sum(rate * apart[best[one], best[other]] for one, other, rate in edges)
    assert task.cost(best) - task.further(best) == pytest.approx(direct)
    if begun is not None:
        found = improve_places(task, begun)
        assert task.fits(begun) and task.fits(found)
        assert task.cost(best) - 1e-9 <= task.cost(found) <= task.cost(begun)
        for way in ways:  # no move of one, and no swap of two, is better
            other = [at for at, (a, b) in enumerate(zip(way, found, strict=True)) if a != b]
            swapped = len(other) == 2 and [way[at] for at in other] == [found[at] for at in reversed(other)]
            assert task.cost(way) >= task.cost(found) or not (len(other) == 1 or swapped)


def test_where_there_are_more_ways_the_search_is_taken(monkeypatch):
    monkeypatch.setattr(least_traffic, "MOST_WAYS", 7)  # of the 8 of the worked example
    assert place_by_traffic(WORKED) == [0, 0, 1]
    with pytest.raises(GraphError, match="2 nodes, 3 blocks: 7 ways"):
        place_exactly(WORKED)
