"""Learned placement of queries: moves by hand, what must always hold, and that it comes to what all placements hold."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from configs.settings import ROOT
from configs.topology import load_topology
from models.placement.instances.initial import NoRoomError
from models.placement.learned.actions import InstanceMove, index_of
from models.placement.learned.queries import QueryEvaluator, QuerySpace, weights_of
from models.placement.learned.training import OURS, train_placement
from models.placement.plan.followed import followed_quantile_s
from models.placement.plan.measured import Measure
from models.placement.rates import rates_of

ADVERTS = load_topology("adverts", ROOT / "configs" / "topologies")
BLOCKS = (("parse", "views", "project"), ("join", "count"))


def space(topology=ADVERTS, factor=1.0, blocks=BLOCKS):
    return QuerySpace(Measure(topology, rates_of(topology, factor)), blocks)


def move(number, node, taken=False):
    return index_of(InstanceMove(number, node, taken), 2)


def test_moves_of_queries_by_hand():
    # Four cores a cluster, one core an executor: two and three executors on the first, one has to move for more.
    own, counts = space(), np.array([[2, 0], [0, 3]])
    most = own.farthest(counts)
    assert (most[move(0, 0)], most[move(0, 0, True)], most[move(0, 1)], most[move(0, 1, True)]) == (2, 1, 1, 0)
    assert (most[move(1, 1)], most[move(1, 1, True)], most[move(1, 0)], most[move(1, 0, True)]) == (1, 2, 1, 0)
    assert own.after(counts, move(0, 0), 2).tolist() == [[4, 0], [0, 3]]
    assert own.after(counts, move(1, 1, True), 2).tolist() == [[2, 0], [0, 1]]
    # There is room for one beside the three, and for two beside the two.
    assert own.after(counts, move(0, 1), 1).tolist() == [[0, 1], [0, 3]]
    assert own.after(counts, move(1, 0), 1).tolist() == [[2, 0], [2, 0]]
    assert counts.tolist() == [[2, 0], [0, 3]]


def test_a_pinned_query_stays_and_what_has_no_room_is_not_drawn():
    pinned = {**ADVERTS.operators, "parse": ADVERTS.operators["parse"].model_copy(update={"cluster": "west"})}
    own = space(ADVERTS.model_copy(update={"operators": pinned}))
    assert own.farthest(np.array([[0, 2], [0, 1]]))[[move(0, 0), move(0, 0, True)]].tolist() == [0, 0]
    assert own.draw(np.random.default_rng(1))[0, 0] == 0
    small = {name: one.model_copy(update={"memory_gb": 1e-6}) for name, one in ADVERTS.clusters.items()}
    with pytest.raises(NoRoomError, match="2 queries"):
        space(ADVERTS.model_copy(update={"clusters": small})).draw(np.random.default_rng(1))


@given(st.integers(0, 300))
def test_every_drawn_placement_and_every_move_has_room_and_a_query_is_on_one_cluster(seed):
    own = space()
    counts = own.draw(np.random.default_rng(seed))
    most = own.farthest(counts)
    for after in [counts, *(own.after(counts, int(at), int(most[at])) for at in np.flatnonzero(most))]:
        assert own.placement(after) is not None and ((after > 0).sum(axis=1) == 1).all()
        assert (own.counts(own.placement(after)) == after).all()


@given(st.integers(0, 300))
@settings(max_examples=20)
def test_executors_that_were_added_on_a_cluster_can_be_taken_away_again(seed):
    own = space()
    counts = own.draw(np.random.default_rng(seed))
    most = own.farthest(counts)
    assert len(most) == 2 * counts.size
    for number, node in zip(*np.nonzero(counts), strict=True):
        add, take = move(int(number), int(node)), move(int(number), int(node), taken=True)
        for length in range(1, most[add] + 1):
            after = own.after(counts, add, length)
            assert after.sum() == counts.sum() + length and own.farthest(after)[take] >= length
            assert (own.after(after, take, length) == counts).all()


def test_all_placements_are_those_that_moves_reach():
    own = space()
    every = {one.tobytes(): one for one in own.every(1000)}
    seen, left = set(), [own.draw(np.random.default_rng(0))]
    while left:
        counts = left.pop()
        if counts.tobytes() not in seen:
            seen.add(counts.tobytes())
            most = own.farthest(counts)
            moves = [(int(at), length) for at in np.flatnonzero(most) for length in range(1, most[at] + 1)]
            left += [own.after(counts, *one) for one in moves]
    assert seen == set(every) and own.every(10) == []


def test_it_learns_to_place_two_queries_at_more_than_one_load():
    each = [space(factor=factor) for factor in (0.5, 1.0, 2.0)]
    evaluators, weights = [QueryEvaluator(one) for one in each], weights_of(each[0])
    model = train_placement(each[0], evaluators, weights, seed=1, how=replace(OURS, transitions=3_000))
    start = np.array([[1, 0], [3, 0]])
    for own, evaluator in zip(each, evaluators, strict=True):
        began = evaluator.outcome(start)
        least = weights.reward(began, began)
        best = max(weights.reward(began, evaluator.outcome(one)) for one in own.every(1000))
        found = model.proposer(own, evaluator, weights).propose(start, began, seed=1)
        score = found[0].score if found else least
        assert best - score <= 0.05 * (best - least)


def test_loads_are_the_plan_s_and_latency_the_twin_s():
    own = space(factor=2.0)
    counts = np.array([[2, 0], [0, 3]])
    outcome, made = QueryEvaluator(own).outcome(counts), own.placement(counts)
    assert outcome.latency_ms == 1000 * followed_quantile_s(own.measure, made)
    assert outcome.load.tolist() == pytest.approx([made.blocks[0].load / 2, made.blocks[1].load / 3])
    far = replace(own, measure=Measure(ADVERTS, rates_of(ADVERTS, 50.0)))
    assert QueryEvaluator(far).outcome(counts).latency_ms == 60_000
