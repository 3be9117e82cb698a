"""Learned placement: moves, rewards and choices by hand, what must always hold, and that it learns."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.placement.allocation.nodes import Nodes
from models.placement.instances.drawn import draw_counts
from models.placement.instances.initial import NoRoomError
from models.placement.instances.job import ParallelJob, StreamEdge, has_room
from models.placement.learned.actions import (
    InstanceMove,
    apply_move,
    draw_length,
    farthest,
    index_of,
    move_at,
    moves_between,
)
from models.placement.learned.episodes import observe
from models.placement.learned.evaluator import LearnedEvaluator, TwinEvaluator
from models.placement.learned.online import (
    Scheduled,
    StepOutcome,
    choose_proposal,
    is_trusted,
    judge_change,
    trigger,
)
from models.placement.learned.reward import PlacementOutcome, RewardWeights, latency_reward, load_reward
from models.placement.learned.rivals import greedy_search, random_search
from models.placement.learned.schemes import TEMPERATURE, Proposal, Proposer, select_by_share, softmax_shares
from models.placement.learned.space import InstanceSpace
from models.placement.learned.training import OURS, train_placement
from models.placement.twin.follow import empty_state, follow_job
from models.placement.twin.station import STEP_S
from tests.fakes.parallel_jobs import one_domain, random_job

TWO = ParallelJob(np.array([100.0, 0]), np.full(2, 1e-3), np.array([3, 1]), np.array([[1.0, 1], [2, 1]]), ())


def outcome(latency_ms, load):
    return PlacementOutcome(latency_ms, np.array([load]))


@pytest.mark.parametrize(("move", "index"), [((0, 0, False), 0), ((1, 4, False), 26), ((2, 8, True), 53)])
def test_indices_of_moves_by_hand(move, index):
    assert index_of(InstanceMove(*move), 9) == index and move_at(index, 9) == move


@given(st.integers(1, 6), st.integers(1, 9), st.data())
def test_a_move_and_its_index_tell_each_other(operators, nodes, data):
    index = data.draw(st.integers(0, 2 * operators * nodes - 1))
    move = move_at(index, nodes)
    assert 0 <= move.operator < operators and 0 <= move.node < nodes
    assert index_of(move, nodes) == index


def test_moves_and_observations_of_three_operators_on_nine_nodes():
    job = ParallelJob(np.array([1.0, 0, 0]), np.full(3, 1e-3), np.ones(3, np.int64), np.ones((3, 2)), ())
    space = InstanceSpace(job, one_domain([(4, 4)] * 9, slots=4))
    counts = space.draw(np.random.default_rng(0))
    assert len(space.farthest(counts)) == 54
    assert len(observe(space.slots, counts, outcome(1.0, 0.5)._replace(load=np.full(3, 0.5)), 1.0)) == 31


def test_how_far_moves_go_by_hand():
    nodes, counts = one_domain([(4, 4), (6, 4)], slots=4), np.array([[1, 2], [0, 1]])
    found = farthest(TWO, nodes, counts).reshape(2, 2, 2)
    assert found[:, :, 0].tolist() == [[3, 1], [1, 1]] and found[:, :, 1].tolist() == [[1, 2], [0, 0]]


def test_lengths_of_moves_are_one_in_three_of_four_cases():
    random = np.random.default_rng(1)
    drawn = [draw_length(5, random) for _ in range(8_000)]
    shares = [drawn.count(length) / len(drawn) for length in range(1, 6)]
    assert shares == pytest.approx([0.75, *[0.0625] * 4], abs=0.015)
    assert {draw_length(1, random) for _ in range(20)} == {1}


@pytest.mark.parametrize(("more_ms", "load", "for_latency", "for_load", "reward"), [
    (0, 0.8, 0, 1, 0.4), (1, 0.8, -0.5, 1, 0.1), (-1, 0.8, 0.5, 1, 0.7), (10, 1.0, -0.9365, 0.96, -0.1779),
    (-10, 0.99, 0.9365, 0.9639, 0.9475), (0, 2.23, 0, -1.0449, -0.4180), (5, 0.3, -0.8743, 0.75, -0.2246),
    (-5, 1.19, 0.8743, 0.8479, 0.8638),
])  # fmt: skip
def test_rewards_by_hand(more_ms, load, for_latency, for_load, reward):
    assert latency_reward(more_ms, 1.0) == pytest.approx(for_latency, abs=1e-4)
    assert load_reward(load) == pytest.approx(for_load, abs=1e-4)
    found = RewardWeights().reward(outcome(20, 0.5), outcome(20 + more_ms, load))
    assert found == pytest.approx(reward, abs=1e-4)


@given(st.floats(-1e6, 1e6), st.floats(0, 10), st.floats(0.1, 100))
def test_of_all_rewards(more_ms, load, scale_ms):
    found = latency_reward(more_ms, scale_ms)
    assert -1 <= found <= 1 and found == -latency_reward(-more_ms, scale_ms) and load_reward(load) <= 1
    assert (load_reward(load) == 1) == (abs(load - 0.8) < 1e-8)
    assert latency_reward(more_ms + 1, scale_ms) <= found
    assert latency_reward(math.inf, scale_ms) == -1


def test_softmax_by_hand():
    values, every = np.array([1.0, 2.0, 3.0]), np.ones(3, bool)
    for temperature, shares in (
        (0.5, [0.0159, 0.1173, 0.8668]),
        (1, [0.09, 0.2447, 0.6652]),
        (5, [0.2693, 0.3289, 0.4018]),
    ):
        scaled = values * TEMPERATURE / temperature
        assert softmax_shares(scaled, every) == pytest.approx(shares, abs=1e-4)
    share = softmax_shares(values, every)
    assert [select_by_share(share, drawn) for drawn in (0.01, 0.10, 0.14)] == [0, 1, 2]
    assert softmax_shares(values + 1e6, every) == pytest.approx(share)
    masked = softmax_shares(values, np.array([True, True, False]))
    assert masked[2] == 0 and masked.sum() == pytest.approx(1) and select_by_share(masked, 1.0) == 1
    assert select_by_share(softmax_shares(values, np.array([False, True, True])), 0.0) == 1


@given(st.integers(0, 500))
def test_every_allowed_move_has_room_and_can_be_taken_back(seed):
    job, nodes = random_job(seed)
    counts = draw_counts(job, nodes, np.random.default_rng(seed))
    assert has_room(job, nodes, counts)
    most = farthest(job, nodes, counts)
    for index in np.flatnonzero(most >= 1):
        move = move_at(int(index), nodes.count)
        after = apply_move(counts, move, int(most[index]))
        assert has_room(job, nodes, after)
        back = apply_move(after, move._replace(taken=not move.taken), int(most[index]))
        assert (back == counts).all()
        if not move.taken:
            assert not has_room(job, nodes, apply_move(counts, move, int(most[index]) + 1))


def test_placements_without_room_are_not_drawn():
    with pytest.raises(NoRoomError, match="no room for them was found"):
        draw_counts(TWO, one_domain([(1, 1)], slots=4), np.random.default_rng(0))


def walking(judged, values=lambda _: np.arange(8.0)):
    """Proposals for two operators on two nodes; `judged`: outcomes in turn, the last again and again."""
    left = list(judged)

    class Told:
        def outcomes(self, placements, before):
            return [left.pop(0) if len(left) > 1 else left[0] for _ in placements]

    nodes = one_domain([(40, 40), (60, 40)], slots=40)
    return Proposer(InstanceSpace(TWO, nodes), Told(), RewardWeights(), values, lambda *_: np.zeros(1))


def test_a_walk_proposes_its_best_state_not_its_last():
    start, counts = outcome(20, 0.8), np.array([[2, 1], [1, 1]])
    loads = [0.8, 0.8, 0.8, 0.8, 2.0]
    judged = [outcome(ms, load) for ms, load in zip((19.8, 19.5, 19.9, 19.0, 30), loads, strict=True)]
    (found,) = walking(judged).walk(counts, start, seed=4, episodes=1)
    assert found.outcome.latency_ms == 19.0 and found.score == pytest.approx(0.4 + 0.6 * 0.5)
    assert walking([outcome(30, 0.8)]).walk(counts, start, seed=4) == []
    best, *others = walking(judged).propose(counts, start, seed=4)
    assert best.outcome.latency_ms == 19.0 and sorted(one.outcome.latency_ms for one in others) == [19.5, 19.8, 19.9]
    assert walking([outcome(30, 0.8)]).propose(counts, start, seed=4) == []


def test_a_network_is_asked_once_for_each_observation_of_a_proposal():
    asked = []
    one = walking([outcome(19, 0.8)], values=lambda seen: asked.append(seen.tobytes()) or np.arange(8.0))
    several = replace(one, observe=lambda counts, _: counts.astype(float))
    several.propose(np.array([[2, 1], [1, 1]]), outcome(20, 0.8), seed=4)
    assert len(asked) == len({*asked}) > 1


def test_branches_of_a_walk_are_drawn_by_one_number():
    class Draws:
        """Draws of a list; chooses the first, so what is random is known."""

        def __init__(self, *drawn):
            self.drawn, self.chosen = list(drawn), 0

        def random(self):
            return self.drawn.pop(0)

        def choice(self, among):
            self.chosen += 1
            return among[0]

    one, mask = walking([outcome(1, 1)]), np.ones(8, bool)
    state = np.array([[2, 1], [1, 1]]), outcome(20, 0.8)
    assert one._choose(*state, mask, Draws(0.05)) == 0
    assert one._choose(*state, mask, Draws(0.15, 0.999)) == 7 and one._choose(*state, mask, Draws(0.15, 0.01)) < 7
    assert one._choose(*state, mask, Draws(0.25)) == 7
    mask[7] = False
    assert one._choose(*state, mask, Draws(0.25)) == 6


def test_when_another_placement_is_looked_for():
    calm = Scheduled(tuple(StepOutcome(20, 0.8) for _ in range(30)))
    assert trigger(calm, StepOutcome(21, 0.9), 100).why == ""
    assert trigger(calm, StepOutcome(101, 0.9), 100).why == "expected over the limit"
    assert trigger(calm, StepOutcome(25, 0.9), 100).why == "expected slower than usual"
    assert trigger(calm, StepOutcome(20, 1.1), 100) == ("expected to have too much load", False)
    low = calm
    for _ in range(5):
        assert trigger(low, StepOutcome(20, 0.3), 100).why == ""
        low = low.after_step(StepOutcome(20, 0.3), StepOutcome(20, 0.3))
    assert trigger(low, StepOutcome(20, 0.3), 100) == ("long under little load", True)
    forecast_only = calm
    for _ in range(9):
        forecast_only = forecast_only.after_step(StepOutcome(20, 0.6), StepOutcome(20, 0.3))
    assert trigger(forecast_only, StepOutcome(20, 0.3), 100).why == ""


def test_what_is_put_in_force():
    now, here = Scheduled((StepOutcome(20, 0.8),)), np.array([[2, 0], [1, 0]])
    near, far = np.array([[1, 1], [1, 0]]), np.array([[0, 2], [0, 1]])
    fewer = np.array([[1, 0], [1, 0]])
    proposals = [
        Proposal(far, outcome(1, 1), 0.58),
        Proposal(near, outcome(1, 1), 0.57),
        Proposal(fewer, outcome(1, 1), 0.9),
    ]
    assert [moves_between(here, one.counts) for one in proposals] == [3, 1, 1]
    assert choose_proposal(now, 0.0, here, 0.4, proposals, fewer=False).counts is near
    assert choose_proposal(now, 0.0, here, 0.4, proposals, fewer=True).counts is fewer
    assert choose_proposal(now, 0.0, here, 0.515, proposals, fewer=False) is None
    cooling = now.after_change(0.0, here)
    assert choose_proposal(cooling, 179.0, here, 0.4, proposals, fewer=True) is None
    assert choose_proposal(cooling, 181.0, here, 0.4, proposals, fewer=True) is not None


def after_a_change(counts, *steps):
    """What is carried on three minutes and more after `counts` was left, which had come to 20 ms at a load of 0.9."""
    state = Scheduled((StepOutcome(20, 0.9),)).after_change(0.0, counts)
    for step in steps:
        state = state.after_step(step, StepOutcome(25, 1.0))
    return state


def test_a_change_that_did_no_good_is_taken_back_once_and_barred():
    here, there, worse = np.array([[2, 0]]), np.array([[1, 1]]), StepOutcome(30, 1.2)
    state = after_a_change(here, worse, worse, worse)
    assert judge_change(state, 100.0, there, RewardWeights()) == (state, None)
    few = after_a_change(here, worse, worse)
    assert judge_change(few, 181.0, there, RewardWeights()) == (few, None)
    after, back = judge_change(state, 181.0, there, RewardWeights())
    assert back is here and after.before is None and after.measured == ()
    proposal = [Proposal(there, outcome(1, 1), 0.9)]
    assert choose_proposal(after, 400.0, here, 0.4, proposal, fewer=True) is None
    assert choose_proposal(after, 181.0 + 1801, here, 0.4, proposal, fewer=True) is not None
    risen = after_a_change(np.array([[1, 0]]), worse, worse, worse)
    assert judge_change(risen, 181.0, there, RewardWeights())[1] is None
    quicker = after_a_change(here, *[StepOutcome(15, 1.2)] * 3)
    assert judge_change(quicker, 181.0, there, RewardWeights())[1] is None
    # A load of 1.2 for 0.9 costs 0.4 (0.16 - 0.01) = 0.06: 0.158 ms are worth as much, 0.6 (2 ÷ pi) arctan(0.158). One
    # of 0.8 is worth 0.004, for which 0.0105 ms may be lost.
    less, more = [(20.0, 1.2), (19.85, 1.2), (20.011, 0.8), (99.0, 0.8)], [(19.83, 1.2), (20.01, 0.8)]
    for taken, tried in [(here, less), (None, more)]:
        for step in tried:
            after = after_a_change(here, *[StepOutcome(*step)] * 3)
            assert judge_change(after, 181.0, there, RewardWeights())[1] is taken
    assert judge_change(after_a_change(here, *[StepOutcome(20.0, 0.9)] * 3), 181.0, there, RewardWeights())[1] is None
    # One odd minute is no reason, be it the newest.
    odd = after_a_change(here, StepOutcome(18, 0.8), StepOutcome(19, 0.8), worse)
    assert judge_change(odd, 181.0, there, RewardWeights())[1] is None
    assert is_trusted([1.0] * 30, 0.7) and not is_trusted([1.0] * 30, 0.6) and is_trusted([], 1.0)


def test_a_learned_judge_shares_loads_by_instances_and_takes_the_model_s_mean():
    class Said:
        def predict(self, seen):
            assert seen.shape == (1, 4, 5) and seen[0, -1].tolist() == [90, 2, 2, 1, 0] and seen[0, 0, 1:].sum() == 3
            return np.array([[25.0, 0.6]])

    window = np.tile([90.0, 1, 1, 1, 0], (4, 1))
    evaluator = LearnedEvaluator(Said(), window)
    old, new = np.array([[1, 1], [1, 0]]), np.array([[2, 2], [1, 0]])
    found = evaluator.outcomes([new], [(old, PlacementOutcome(20.0, np.array([0.8, 0.4])))])[0]
    assert found.latency_ms == 25 and found.load.tolist() == pytest.approx([0.6, 0.6])
    assert window[-1].tolist() == [90, 1, 1, 1, 0]


def test_a_learned_judge_shares_a_query_s_load_by_the_cores_of_executors_that_differ():
    """Four executors of one core at 0.8 go to two of four: 3.2 cores' work on eight. By their number it would be 1.6,
    and the other query, at 0.4 all the time, would be shown at half of that where the model's mean is 0.4."""

    class Said:
        def predict(self, seen):
            return np.array([[25.0, 0.4]])

    old, new = np.array([[4, 0], [2, 0]]), np.array([[0, 2], [2, 0]])
    evaluator = LearnedEvaluator(Said(), np.tile([90.0, 4, 0, 2, 0], (4, 1)), np.array([1, 4]))
    found = evaluator.outcomes([new], [(old, PlacementOutcome(20.0, np.array([0.8, 0.4])))])[0]
    assert found.load.tolist() == pytest.approx([0.4, 0.4])


