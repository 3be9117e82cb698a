"""What a placement is worth: its latency against another one, and how near its load is to a target.

Pa-Stream paper, eq. 19 to 22.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from models.placement.graph import Floats

TARGET_LOAD, MOST_LOAD = 0.8, 3.0
"""Load that is best (delta), and above which none is told apart."""


class PlacementOutcome(NamedTuple):
    """What a placement comes to.

    Attributes:
        latency_ms: mean of the records (Y).
        load: (m,) of each operator (U).
    """

    latency_ms: float
    load: Floats

    @property
    def mean_load(self) -> float:
        """Mean of the operators' loads (Z)."""
        return float(self.load.mean())


class RewardWeights(NamedTuple):
    """How latency and load are weighed.

    Attributes:
        latency: weight of the reward for latency (b).
        load: likewise (c).
        scale_ms: difference of latency that is half as bad as any (s); the paper's is 1, where latencies are seconds
            the limit is useful (`queries.weights_of`).
    """

    latency: float = 0.6
    load: float = 0.4
    scale_ms: float = 1.0

    def reward(self, before: PlacementOutcome, after: PlacementOutcome) -> float:
        """Return the reward of going from one placement to another (eq. 22).

        From the placement in force it is the other's score; that of the one in force is what its load is worth.
        """
        return self.score(after.latency_ms - before.latency_ms, after.mean_load)

    def score(self, more_ms: float, load: float) -> float:
        """Return what a latency that is higher by `more_ms` than before, and a mean load, are worth together."""
        return self.latency * latency_reward(more_ms, self.scale_ms) + self.load * load_reward(load)


def latency_reward(more_ms: float, scale_ms: float) -> float:
    """Return -(2 ÷ pi) arctan(more ÷ scale): above 0 where the latency falls (eq. 19); in (-1, 1)."""
    return float(-2 / np.pi * np.arctan(more_ms / scale_ms)) if np.isfinite(more_ms) else -float(np.sign(more_ms))


def load_reward(load: float) -> float:
    """Return 1 - (load - 0.8)^2, of a load of at most 3 (eq. 20)."""
    return 1 - (min(load, MOST_LOAD) - TARGET_LOAD) ** 2
