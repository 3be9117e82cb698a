"""Moves, rewards, choices and training of learned placement: numbers and properties of the Pa-Stream seed."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from models.dqn.learner.learner import Values
from models.dqn.learner.replay import ReplayBuffer, Transitions
from models.placement.instances.drawn import draw_counts
from models.placement.instances.job import ParallelJob, has_room
from models.placement.learned import training
from models.placement.learned.actions import draw_length, farthest, move_at
from models.placement.learned.episodes import STEPS, PlacementEpisodes, observe
from models.placement.learned.reward import PlacementOutcome, RewardWeights, latency_reward, load_reward
from models.placement.learned.rivals import CountingEvaluator
from models.placement.learned.schemes import Proposal, Proposer, select_by_share, softmax_shares
from models.placement.learned.space import InstanceSpace
from models.placement.learned.training import LEARNER, OURS, PAPER, train_placement
from tests.fakes.parallel_jobs import counting, one_domain, random_job

LATENCY = st.floats(0, 1e5)


class Spread:
    """Latency is less and load nearer to 0.8 the more instances there are: known without a twin."""

    def outcomes(self, placements, before):
        return [PlacementOutcome(100 / one.sum(), np.clip(2 / one.sum(axis=1), 0.2, 2.0)) for one in placements]


def roomy():
    return InstanceSpace(counting(), one_domain([(8, 8)] * 2, slots=4))


def proposing(space, evaluator, values=None, weights=None, seen=None):
    """What proposes placements; `seen`: where is noted of what values were asked."""
    wide = 2 * space.shape[0] * space.shape[1]

    def noted(counts, outcome):
        if seen is not None:
            seen.append((counts, outcome))
        return np.zeros(1)

    return Proposer(space, evaluator, weights or RewardWeights(), values or (lambda _: np.arange(float(wide))), noted)


# Equations 19 to 22


@given(st.floats(-1e3, 1e3), st.floats(0, 3), st.floats(0.5, 100), st.floats(0, 1))
def test_the_reward_is_equation_22_and_the_weighted_sum_of_both(more_ms, load, scale_ms, latency):
    weights = RewardWeights(latency, 1 - latency, scale_ms)
    found = weights.reward(PlacementOutcome(2e3, np.ones(1)), PlacementOutcome(2e3 + more_ms, np.array([load])))
    by_22 = -2 * latency / math.pi * math.atan(more_ms / scale_ms) - (1 - latency) * ((load - 0.8) ** 2 - 1)
    assert found == pytest.approx(by_22, abs=1e-9)
    assert found == pytest.approx(
        latency * latency_reward(more_ms, scale_ms) + (1 - latency) * load_reward(load), abs=1e-9
    )


@given(st.floats(-1e3, 1e3), st.floats(0.1, 10), st.floats(0.1, 100))
def test_the_reward_for_latency_is_odd_falls_and_stays_within_1(more_ms, further_ms, scale_ms):
    found = latency_reward(more_ms, scale_ms)
    assert -1 < found < 1 and latency_reward(-more_ms, scale_ms) == -found
    assert latency_reward(more_ms + further_ms, scale_ms) < found


@given(st.floats(0, 10))
def test_the_reward_for_load_is_most_at_the_target_alone_and_told_apart_up_to_3(load):
    assert (load_reward(load) == 1) == ((load - 0.8) ** 2 < 1e-16) and load_reward(0.8) == 1
    assert load_reward(load) == pytest.approx(1 - (min(load, 3) - 0.8) ** 2)
    assert load_reward(3.0) == load_reward(7.5) == pytest.approx(-3.84)


# Algorithm 2


class Told:
    """Draws that are told; of whole numbers the least, whose bounds are noted."""

    def __init__(self, *drawn):
        self.drawn, self.bounds = list(drawn), []

    def random(self):
        return self.drawn.pop(0)

    def integers(self, low, high):
        self.bounds.append((low, high))
        return low


@pytest.mark.parametrize(("drawn", "most", "length", "bounds"), [
    (0.0, 5, 1, []), (math.nextafter(0.75, 0), 5, 1, []), (0.75, 5, 2, [(2, 6)]), (0.999, 2, 2, [(2, 3)]),
    (0.999, 1, 1, []),
])  # fmt: skip
def test_how_far_a_move_goes_by_hand(drawn, most, length, bounds):
    """One below 0.75, else any of 2 to `most`, each with a quarter over their number: 0.0625 where they are four."""
    told = Told(drawn)
    assert draw_length(most, told) == length and told.bounds == bounds


def test_an_observation_is_placement_latency_and_loads_in_this_order():
    seen = observe(np.array([4, 2]), np.array([[1, 2], [0, 1]]), PlacementOutcome(30.0, np.array([0.3, 9.0])), 20.0)
    assert seen.tolist() == pytest.approx([0.25, 1, 0, 0.5, math.log(2.5), 0.3, 3.0])


def test_a_step_is_paid_by_equation_22_and_an_episode_ends_in_no_terminal_state():
    space, weights = roomy(), RewardWeights()
    start = np.array([[1, 0], [1, 0], [1, 0]])
    episodes = PlacementEpisodes(space, [Spread()], weights, 10.0, 4, 1, start)
    assert (episodes.seen[:2] == episodes.seen[0]).all()  # half of them begin at the start
    random = np.random.default_rng(2)
    for step in range(1, STEPS + 1):
        before, mask = list(zip(episodes._counts, episodes._outcomes, strict=True)), episodes.mask
        assert all((row == (space.farthest(counts) >= 1)).all() for row, (counts, _) in zip(mask, before, strict=True))
        moves = np.array([random.choice(np.flatnonzero(row)) for row in mask])
        found = episodes.step(moves)
        assert found.cut.tolist() == [step == STEPS] * 4
        for (counts, was), index, reward, seen in zip(before, moves, found.reward, found.after, strict=True):
            move, slots = move_at(int(index), 2), np.round(seen[:6].reshape(3, 2) * space.slots).astype(int)
            changed = slots - counts
            assert (changed[move.operator, move.node] < 0) == move.taken
            assert has_room(space.job, space.nodes, slots) and np.count_nonzero(changed) == 1
            (now,) = Spread().outcomes([slots], [])
            assert reward == pytest.approx([weights.reward(was, now)])
    assert STEPS == 32
    # What the last step led to is told, not where the next episode begins.
    assert (episodes.seen[:2] == episodes.seen[0]).all() and not (found.after == episodes.seen).all()


@given(st.integers(0, 500))
@settings(max_examples=25)
def test_there_are_two_moves_for_each_operator_on_each_node(seed):
    job, nodes = random_job(seed)
    assert farthest(job, nodes, draw_counts(job, nodes, np.random.default_rng(seed))).shape == (
        2 * job.operators * nodes.count,
    )


# Algorithm 4


@given(
    arrays(np.float64, 6, elements=st.integers(-40, 40).map(lambda one: one / 10)),
    arrays(np.bool_, 6).filter(np.any), st.sampled_from([0.1, 0.5, 1.0]), st.floats(-100, 100), st.floats(0, 1),
)  # fmt: skip
def test_of_all_softmax_choices(values, mask, spread, more, drawn):
    values = values * spread
    share = softmax_shares(values, mask)
    assert share.sum() == pytest.approx(1) and (share[~mask] == 0).all()
    assert (np.diff(share[mask][np.argsort(values[mask], kind="stable")]) >= 0).all()
    assert softmax_shares(values + more, mask) == pytest.approx(share)
    best = values == values[mask].max()
    cold = softmax_shares(values * 5000, mask)
    assert cold == pytest.approx((best & mask) / (best & mask).sum(), abs=1e-9)
    assert mask[select_by_share(share, drawn)]


def test_by_rounding_the_last_allowed_move_is_chosen():
    share = np.array([0.1] * 10 + [0.0])
    assert share.cumsum()[-1] < 1 and select_by_share(share, 1.0) == 9


# Algorithm 3


def test_branches_of_a_walk_have_a_tenth_a_tenth_and_the_rest():
    class Drawing:
        """A branch's number and one for the shares; of random moves the first is chosen."""

        def __init__(self, branch):
            self.drawn = [branch, 0.01]

        def random(self):
            return self.drawn.pop(0)

        def choice(self, among):
            return among[0]

    values, mask = np.full(12, -100.0), np.zeros(12, bool)
    values[4], values[7], values[11] = 2.5, 3.0, 9.0
    mask[[1, 4, 7]] = True
    one, counts = proposing(roomy(), Spread(), lambda _: values), np.array([[1, 0], [1, 0], [1, 0]])
    draws = [Drawing(at / 1000) for at in range(1000)]
    chosen = [one._choose(counts, PlacementOutcome(1, np.ones(3)), mask, each) for each in draws]
    assert chosen == [1] * 100 + [4] * 100 + [7] * 800  # 4: by its share; 11 is not allowed
    assert [len(each.drawn) for each in draws] == [1] * 100 + [0] * 100 + [1] * 800


