"""Samples: a reservoir of fixed size, and Bernoulli samples of a fixed rate; with what may be said from them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from models.replication.approximation.refusal import ApproximationError, refuse_retractions
from tidecast.signed.approximate.bounds import check_share, deviations

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Reservoir:
    """A sample of k of n insertions, all equally likely to be in it (Vitter's algorithm R, 1985).

    Attributes:
        k: most values that are kept.
        values: (min(k, n),).
        total: n, values that came.
    """

    k: int
    values: Floats
    total: int = 0

    @classmethod
    def empty(cls, k: int) -> Reservoir:
        """Return a reservoir of nothing.

        Raises:
            ApproximationError: k is below 1.
        """
        if k < 1:
            raise ApproximationError(f"k={k} of a reservoir: give 1 or more")
        return cls(k, np.empty(0))

    def add(self, values: Floats, rng: np.random.Generator, mults: NDArray[np.int64] | None = None) -> Reservoir:
        """Return the reservoir after (n,) values.

        Raises:
            ApproximationError: a sign is negative.
        """
        if mults is not None:
            refuse_retractions("reservoir", mults)
        fill = max(self.k - len(self.values), 0)
        kept = np.concatenate([self.values, values[:fill]])
        rest = values[fill:]
        # The i-th value takes a place drawn from the first i ones, if that is within the reservoir.
        places = rng.integers(0, self.total + fill + 1 + np.arange(len(rest)))
        for place, value in zip(places.tolist(), rest.tolist(), strict=True):
            if place < self.k:
                kept[place] = value
        return replace(self, values=kept, total=self.total + len(values))

    def fold(self, k: int, rng: np.random.Generator) -> Reservoir:
        """Return a reservoir of k at most: a sample of this one.

        Raises:
            ApproximationError: k is above this one's, or below 1.
        """
        if not 1 <= k <= self.k:
            raise ApproximationError(f"k={k}, from {self.k}: a reservoir can only shrink; grow at a window's start")
        kept = self.values if len(self.values) <= k else rng.choice(self.values, k, replace=False)
        return replace(self, k=k, values=kept)

    def mean(self, pf: float) -> tuple[float, float]:
        """Return the mean and its error, deviations(pf)·s/√k·√(1 − k/n); infinite for fewer than two values."""
        size = len(self.values)
        if size < 2:
            return (float(self.values.mean()) if size else math.nan), (0.0 if size == self.total == 1 else math.inf)
        spread = mean_deviation(float(self.values.std(ddof=1)), size, self.total)
        return float(self.values.mean()), deviations(pf) * spread


def mean_deviation(deviation: float, k: int, n: float = math.inf) -> float:
    """Return the standard deviation of a mean of k of n values, s/√k·√(1 − k/n)."""
    return deviation / math.sqrt(k) * math.sqrt(max(1 - k / n, 0.0))


def proportion_error(k: int, pf: float, n: float = math.inf) -> float:
    """Return the largest error of a share, known from k of n values: deviations(pf)·0.5/√k·√(1 − k/n)."""
    return deviations(pf) * mean_deviation(0.5, k, n)


def proportion_size(eps: float, pf: float) -> int:
    """Return the least k with which a share is wrong by at most `eps`."""
    return math.ceil((deviations(pf) * 0.5 / check_share("eps", eps)) ** 2)


def count_deviation(rate: float, n: float) -> float:
    """Return the relative standard deviation of a count n from a Bernoulli sample, √((1 − r)/(r·n))."""
    return math.sqrt((1 - rate) / (rate * n))


def sampling_rate(eps_rel: float, pf: float, n: float) -> float:
    """Return the least rate with which a count of n has at most this relative error, by the normal distribution."""
    scaled = n * (check_share("eps_rel", eps_rel) / deviations(pf)) ** 2
    return 1 / (1 + scaled)


def thin(kept: Floats, rate: float, lower: float, rng: np.random.Generator) -> Floats:
    """Return a Bernoulli sample of a lower rate: each value of one of `rate` stays with lower/rate.

    Raises:
        ApproximationError: it is not lower.
    """
    if not 0 < lower <= rate:
        raise ApproximationError(f"rate {lower}, from {rate}: a sample can only be thinned; grow at a window's start")
    return kept[rng.random(len(kept)) < lower / rate]


def join_recall(similarity: float, rows: int, bands: int) -> float:
    """Return the recall of a similarity join by locality sensitive hashing, 1 − (1 − s^k)^L (Indyk and Motwani 1998).

    Args:
        similarity: s, of a pair, 0 to 1.
        rows: k, hashes per band.
        bands: L.
    """
    return float(1 - (1 - similarity**rows) ** bands)
