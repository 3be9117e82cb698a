from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch

from models.dqn.learner.learner import Learner, Values, value_target
from models.dqn.learner.replay import Decision, ReplayBuffer, StepReturn, Transitions, combine_steps
from models.dqn.learner.settings import LearnerSettings

STAY, SWITCH = 0, 1


class TwoStates:
    """A job that is calm or busy. Staying keeps the state, switching changes it and costs 1; calm pays 1 a step.

    With gamma = 0.9 staying calm is worth 10, switching there -1 + 0.9 * 8 = 6.2; busy, switching -1 + 0.9 * 10 = 8,
    staying 0.9 * 8 = 7.2.
    """

    def __init__(self, runs: int) -> None:
        self._busy = np.arange(runs) % 2
        self.weight, self.mask, self.advice = np.ones((runs, 1)), np.ones((runs, 2), bool), None

    @property
    def seen(self) -> np.ndarray:
        return np.eye(2, dtype=np.float32)[self._busy]

    def step(self, moves: np.ndarray) -> StepReturn:
        reward = np.where(moves == SWITCH, -1.0, 1.0 - self._busy)[:, None]
        self._busy = np.where(moves == SWITCH, 1 - self._busy, self._busy)
        never = np.zeros(len(moves), bool)
        return StepReturn(reward, self.seen, self.mask, never)


TOY = LearnerSettings(
    hidden=16,
    gamma=0.9,
    steps=1,
    buffer=5000,
    batch=64,
    learning_rate=6e-3,
    copy_every=20,
    copy_share=1.0,
    updates=4,
    warm=200,
)


def taught(settings: LearnerSettings, seed: int, transitions: int = 3000) -> np.ndarray:
    environment = TwoStates(16)
    learner = Learner(environment, settings, seed)
    for _ in learner.learn(transitions, every=10**9):
        pass
    return learner.online(torch.eye(2)).detach().numpy()[:, :, 0]


@pytest.mark.study
@pytest.mark.parametrize("settings", [TOY, replace(TOY, double=False)], ids=["double", "plain"])
def test_a_job_of_two_states_is_learned_to_its_optimum(settings: LearnerSettings) -> None:
    np.testing.assert_allclose(taught(settings, 1), [[10.0, 6.2], [7.2, 8.0]], atol=0.4)


def test_the_same_seed_gives_the_same_network() -> None:
    short = replace(TOY, warm=100)
    first, second, third = (taught(short, seed, 300) for seed in (3, 3, 4))
    assert (first == second).all()
    assert (first != third).any()


def test_the_target_is_the_reward_and_the_discounted_best_allowed_value() -> None:
    reward, weight = torch.tensor([[0.5], [0.5]]), torch.ones(2, 1)
    mask = torch.tensor([[True, True], [True, False]])
    held = torch.tensor([[1.0, 2.0]] * 2)[:, :, None]
    y = value_target(reward, 0.99, weight, mask, held, held)
    np.testing.assert_allclose(y[:, 0], [2.48, 1.49], rtol=1e-6)


def test_double_dqn_chooses_with_one_network_and_values_with_the_other() -> None:
    held, chosen_by = torch.tensor([[[1.0], [2.0]]]), torch.tensor([[[5.0], [4.0]]])
    one = torch.ones(1, 1)
    y = value_target(0 * one, 1.0, one, torch.ones(1, 2, dtype=torch.bool), held, chosen_by)
    assert y.item() == 1.0


def test_parts_are_weighted_to_choose_and_carried_apart() -> None:
    held = torch.tensor([[[-1.0, -0.5], [-3.0, -0.1]]])
    mask = torch.ones(1, 2, dtype=torch.bool)
    for price, part in ((1.0, [-1.0, -0.5]), (10.0, [-3.0, -0.1])):
        y = value_target(torch.zeros(1, 2), 1.0, torch.tensor([[1.0, price]]), mask, held, held)
        np.testing.assert_allclose(y[0], part)


def path(gains: list[float], cut: list[bool]) -> Iterator[Decision]:
    for number, (gain, new) in enumerate(zip(gains, cut, strict=True)):
        after = np.full((1, 1), number + 1.0)
        outcome = StepReturn(np.array([[gain]]), after, np.ones((1, 2), bool), np.array([new]))
        yield Decision(np.full((1, 1), float(number)), np.array([number]), outcome, np.ones((1, 1)))


def test_rewards_of_several_steps_are_summed() -> None:
    made = combine_steps(list(path([1, 2, 4], [False] * 3)), 0.5)
    assert (made.reward[0, 0], made.after[0, 0]) == (3.0, 3.0)


def test_a_time_limit_is_no_end_and_no_step_beyond_it_is_counted() -> None:
    assert (
        len(combine_steps(list(path([1, 2, 4], [False, False, True])), 0.5).moved) == 1
    )  # what would have come is counted
    assert len(combine_steps(list(path([1, 2, 4], [True, False, False])), 0.5).moved) == 0
    assert len(combine_steps(list(path([1, 2, 4], [False, True, False])), 0.5).moved) == 0
    assert len(combine_steps(list(path([1], [True])), 0.5).moved) == 1