def test_it_learns_to_place_two_operators_on_two_nodes():
    far = Nodes(
        np.array([[2.0, 8], [4, 8]]), np.zeros((2, 2)), np.array([0, 1]), np.array([[0, 20.0], [20, 0]]),
        slots=np.array([2, 4]),
    )  # fmt: skip
    job = ParallelJob(
        np.array([150.0, 0]), np.array([4, 8]) / 1000, np.array([1, 2]), np.ones((2, 2)), (StreamEdge(0, 1),)
    )
    evaluator, weights = TwinEvaluator(job, far), RewardWeights()
    start = np.array([[1, 0], [1, 1]])
    every = [np.array(x).reshape(2, 2) for x in itertools.product(range(5), repeat=4)]
    able = {one.tobytes(): evaluator.outcome(one) for one in every if has_room(job, far, one)}
    space = InstanceSpace(job, far)
    model = train_placement(space, [evaluator], weights, seed=3, start=start, how=replace(OURS, transitions=3_000))
    began = able[start.tobytes()]
    least, most = weights.reward(began, began), max(weights.reward(began, one) for one in able.values())
    best = model.proposer(space, evaluator, weights).propose(start, began, seed=1)[0]
    assert has_room(job, far, best.counts) and max(model.curve) > model.curve[0]
    assert (best.score - least) / (most - least) >= 0.95
    counts, walked, scores = start, began, []
    for _ in range(8):  # without exploration, which would find something in a space this small by itself
        values = model.values(observe(space.slots, counts, walked, model.usual_ms))
        best_move = int(np.where(farthest(job, far, counts) >= 1, values, -np.inf).argmax())
        counts = apply_move(counts, move_at(best_move, 2), 1)
        walked = evaluator.outcome(counts)
        scores.append(weights.reward(began, walked))
    assert (max(scores) - least) / (most - least) >= 0.9


