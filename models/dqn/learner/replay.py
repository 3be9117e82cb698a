"""Transitions over several steps, and the replay buffer: the newest of them as arrays, drawn from uniformly."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.policy.core.capacity import Floats, Integers


class StepReturn(NamedTuple):
    """What came of one decision of every run.

    Attributes:
        gained: (runs, K) the reward's parts.
        after: (runs, F) observation it led to, before any new beginning.
        mask: (runs, A) actions allowed there.
        cut: (runs,) whether the run begins anew from here: a time limit, no terminal state.
    """

    gained: Floats
    after: np.ndarray
    mask: np.ndarray
    cut: np.ndarray


class Decision(NamedTuple):
    """One decision of every run: observations (runs, F), moves (runs,), what came of it, worth of the parts."""

    seen: np.ndarray
    moves: Integers
    outcome: StepReturn
    weight: Floats


class Transitions(NamedTuple):
    """Transitions over one step or several.

    Attributes:
        seen: (B, F) observation.
        moved: (B,) index of the action.
        gained: (B, K) discounted sum of the rewards' parts.
        after: (B, F) observation at the end.
        mask: (B, A) actions allowed there.
        weight: (B, K) worth of the parts.
    """

    seen: NDArray[np.floating]
    moved: NDArray[np.integer]
    gained: NDArray[np.floating]
    after: NDArray[np.floating]
    mask: NDArray[np.bool_]
    weight: NDArray[np.floating]

    def some(self, rows: Any) -> Transitions:
        """Some of them, by index, slice or mask."""
        return Transitions._make(array[rows] for array in self)


def summed(path: list[Decision], gamma: float) -> Transitions:
    """Transitions from the first state of a path to its last; runs that began anew on the way are left out."""
    first, last = path[0], path[-1].outcome
    gained, whole, factor = first.outcome.gained, np.ones(len(first.moves), bool), 1.0
    for before, step in pairwise(path):
        factor *= gamma
        gained = gained + factor * step.outcome.gained
        whole = whole & ~before.outcome.cut
    return Transitions(first.seen, first.moves, gained, last.after, last.mask, first.weight).some(whole)


class ReplayBuffer:
    """First in, first out."""

    def __init__(self, size: int, features: int, actions: int, parts: int) -> None:
        """Room for `size` transitions."""
        wide = {"seen": features, "gained": parts, "after": features, "weight": parts}
        self._kept = Transitions(
            **{name: np.zeros((size, columns), np.float32) for name, columns in wide.items()},
            moved=np.zeros(size, np.int64), mask=np.zeros((size, actions), bool),
        )  # fmt: skip
        self._size, self._next, self._held = size, 0, 0

    def __len__(self) -> int:
        return self._held

    def add(self, batch: Transitions) -> None:
        """Keep transitions; the oldest go."""
        batch = batch.some(slice(-self._size, None))
        count = len(batch.moved)
        at = (self._next + np.arange(count)) % self._size
        for kept, new in zip(self._kept, batch, strict=True):
            kept[at] = new
        self._next = (self._next + count) % self._size
        self._held = min(self._held + count, self._size)

    def draw(self, count: int, chance: np.random.Generator) -> Transitions:
        """So many, each equally likely, with replacement."""
        return self._kept.some(chance.integers(self._held, size=count))
