"""How much later than it happened a record comes, and when it is taken back."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from models.workload.refusal import refuse_unless

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class DisorderShape:
    """Delays and retractions.

    Attributes:
        disordered: share of records that come later than they happened, 0 to 1.
        median_ms: of their delay before it is cut; log-normal.
        sigma: standard deviation of its logarithm.
        most_ms: largest delay.
        retracted: share of records that are taken back, 0 to 1.
        retract_ms: mean time until then; exponential.
    """

    disordered: float = 0.0
    median_ms: float = 1_000.0
    sigma: float = 1.0
    most_ms: float = 60_000.0
    retracted: float = 0.0
    retract_ms: float = 30_000.0

    def __post_init__(self) -> None:
        for name, share in (("disordered", self.disordered), ("retracted", self.retracted)):
            refuse_unless(0 <= share <= 1, f"{name}={share}", "a share from 0 to 1")
        sizes = (self.median_ms, self.sigma, self.most_ms, self.retract_ms)
        refuse_unless(min(sizes) > 0, f"median_ms, sigma, most_ms, retract_ms={sizes}", "numbers above 0")


def draw_delays(shape: DisorderShape, n: int, rng: np.random.Generator) -> Ints:
    """Return (n,) delays, ms: 0, or log-normal under the condition that it is at most `most_ms`."""
    late, place = rng.random(n) < shape.disordered, rng.random(n)
    highest = ndtr(math.log(shape.most_ms / shape.median_ms) / shape.sigma)
    delays: Floats = shape.median_ms * np.exp(shape.sigma * ndtri(place * highest))
    return np.where(late, np.minimum(np.rint(delays), math.floor(shape.most_ms)), 0).astype(np.int64)


def draw_retractions(shape: DisorderShape, n: int, rng: np.random.Generator) -> tuple[NDArray[np.bool_], Ints]:
    """Return which of n records are taken back, and after how many ms each of all n would be, at least 1."""
    taken, after = rng.random(n) < shape.retracted, rng.exponential(shape.retract_ms, n)
    return taken, np.maximum(np.rint(after), 1).astype(np.int64)