class Scores:
    """An evaluator whose latencies are scores in turn, and weights that take them as such."""

    def __init__(self, *scores):
        self.left, self.starts = list(scores), set()

    def outcomes(self, placements, before):
        return [PlacementOutcome(self.left.pop(0), np.ones(3)) for _ in placements]

    def reward(self, before, after):
        self.starts.add(before.latency_ms)
        return after.latency_ms


def test_the_best_state_of_a_walk_is_proposed_by_hand():
    start, counts = PlacementOutcome(0.5, np.ones(3)), np.array([[1, 0], [1, 0], [1, 0]])
    scores = Scores(0.4, 0.55, 0.52, 0.6, 0.58, *[0.5] * 11)
    (found,) = proposing(roomy(), scores, weights=scores).walk(counts, start, seed=1, episodes=1)
    assert found.score == 0.6 and scores.starts == {0.5} and scores.left == []
    none = Scores(*[0.5] * 16)
    assert proposing(roomy(), none, weights=none).walk(counts, start, seed=1, episodes=1) == []


class Asked(Spread):
    """Notes which placements it is asked for, in order."""

    def __init__(self):
        self.asked = []

    def outcomes(self, placements, before):
        self.asked += [one.tobytes() for one in placements]
        return super().outcomes(placements, before)