def test_the_oldest_transitions_go_first() -> None:
    replay = ReplayBuffer(5, 1, 2, 1)
    for start in (0, 3, 6):
        ones = np.arange(start, start + 3)
        column = ones[:, None].astype(float)
        replay.add(Transitions(column, ones, column, column, np.ones((3, 2), bool), column))
    assert len(replay) == 5
    drawn = replay.draw(100, np.random.default_rng(1))
    assert set(drawn.moved) == {4, 5, 6, 7, 8}
    assert (drawn.seen[:, 0] == drawn.moved).all()


def test_a_dueling_network_says_the_state_apart() -> None:
    network = Values(3, 4, 2, 8, torch.Generator().manual_seed(1))
    said = network(torch.randn(5, 3))
    assert said.shape == (5, 4, 2)
    hidden = torch.relu(network.second(torch.relu(network.first(torch.ones(1, 3)))))
    state = network.last(hidden).view(1, 5, 2)[:, 0]
    torch.testing.assert_close(network(torch.ones(1, 3)).mean(dim=1), state)


class Still:
    """One state, of zeros, in which some actions are forbidden."""

    def __init__(self, allowed: list[bool], runs: int = 1) -> None:
        self.seen, self.weight, self.advice = np.zeros((runs, 1), np.float32), np.ones((runs, 1)), None
        self.mask = np.tile(np.array(allowed), (runs, 1))
        self.moves: list[int] = []

    def step(self, moves: np.ndarray) -> StepReturn:
        self.moves += moves.tolist()
        return StepReturn(0 * self.weight, self.seen, self.mask, np.zeros(len(moves), bool))


def saying(learner: Learner, online: list[float], held: list[float]) -> None:
    """Make its networks say so, of the state and of each action, whatever they see."""
    for network, said in ((learner.online, online), (learner.held, held)):
        for part in network.parameters():
            torch.nn.init.zeros_(part)
        with torch.no_grad():
            network.last.bias.copy_(torch.tensor(said))


def one_transition(allowed: list[bool], reward: float) -> Transitions:
    one = np.ones((1, 1), np.float32)
    return Transitions(0 * one, np.zeros(1, np.int64), reward * one, 0 * one, np.array([allowed]), one)


class Descent:
    """Plain descent."""

    def __init__(self, weights: Iterable[torch.Tensor], rate: float) -> None:
        self.rate, self._weights = rate, list(weights)

    @torch.no_grad()
    def step(self) -> None:
        for weight in self._weights:
            weight -= self.rate * weight.grad


def test_a_step_of_plain_descent_is_the_paper_s_update() -> None:
    """Q + alpha (r + gamma max Q' - Q), eq. 24: 1 + 0.1 (0.5 + 0.99 x 2 - 1)."""
    settings = LearnerSettings(hidden=4, double=False, gamma=0.99, steps=1, huber=10.0, copy_share=0.0)
    learner = Learner(Still([True]), settings, 1)
    saying(learner, online=[1.0, 0.0], held=[2.0, 0.0])
    learner._optimizer = Descent(learner.online.parameters(), 0.1)
    loss = learner.update(one_transition([True], 0.5))
    assert loss == pytest.approx((2.48 - 1) ** 2 / 2)
    assert learner.online(torch.zeros(1, 1)).item() == pytest.approx(1.148)


@pytest.mark.parametrize("double", [True, False])
def test_a_forbidden_action_is_neither_taken_nor_in_the_target(double: bool) -> None:
    allowed = [True, False, True, False]
    there = Still(allowed, runs=40)
    learner = Learner(there, LearnerSettings(hidden=4, double=double, gamma=0.99, steps=1, huber=10.0), 1)
    said = [0.0, 1.0, 9.0, 2.0, 9.0]
    saying(learner, online=said, held=said)
    for explore in (0.0, 0.5, 1.0):
        learner.collect(explore)
    assert set(there.moves[:40]) == {2} and set(there.moves) == {0, 2}
    with torch.no_grad():
        of = learner.online(torch.zeros(1, 1))[0, :, 0].tolist()
    loss = learner.update(one_transition(allowed, 0.5))
    assert loss == pytest.approx((0.5 + 0.99 * of[2] - of[0]) ** 2 / 2, rel=1e-5)


def test_exploration_falls_from_1_to_its_floor_and_no_lower() -> None:
    tried: list[float] = []

    class Noted(Learner):
        def collect(self, explore: float) -> None:
            tried.append(explore)
            super().collect(explore)

    learner = Noted(TwoStates(16), replace(TOY, warm=10**9), 1)
    assert list(learner.learn(1600, every=1)) == []
    assert tried[0] == 1 and tried == sorted(tried, reverse=True) and min(tried) == TOY.explore == 0.05
    assert tried[10] == pytest.approx(1 - 0.95 / 2) and tried[21:] == [0.05] * 79


def test_the_buffer_holds_no_more_than_its_size() -> None:
    learner = Learner(TwoStates(16), replace(TOY, buffer=100), 1)
    sizes = []
    for _ in range(10):
        learner.collect(1.0)
        sizes.append(len(learner.replay))
    assert sizes == [16, 32, 48, 64, 80, 96, 100, 100, 100, 100]
