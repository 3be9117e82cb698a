"""Deep Q-learning (Mnih et al. 2015; Pa-Stream's Algorithm 1) over many runs at once, on any environment."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import huber_loss

from models.dqn.agent.actions import best_moves
from models.dqn.learner.replay import Decision, ReplayBuffer, StepReturn, Transitions, combine_steps
from models.dqn.learner.settings import LearnerSettings
from models.forecast.neural.adam import Adam
from models.policy.core.capacity import Floats, Integers


class Values(nn.Module):
    """Two hidden layers; `Q(s, a) = V(s) + A(s, a) - mean A(s, .)`, dueling (Wang et al. 2016), or Q(s, a) at once.

    Args:
        features: F of an observation.
        actions: A.
        parts: K quantities that are predicted apart (van Seijen et al. 2017).
        hidden: units of a hidden layer, shared out among the parts.
        generator: of the first weights.
        dueling: whether V is said apart.
    """

    def __init__(
        self, features: int, actions: int, parts: int, hidden: int, generator: torch.Generator, dueling: bool = True
    ) -> None:  # fmt: skip
        super().__init__()
        self.parts, self.dueling = parts, dueling
        self.first, self.second = nn.Linear(features, hidden), nn.Linear(hidden, hidden)
        self.last = nn.Linear(hidden, (actions + dueling) * parts)
        with torch.no_grad():
            for layer, gain in ((self.first, 2.0), (self.second, 2.0), (self.last, 0.01)):
                deviation = (gain / layer.in_features) ** 0.5
                layer.weight.copy_(torch.randn(layer.weight.shape, generator=generator) * deviation)
                layer.bias.zero_()
        # Every part has hidden units of its own: a second over the target weighs so much more than an executor that
        # in shared ones nothing would be learned of executors. What is 0 here stays 0.
        own = torch.arange(hidden) * parts // hidden
        of = torch.arange((actions + dueling) * parts) % parts
        for layer, kept in ((self.second, own[:, None] == own), (self.last, of[:, None] == own)):
            with torch.no_grad():
                layer.weight.mul_(kept * parts**0.5)
            layer.weight.register_hook(kept.float().mul)  # type: ignore[no-untyped-call]

    def forward(self, x: Tensor) -> Tensor:
        """Evaluate B observations of F features (B, F): values (B, A, K) of A actions, per part of the reward.

        A value is the discounted sum of one of the reward's K parts from that action on.

        Raises:
            RuntimeError: another number of features than the network has.
        """
        hidden = torch.relu(self.second(torch.relu(self.first(x))))
        found = self.last(hidden).view(len(x), -1, self.parts)
        if not self.dueling:
            return found
        state, action = found[:, :1], found[:, 1:]
        return state + action - action.mean(dim=1, keepdim=True)


def value_target(
    reward: Tensor, carried: float, weight: Tensor, mask: Tensor, held: Tensor, chosen_by: Tensor
) -> Tensor:
    """Compute the value to learn: `y = r + gamma * Q_held(s', a*)`, a* the allowed action of highest weighted value.

    Pa-Stream's equation (24) with alpha = 1 where `chosen_by` is of the held (target) network; double DQN (van Hasselt
    et al. 2016) where it is of the network that learns.

    Args:
        reward: (B, K) r, over one step or several.
        carried: gamma to the power of the number of steps; runs are cut by time limits, there are no terminal states.
        weight: (B, K) weights of the parts.
        mask: (B, A) actions allowed in s'.
        held: (B, A, K) values in s' by the network that values a*.
        chosen_by: (B, A, K) values in s' by the network that chooses it.

    Returns:
        (B, K).
    """
    worth = (chosen_by * weight[:, None, :]).sum(dim=2).masked_fill(~mask, -torch.inf)
    at = worth.argmax(dim=1)
    return reward + carried * held[torch.arange(len(at)), at]


class Environment(Protocol):
    """Runs to learn from.

    Attributes:
        seen: (runs, F) observations now.
        mask: (runs, A) allowed actions now.
        weight: (runs, K) weights of the reward's parts.
        advice: (runs,) index of an action that is known to be good; None without.
    """

    seen: np.ndarray
    mask: np.ndarray
    weight: Floats
    advice: Integers | None

    def step(self, moves: Integers) -> StepReturn:
        """Take an action, (runs,), in every run; the attributes are then of the next state."""


class Progress(NamedTuple):
    """Progress of learning: updates and transitions so far, and mean loss of the updates since the last report."""

    updates: int
    transitions: int
    loss: float


class Learner:
    """Deep Q-learning in one environment.

    Attributes:
        environment: to act in.
        settings: hyper-parameters.
        online: the network that learns.
        held: the target network, which follows it slowly, and chooses the actions where it is to.
        chance: draws exploration and batches.
        replay: the replay buffer.
        updates, transitions: made so far.
    """

    def __init__(self, environment: Environment, settings: LearnerSettings, seed: int) -> None:
        """Untrained, for the environment's shapes."""
        self.environment, self.settings = environment, settings
        shapes = environment.seen.shape[1], environment.mask.shape[1], environment.weight.shape[1]
        generator = torch.Generator().manual_seed(seed)
        self.online, self.held = (Values(*shapes, settings.hidden, generator, settings.dueling) for _ in range(2))
        self.held.load_state_dict(self.online.state_dict())
        self.chance = np.random.default_rng(seed)
        self.replay = ReplayBuffer(settings.buffer, *shapes)
        self._optimizer = Adam(self.online.parameters(), settings.learning_rate, fused=True)
        self._pending: deque[Decision] = deque(maxlen=settings.steps)
        self.updates = self.transitions = 0

    def learn(self, transitions: int, every: int) -> Iterator[Progress]:
        """Act and learn until so many more transitions were made; a generator, which works as its reports are consumed.

        Exploration falls as `settings.explore_share` says, the learning rate over all of them linearly. Nothing is
        learned before `settings.warm` transitions are in the buffer.

        Args:
            transitions: how many more; a decision of all runs makes one per run, and the last decision may exceed the
                number.
            every: updates between two reports, at least 1.

        Yields:
            Progress after each `every` updates; the last updates may come after the last report.

        Raises:
            ZeroDivisionError: `every` is 0. What the environment raises comes through.
        """
        losses: list[float] = []
        how, first = self.settings, self.transitions
        while self.transitions - first < transitions:
            made = self.transitions - first
            self.collect(how.explore_share(made, transitions))
            if len(self.replay) < how.warm:
                continue
            self._optimizer.rate = how.learning_rate * (1 - (1 - how.last_rate) * (made / transitions))
            for _ in range(how.updates):
                losses.append(self.update(self.replay.draw(how.batch, self.chance)))
                if self.updates % every == 0:
                    yield Progress(self.updates, self.transitions, float(np.mean(losses)))
                    losses.clear()

    def collect(self, explore: float) -> None:
        """Make one decision in every run, and add the transitions that it completes to the replay buffer.

        Nothing is added before `settings.steps` decisions were made. What the environment raises comes through.

        Args:
            explore: probability, 0 to 1, of a random allowed action, or with probability `settings.advised` the advised
                one, in place of the best.
        """
        here, chance = self.environment, self.chance
        seen, mask, weight = here.seen, here.mask, here.weight
        moves = self.greedy(seen, mask, weight)
        random = chance.random(len(seen)) < explore
        drawn = np.where(mask, chance.random(mask.shape), -1.0).argmax(axis=1)
        if here.advice is not None:
            drawn = np.where(chance.random(len(seen)) < self.settings.advised, here.advice, drawn)
        moves = np.where(random, drawn, moves)
        self._pending.append(Decision(seen, moves, here.step(moves), weight))
        self.transitions += len(seen)
        if len(self._pending) == self.settings.steps:
            self.replay.add(combine_steps(list(self._pending), self.settings.gamma))

    def greedy(self, seen: np.ndarray, mask: np.ndarray, weight: Floats) -> Integers:
        """Return (runs,) the allowed action of highest weighted value, by the network that is to act."""
        acting = self.held if self.settings.acts_held else self.online
        with torch.no_grad():
            values = acting(torch.from_numpy(np.ascontiguousarray(seen, np.float32))).numpy()
        return best_moves((values * weight[:, None, :]).sum(axis=2), mask)

    def update(self, batch: Transitions) -> float:
        """Make one gradient step on a batch, move the target network when due, and return the loss before the step.

        The loss is the mean Huber error of the values' parts, times their weights to the power `settings.price_power`.
        After each `settings.copy_every` updates the target network moves `settings.copy_share` of the way to the
        learning one.

        Args:
            batch: B transitions: seen and after (B, F), moved (B,), reward and weight (B, K), mask (B, A); B at least
                1.
        """
        seen, moved, reward, after, mask, weight = (torch.from_numpy(array) for array in batch)
        how = self.settings
        with torch.no_grad():
            held = self.held(after)
            wanted = value_target(
                reward, how.gamma**how.steps, weight, mask, held, self.online(after) if how.double else held
            )
        said = self.online(seen)[torch.arange(len(moved)), moved]
        loss = (huber_loss(said, wanted, reduction="none", delta=how.huber) * weight**how.price_power).mean()
        self.online.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.online.parameters(), how.clip)
        self._optimizer.step()
        self.updates += 1
        if self.updates % how.copy_every == 0:
            with torch.no_grad():
                torch._foreach_lerp_(list(self.held.parameters()), list(self.online.parameters()), how.copy_share)
        return float(loss.detach())
