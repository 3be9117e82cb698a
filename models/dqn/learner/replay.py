"""Multi-step transitions, and a replay buffer of the newest of them, from which is drawn uniformly."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.policy.core.capacity import Floats, Integers


class StepReturn(NamedTuple):
    """The outcome of one decision of every run.

    Attributes:
        reward: (runs, K) the reward's parts.
        after: (runs, F) observation that it led to, before any new run begins.
        mask: (runs, A) actions allowed there.
        cut: (runs,) whether a new run begins here: a time limit, no terminal state.
    """

    reward: Floats
    after: np.ndarray
    mask: np.ndarray
    cut: np.ndarray


class Decision(NamedTuple):
    """One decision of every run: observations (runs, F), actions (runs,), outcome, weights of the parts (runs, K)."""

    seen: np.ndarray
    moves: Integers
    outcome: StepReturn
    weight: Floats


class Transitions(NamedTuple):
    """Transitions over one step or several.

    Attributes:
        seen: (B, F) observation.
        moved: (B,) index of the action.
        reward: (B, K) discounted sum of the rewards' parts.
        after: (B, F) observation at the end.
        mask: (B, A) actions allowed there.
        weight: (B, K) worth of the parts.
    """

    seen: NDArray[np.floating]
    moved: NDArray[np.integer]
    reward: NDArray[np.floating]
    after: NDArray[np.floating]
    mask: NDArray[np.bool_]
    weight: NDArray[np.floating]

    def select(self, rows: Any) -> Transitions:
        """Return the transitions that an index, slice or mask selects."""
        return Transitions._make(array[rows] for array in self)


def combine_steps(path: list[Decision], gamma: float) -> Transitions:
    """Combine n successive decisions into one n-step transition per run, its reward `r0 + gamma r1 + gamma^2 r2 + ...`.

    Args:
        path: decisions of the same runs in the order of time, at least one.
        gamma: discount per decision, 0 to 1.

    Returns:
        Transitions, a row per run, from the first observation to the last, with the first's weights; runs that a time
        limit cut before the last decision are left out.

    Raises:
        IndexError: an empty path.
    """
    first, last = path[0], path[-1].outcome
    reward, whole, factor = first.outcome.reward, np.ones(len(first.moves), bool), 1.0
    for before, step in pairwise(path):
        factor *= gamma
        reward = reward + factor * step.outcome.reward
        whole = whole & ~before.outcome.cut
    return Transitions(first.seen, first.moves, reward, last.after, last.mask, first.weight).select(whole)


class ReplayBuffer:
    """A buffer of fixed size; when it is full, the oldest transitions are overwritten."""

    def __init__(self, size: int, features: int, actions: int, parts: int) -> None:
        """Room for `size` transitions."""
        wide = {"seen": features, "reward": parts, "after": features, "weight": parts}
        self._kept = Transitions(
            **{name: np.zeros((size, columns), np.float32) for name, columns in wide.items()},
            moved=np.zeros(size, np.int64), mask=np.zeros((size, actions), bool),
        )  # fmt: skip
        self._size, self._next, self._held = size, 0, 0

    def __len__(self) -> int:
        return self._held

    def add(self, batch: Transitions) -> None:
        """Copy transitions (a row each) into the buffer, over the oldest once it is full; of too many, the last rows.

        Raises:
            ValueError: other numbers of features, actions or parts than the buffer's.
        """
        batch = batch.select(slice(-self._size, None))
        count = len(batch.moved)
        at = (self._next + np.arange(count)) % self._size
        for kept, new in zip(self._kept, batch, strict=True):
            kept[at] = new
        self._next = (self._next + count) % self._size
        self._held = min(self._held + count, self._size)

    def draw(self, count: int, chance: np.random.Generator) -> Transitions:
        """Draw transitions uniformly, with replacement.

        Raises:
            ValueError: the buffer is empty.
        """
        return self._kept.select(chance.integers(self._held, size=count))