def test_twenty_walks_of_sixteen_moves_propose_each_placement_once():
    space, seen, asked = roomy(), [], Asked()
    start = np.array([[1, 0], [1, 0], [1, 0]])
    (began,) = Spread().outcomes([start], [])
    found = proposing(space, asked, seen=seen).walk(start, began, seed=3)
    assert len(asked.asked) == 20 * 16 > len({*asked.asked}) > 16  # walks come by the same placements again
    assert len({each.counts.tobytes() for each in found}) == len(found) < 20
    # Values are asked of where a walk is, not of where it began.
    assert len({counts.tobytes() for counts, _ in seen}) > 16
    assert all(outcome.latency_ms == 100 / counts.sum() for counts, outcome in seen)


def test_a_proposal_looks_at_five_walks_and_then_at_new_placements_alone():
    space, asked = roomy(), Asked()
    start = np.array([[1, 0], [1, 0], [1, 0]])
    (began,) = Spread().outcomes([start], [])
    found = proposing(space, asked).propose(start, began, seed=3)
    walked, around = asked.asked[: 5 * 16], asked.asked[5 * 16 :]
    assert len({*walked}) < 5 * 16
    assert len({*around}) == len(around) > 0 and not {*around} & {*walked, start.tobytes()}
    assert len({each.counts.tobytes() for each in found}) == len(found)


