"""Which key a record has: Zipf's law, ranks that drift, and episodes in which a few keys are hot."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.workload.refusal import refuse_unless

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class HotEpisode:
    """A time in which a share of the records goes to a few keys, whatever their rank.

    Attributes:
        at_s: when it begins, seconds since the workload's begin.
        duration_s: how long it lasts.
        share: of the records of that time, 0 to 1.
        keys: to which they go, each as often.
    """

    at_s: float
    duration_s: float
    share: float
    keys: tuple[int, ...] = (0,)


@dataclass(frozen=True)
class KeyShape:
    """How records are spread over keys.

    Attributes:
        keys: how many there are: the ints from 0 on.
        exponent: s of Zipf's law; 0: all are as frequent.
        drift_s: seconds after which ranks drift by a step; 0: never. Before that key 0 has the first rank.
        drift_swaps: neighbouring ranks that change places in a step.
        hot: episodes; where two overlap the later one in this list has its share of both.
    """

    keys: int = 1000
    exponent: float = 1.1
    drift_s: float = 0.0
    drift_swaps: int = 10
    hot: tuple[HotEpisode, ...] = ()

    def __post_init__(self) -> None:
        refuse_unless(self.keys >= 1 and self.exponent >= 0, f"{self.keys=}, {self.exponent=}", "1 or more, 0 or more")
        refuse_unless(self.drift_s >= 0 and self.drift_swaps >= 0, f"{self.drift_s=}, {self.drift_swaps=}", "0 or more")
        for one in self.hot:
            known = bool(one.keys) and all(0 <= key < self.keys for key in one.keys)
            refuse_unless(0 <= one.share <= 1 and known, str(one), f"a share from 0 to 1 and keys below {self.keys}")


def zipf(keys: int, exponent: float) -> Floats:
    """Return the (keys,) probabilities, proportional to 1 / rank**exponent, ranks from 1; they sum to 1."""
    weights = 1.0 / np.arange(1, keys + 1) ** exponent
    return np.asarray(weights / weights.sum(), dtype=np.float64)


def draw_keys(
    shape: KeyShape, times_s: Floats, ranks: np.random.Generator, drift: np.random.Generator, hot: np.random.Generator
) -> Ints:
    """Return (N,) keys of records at (N,) seconds since the begin, in order.

    Args:
        shape: how they are spread.
        times_s: not falling.
        ranks: draws each record's rank.
        drift: draws which ranks change places.
        hot: draws which records an episode takes, and to which of its keys.
    """
    drawn = ranks.choice(shape.keys, size=len(times_s), p=zipf(shape.keys, shape.exponent))
    keys = _drifted(shape, times_s, drawn, drift) if shape.drift_s > 0 and len(times_s) else drawn
    for one in shape.hot:
        chosen, of = hot.random(len(times_s)), hot.integers(len(one.keys), size=len(times_s))
        within = (times_s >= one.at_s) & (times_s < one.at_s + one.duration_s) & (chosen < one.share)
        keys = np.where(within, np.array(one.keys)[of], keys)
    return keys.astype(np.int64)


def _drifted(shape: KeyShape, times_s: Floats, ranks: Ints, drift: np.random.Generator) -> Ints:
    """The keys that have these ranks at their times."""
    steps = (times_s // shape.drift_s).astype(np.int64)
    edges = np.searchsorted(steps, np.arange(int(steps[-1]) + 2))
    key_of, keys = np.arange(shape.keys), np.empty(len(ranks), dtype=np.int64)
    for step in range(int(steps[-1]) + 1):
        if step and shape.keys > 1:
            for rank in drift.integers(shape.keys - 1, size=shape.drift_swaps).tolist():
                key_of[[rank, rank + 1]] = key_of[[rank + 1, rank]]
        part = slice(edges[step], edges[step + 1])
        keys[part] = key_of[ranks[part]]
    return keys