def test_searches_return_the_best_that_they_looked_at():
    space = InstanceSpace(*random_job(3))
    seen = []

    def score(counts):
        seen.append(-abs(int(counts.sum()) - 9))
        return seen[-1]

    assert random_search(space, score, 20, seed=1) == max(seen) and len(seen) == 20
    start = space.draw(np.random.default_rng(1))
    first = score(start)
    seen.clear()
    found = greedy_search(space, start, score, 500)
    assert first < found == max(seen) and len(seen) <= 501
    seen.clear()
    assert greedy_search(space, start, score, 3) == max(seen) and len(seen) == 4


def test_the_twin_tells_what_cannot_keep_up_by_how_far_it_falls_behind():
    nodes = one_domain([(8, 8)] * 2, slots=8)
    job = ParallelJob(np.array([300.0]), np.array([0.01]), np.array([4]), np.ones((1, 2)), ())
    evaluator = TwinEvaluator(job, nodes)
    four, three, two = (evaluator.outcome(np.array([counts])) for counts in ([2, 2], [2, 1], [1, 1]))
    assert four.mean_load == pytest.approx(0.75, abs=0.01) and four.latency_ms < three.latency_ms < two.latency_ms
    assert two.mean_load > 1.4


def test_loads_are_what_comes_and_what_waited_over_an_interval():
    nodes, every = one_domain([(1, 1)], slots=1), np.ones((1, 1), np.int64)

    def load(rps, waiting=0.0):
        job = ParallelJob(np.array([rps]), np.array([0.004]), np.ones(1, np.int64), np.ones((1, 2)), ())
        state = empty_state(job, nodes)
        state.at[:] = waiting
        _, course = follow_job(job, nodes, every, state, np.ones(int(10 / STEP_S)), report_s=10.0)
        return float(course.load[0, 0])

    # 2300 records of 4 ms in 10 s, be they of the interval or from before it; more than it can do are told too.
    assert load(230.0) == pytest.approx(0.92) and load(130.0, waiting=1_000.0) == pytest.approx(0.92)
    assert load(557.5) == pytest.approx(2.23)
    assert PlacementOutcome(1.0, np.array([load(230.0), 0.5, 0.7])).mean_load == pytest.approx(0.70667, abs=1e-5)