@given(st.integers(0, 500))
@settings(max_examples=10)
def test_no_single_move_from_the_five_best_was_left_out_or_as_many_were_looked_at_as_may_be(seed):
    job, nodes = random_job(seed, nodes=3)
    space, asked = InstanceSpace(job, nodes), CountingEvaluator(Spread())
    start = space.draw(np.random.default_rng(seed))
    (began,) = Spread().outcomes([start], [])
    found = proposing(space, asked).propose(start, began, seed)
    known = {start.tobytes(), *asked._known}
    around = [
        {space.after(one.counts, int(at), 1).tobytes() for at in np.flatnonzero(space.farthest(one.counts) >= 1)}
        for one in found[:5]
    ]
    assert len(known) == 257 or all(each <= known for each in around)
    assert len(known) <= 257


def test_moves_are_looked_at_in_the_order_of_the_network_s_values_from_any_better_one_on():
    """One operator on two nodes, whose latency falls with its instances on the second one alone."""
    job = ParallelJob(np.array([100.0]), np.full(1, 1e-3), np.ones(1, np.int64), np.ones((1, 2)), ())
    space = InstanceSpace(job, one_domain([(9, 9)] * 2, slots=4))
    start = np.array([[1, 0]])

    class Second:
        def __init__(self):
            self.asked = []

        def outcomes(self, placements, before):
            self.asked += [one.tolist() for one in placements]
            return [PlacementOutcome(10.0 - one[0, 1], np.array([0.8])) for one in placements]

    second = Second()
    one = proposing(space, second, values=lambda _: np.array([3.0, 1.0, 2.0, 0.0]))
    (began,) = Second().outcomes([start], [])
    first = Proposal(start, began, one.weights.reward(began, began))
    seen = {start.tobytes(): first}
    one._look_around(first, seen)
    # (1, 0): more on the first, then on the second, which is better: from there on, and so on.
    assert second.asked[:4] == [[[2, 0]], [[1, 1]], [[2, 1]], [[1, 2]]]
    assert max(seen.values(), key=lambda each: each.score).counts[0, 1] == 4


@given(st.integers(0, 500))
@settings(max_examples=10)
def test_proposals_are_better_than_the_start_have_room_and_repeat_themselves(seed):
    job, nodes = random_job(seed)
    space, weights = InstanceSpace(job, nodes), RewardWeights()
    start = space.draw(np.random.default_rng(seed))
    (began,) = Spread().outcomes([start], [])
    first, again = (proposing(space, Spread()).propose(start, began, seed) for _ in range(2))
    assert all(one.score > weights.reward(began, began) and has_room(job, nodes, one.counts) for one in first)
    assert [one.score for one in first] == sorted((one.score for one in first), reverse=True)
    assert [one.counts.tolist() for one in first] == [one.counts.tolist() for one in again]


def test_where_no_move_is_allowed_nothing_is_proposed():
    full = InstanceSpace(counting((1, 1, 1)), one_domain([(8, 8)], slots=3))
    counts = np.array([[1], [1], [1]])
    assert not full.farthest(counts).any()
    assert proposing(full, Spread()).propose(counts, PlacementOutcome(1.0, np.ones(3)), seed=1) == []


# Algorithm 1


def test_parameters_of_the_network_by_hand():
    """The paper's 31-128-128-54 has 27,574; ours says the state apart, which takes one more unit of 128 and a bias."""
    ours, paper = (
        Values(31, 54, 1, how.learner.hidden, torch.Generator(), how.learner.dueling) for how in (OURS, PAPER)
    )
    assert sum(part.numel() for part in ours.parameters()) == 27_703
    assert sum(part.numel() for part in paper.parameters()) == 27_574
    seen = torch.ones(2, 31)
    assert paper(seen).shape == ours(seen).shape == (2, 54, 1)
    assert (
        paper(seen)[0, :, 0].tolist() == paper.last(torch.relu(paper.second(torch.relu(paper.first(seen)))))[0].tolist()
    )


@pytest.mark.parametrize("how", [OURS, PAPER])
def test_the_settings_that_ours_and_table_4_have_alike(how):
    learner = how.learner
    assert (learner.learning_rate, learner.buffer, learner.batch, learner.warm) == (0.001, 10_000, 64, 1_000)
    assert (learner.steps, learner.clip, learner.explore) == (1, 10.0, 0.05)


