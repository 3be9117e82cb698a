"""Deep Q-learning (Mnih et al. 2015; the source paper's Algorithm 1) over many runs at once, on any environment."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch.nn.functional import huber_loss

from models.dqn.agent.actions import best
from models.dqn.learner.network import Values, target
from models.dqn.learner.replay import Decision, ReplayBuffer, StepReturn, Transitions, summed
from models.dqn.learner.settings import LearnerSettings
from models.policy.core.capacity import Floats, Integers


class Environment(Protocol):
    """Runs to learn from; `seen` (runs, F), `mask` (runs, A) and `weight` (runs, K) are of the present.

    So is `advice` (runs,), the move of somebody who knows a good one; None where there is nobody.
    """

    seen: np.ndarray
    mask: np.ndarray
    weight: Floats
    advice: Integers | None

    def step(self, moves: Integers) -> StepReturn:
        """Act in every run."""


class Progress(NamedTuple):
    """How far the learning is: updates and transitions so far, mean loss since the last."""

    updates: int
    transitions: int
    loss: float


class Learner:
    """The network that learns, its target and its memory."""

    def __init__(self, environment: Environment, settings: LearnerSettings, seed: int) -> None:
        """Untrained, for a environment's shapes."""
        features, actions, parts = environment.seen.shape[1], environment.mask.shape[1], environment.weight.shape[1]
        generator = torch.Generator().manual_seed(seed)
        made = [Values(features, actions, parts, settings.hidden, settings.dueling, generator) for _ in range(2)]
        self.settings, self.online, self.held = settings, made[0], made[1]
        self.held.load_state_dict(self.online.state_dict())
        self.chance = np.random.default_rng(seed)
        self.replay = ReplayBuffer(settings.buffer, features, actions, parts)
        self._optimizer = torch.optim.Adam(self.online.parameters(), settings.learning_rate, fused=True)
        self._pending: deque[Decision] = deque(maxlen=settings.steps)
        self.updates = self.transitions = 0

    def learn(self, environment: Environment, transitions: int, every: int) -> Iterator[Progress]:
        """Act and learn until so many transitions were made; a report after each `every` updates."""
        losses: list[float] = []
        first = self.transitions
        while self.transitions - first < transitions:
            done = (self.transitions - first) / transitions
            rate = max(self.settings.explore, 1 - done / self.settings.explore_for * (1 - self.settings.explore))
            self.collect(environment, rate)
            if len(self.replay) < self.settings.warm:
                continue
            for group in self._optimizer.param_groups:
                group["lr"] = self.settings.learning_rate * (1 - 0.9 * done)
            for _ in range(self.settings.updates):
                losses.append(self.update(self.replay.draw(self.settings.batch, self.chance)))
                if self.updates % every == 0:
                    yield Progress(self.updates, self.transitions, float(np.mean(losses)))
                    losses.clear()

    def collect(self, environment: Environment, explore: float) -> None:
        """One decision of every run, random with that chance, and what it teaches into the buffer."""
        seen, weight = environment.seen, environment.weight
        moves = self.greedy(seen, environment.mask, weight)
        random = self.chance.random(len(seen)) < explore
        drawn = np.where(environment.mask, self.chance.random(environment.mask.shape), -1.0).argmax(axis=1)
        if environment.advice is not None:
            drawn = np.where(self.chance.random(len(seen)) < self.settings.advised, environment.advice, drawn)
        moves = np.where(random, drawn, moves)
        self._pending.append(Decision(seen, moves, environment.step(moves), weight))
        self.transitions += len(seen)
        if len(self._pending) == self.settings.steps:
            self.replay.add(summed(list(self._pending), self.settings.gamma))

    def greedy(self, seen: np.ndarray, mask: np.ndarray, weight: Floats) -> Integers:
        """(runs,) the allowed action of highest weighted value, by the target network: it swings less."""
        with torch.no_grad():
            values = self.held(torch.from_numpy(np.ascontiguousarray(seen, np.float32))).numpy()
        return best((values * weight[:, None, :]).sum(axis=2), mask)

    def update(self, batch: Transitions) -> float:
        """One gradient step; the loss."""
        seen, moved, gained, after, mask, weight = (torch.from_numpy(array) for array in batch)
        carried = self.settings.gamma**self.settings.steps
        with torch.no_grad():
            held = self.held(after)
            wanted = target(gained, carried, weight, mask, held, self.online(after) if self.settings.double else held)
        said = self.online(seen)[torch.arange(len(moved)), moved]
        loss = (
            huber_loss(said, wanted, reduction="none", delta=self.settings.huber) * weight**self.settings.price_power
        ).mean()
        self._optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.online.parameters(), self.settings.clip)
        self._optimizer.step()
        self.updates += 1
        if self.updates % self.settings.copy_every == 0:
            with torch.no_grad():
                torch._foreach_lerp_(
                    list(self.held.parameters()), list(self.online.parameters()), self.settings.copy_share
                )
        return float(loss.detach())
