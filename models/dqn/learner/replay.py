"""The replay buffer: the newest transitions as arrays, drawn from uniformly."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Transitions(NamedTuple):
    """Transitions over one step or several.

    Attributes:
        seen: (B, F) observation.
        moved: (B,) index of the action.
        gained: (B, K) discounted sum of the rewards' parts.
        after: (B, F) observation at the end.
        mask: (B, A) actions allowed there.
        carried: (B,) what a value there is discounted with: gamma to the number of steps, 0 after a terminal state.
        weight: (B, K) worth of the parts.
    """

    seen: NDArray[np.floating]
    moved: NDArray[np.integer]
    gained: NDArray[np.floating]
    after: NDArray[np.floating]
    mask: NDArray[np.bool_]
    carried: NDArray[np.floating]
    weight: NDArray[np.floating]


def picked(batch: Transitions, rows: Any) -> Transitions:
    """Some of the transitions, by index, slice or mask."""
    return Transitions._make(array[rows] for array in batch)


class ReplayBuffer:
    """First in, first out."""

    def __init__(self, size: int, features: int, actions: int, parts: int) -> None:
        """Room for `size` transitions."""
        self._kept = Transitions(
            np.zeros((size, features), np.float32), np.zeros(size, np.int64), np.zeros((size, parts), np.float32),
            np.zeros((size, features), np.float32), np.zeros((size, actions), bool), np.zeros(size, np.float32),
            np.zeros((size, parts), np.float32),
        )  # fmt: skip
        self._size, self._next, self._held = size, 0, 0

    def __len__(self) -> int:
        return self._held

    def add(self, batch: Transitions) -> None:
        """Keep transitions; the oldest go."""
        count = len(batch.moved)
        if count > self._size:
            batch = picked(batch, slice(-self._size, None))
            count = self._size
        at = (self._next + np.arange(count)) % self._size
        for kept, new in zip(self._kept, batch, strict=True):
            kept[at] = new
        self._next = (self._next + count) % self._size
        self._held = min(self._held + count, self._size)

    def draw(self, count: int, chance: np.random.Generator) -> Transitions:
        """So many, each equally likely, with replacement."""
        at = chance.integers(self._held, size=count)
        return picked(self._kept, at)