def test_the_settings_of_table_4_from_which_ours_depart():
    paper = PAPER.learner
    assert (paper.gamma, paper.double, paper.dueling, paper.acts_held, paper.last_rate) == (
        0.99,
        False,
        False,
        False,
        1,
    )
    assert PAPER.runs == paper.updates == 1  # so that an update is a move, and an episode 32 of them
    assert (PAPER.transitions, PAPER.trials, PAPER.every) == (1_000 * 32, 50, 20 * 32)
    assert (paper.copy_every, paper.copy_share) == (10 * 32, 1.0)
    assert (LEARNER.gamma, LEARNER.double, LEARNER.dueling, OURS.transitions) == (0.9, True, True, 16_000)


def test_exploration_of_the_paper_falls_by_episodes_to_its_floor():
    """Oracle 11."""
    shares = [PAPER.learner.explore_share(episode * STEPS, PAPER.transitions) for episode in (0, 100, 300, 597, 598)]
    assert shares == pytest.approx([1.0, 0.60577, 0.22229, 0.995**597, 0.05], abs=5e-6) and shares[3] > 0.05
    assert PAPER.learner.explore_share(STEPS - 1, PAPER.transitions) == 1.0
    assert [OURS.learner.explore_share(made, 1_000) for made in (0, 300, 600, 999)] == pytest.approx(
        [1, 0.525, 0.05, 0.05]
    )


def test_a_network_of_the_papers_settings_is_trained_and_proposes():
    how = replace(PAPER, learner=replace(PAPER.learner, warm=64, copy_every=32), transitions=128, trials=2, every=32)
    model = train_placement(roomy(), [Spread()], RewardWeights(), seed=5, how=how)
    assert len(model.curve) == 3 and not model.network.dueling  # before, and after 32 and 64 of 65 updates
    (began,) = Spread().outcomes([np.ones((3, 2), np.int64)], [])
    assert model.proposer(roomy(), Spread(), RewardWeights()).propose(np.ones((3, 2), np.int64), began, 1)


def test_the_buffer_keeps_the_newest_ten_thousand():
    replay = ReplayBuffer(LEARNER.buffer, 1, 2, 1)
    for start in range(0, 12_000, 1_600):
        row = np.arange(start, start + 1_600)
        column = row[:, None].astype(float)
        replay.add(Transitions(column, row, column, column, np.ones((1_600, 2), bool), np.ones((1_600, 1))))
        assert len(replay) == min(start + 1_600, 10_000)
    moved = replay.draw(5_000, np.random.default_rng(0)).moved
    assert 2_800 <= moved.min() < moved.max() < 12_800


@pytest.fixture(scope="module")
def briefly():
    """Two short trainings by the same arguments, with scores of our own, and the networks that were scored."""
    scores, made = [0.1, 0.7, 0.3, 0.2], []
    for _ in range(2):
        left, held = list(scores), []

        def score(proposer, counts, outcome, seed, left=left, held=held):
            if seed == 0:
                held.append(
                    {name: part.clone() for name, part in proposer.values.__self__.network.state_dict().items()}
                )
            return left[min(len(held), len(left)) - 1]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(training, "_best_score", score)
            how = replace(OURS, learner=replace(LEARNER, warm=64), transitions=112, every=4)
            made.append((train_placement(roomy(), [Spread()], RewardWeights(), seed=5, how=how), held))
    return made


def test_the_network_that_scored_most_is_kept(briefly):
    (model, held), _ = briefly
    assert model.curve[:4] == pytest.approx((0.1, 0.7, 0.3, 0.2)) and len(held) == len(model.curve)
    kept = model.network.state_dict()
    equal = [all((kept[name] == part).all() for name, part in each.items()) for each in held]
    assert equal[1] and equal.count(True) == 1


def test_the_same_seed_trains_the_same_network(briefly):
    (first, _), (again, _) = briefly
    assert first.usual_ms == again.usual_ms
    one, other = first.network.state_dict(), again.network.state_dict()
    assert all((part == other[name]).all() for name, part in one.items())
