"""The KLL sketch: ranks and quantiles of a stream (Karnin, Lang and Liberty, "Optimal quantile approximation", 2016).

Items of level h stand for 2^h values. A level that is too full is sorted and every second item of it, beginning with
the first or the second by a coin, goes one level up; what is left of an odd number stays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from models.replication.approximation.refusal import ApproximationError, refuse_retractions

Floats = NDArray[np.float64]
_SHRINK = 2 / 3
"""Each level holds so much of what the one above it holds."""
_LEAST = 8
"""Items that a level holds at least: the constants of the bound were measured with it."""


@dataclass(frozen=True, eq=False)
class Kll:
    """A sketch of insertions.

    Attributes:
        k: items that the highest level holds.
        levels: items of each level, the lowest one first.
        total: n, values that came.
    """

    k: int
    levels: tuple[Floats, ...] = (np.empty(0),)
    total: int = 0

    def add(self, values: Floats, rng: np.random.Generator, mults: NDArray[np.int64] | None = None) -> Kll:
        """Return the sketch with (n,) values in it; `rng` tosses the coins.

        Raises:
            ApproximationError: a sign is negative, or a value is NaN.
        """
        if mults is not None:
            refuse_retractions("KLL", mults)
        if np.isnan(values).any():
            raise ApproximationError("NaN in a KLL sketch has no rank: leave such values out before")
        added = replace(self, total=self.total + len(values))
        step = max(self.k, 1)
        for begin in range(0, len(values), step):
            low = np.concatenate([added.levels[0], values[begin : begin + step]])
            added = replace(added, levels=_compacted((low, *added.levels[1:]), self.k, rng))
        return added

    def fold(self, k: int, rng: np.random.Generator) -> Kll:
        """Return a smaller sketch of the same values: each level is compacted to what it may hold under k.

        The errors so far stay, and are less than those that the smaller sketch would have made; its bound is measured
        to hold.

        Raises:
            ApproximationError: k is above this one's.
        """
        if k > self.k:
            raise ApproximationError(f"k={k} is above {self.k}: a sketch can only shrink; grow at a window's start")
        return replace(self, k=k, levels=_compacted(self.levels, k, rng))

    @property
    def size(self) -> int:
        """Items that are held."""
        return sum(map(len, self.levels))

    def rank(self, value: float) -> float:
        """Return the share of all values that are at most this one."""
        below = sum(float((items <= value).sum()) * 2**level for level, items in enumerate(self.levels))
        return below / self.total

    def quantile(self, q: float) -> float:
        """Return the least item whose rank reaches q, from 0 to 1.

        Raises:
            ApproximationError: nothing came.
        """
        if not self.total:
            raise ApproximationError("a quantile of no values: ask once there is one")
        items = np.concatenate(self.levels)
        weights = np.concatenate([np.full(len(level), 2.0**h) for h, level in enumerate(self.levels)])
        order = np.argsort(items, kind="stable")
        reached = np.cumsum(weights[order])
        return float(items[order][min(int(np.searchsorted(reached, q * reached[-1])), len(items) - 1)])


def capacity(k: int, below_top: int) -> int:
    """Return the items that a level may hold, `below_top` levels under the highest one: ⌈k·(2/3)^i⌉, at least 8."""
    return max(math.ceil(k * _SHRINK**below_top), _LEAST)


def _compacted(levels: tuple[Floats, ...], k: int, rng: np.random.Generator) -> tuple[Floats, ...]:
    """Levels of which none holds more than it may; the lowest one that does is halved, until there is none."""
    held = list(levels)
    while (full := next((i for i, v in enumerate(held) if len(v) > capacity(k, len(held) - 1 - i)), None)) is not None:
        if full + 1 == len(held):
            held.append(np.empty(0))
        items = np.sort(held[full])
        even = len(items) - len(items) % 2
        held[full + 1] = np.concatenate([held[full + 1], items[:even][int(rng.integers(2)) :: 2]])
        held[full] = items[even:]
    return tuple(held)
