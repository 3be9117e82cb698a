from collections.abc import Iterator
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
    learning_rate=3e-3,
    copy_every=40,
    copy_share=1.0,
    updates=4,
    warm=200,
)


def taught(settings: LearnerSettings, seed: int, transitions: int = 6000) -> np.ndarray:
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
    first, second, third = (taught(short, seed, 600) for seed in (3, 3, 4))
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
