"""How errors of a load's forecast hang together over its steps: a Gaussian copula fitted to past errors.

A forecaster states quantiles per step and says nothing of how steps err together; yet the finishing time of a backfill
is a sum over steps. Assumption: the normal scores of what came, z = Φ⁻¹(F(value)) with F the step's forecast
distribution, are jointly normal. Their mean and covariance over steps are fitted to past forecasts, so that a
forecaster whose quantiles are too narrow, or lie off, is corrected, too. Few forecasts that overlap in time say little
of K·(K + 1)/2 numbers: the covariance is shrunk to one that falls with the distance of two steps, ρ^|i − j|.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from models.policy.core.capacity import Floats

FURTHEST = 4.0
"""Normal score beyond which nothing is told apart."""
WEIGHT = 20.0
"""Independent forecasts that the shrunk form weighs as much as."""
UNKNOWN_HOLD = 0.9
"""Correlation of neighbouring steps where no past is known."""
WIDEST = 3.0
"""Most that deviations are corrected by, and the inverse of the least."""


@dataclass(frozen=True, eq=False)
class JointErrors:
    """Normal scores of forecast errors over the steps ahead.

    Attributes:
        mean: (K,) of the scores; 0 where the medians are right.
        root: (K, K) lower triangle whose product with its transpose is their covariance.
    """

    mean: Floats
    root: Floats

    def draw(self, normals: Floats) -> Floats:
        """Turn (S, K) independent standard normals into (S, K) scores."""
        scores: Floats = self.mean + normals @ self.root.T
        return scores

    def head(self, steps: int) -> JointErrors:
        """Return the same for the first steps alone."""
        return JointErrors(self.mean[:steps], self.root[:steps, :steps])


def unknown_errors(steps: int, hold: float = UNKNOWN_HOLD) -> JointErrors:
    """Return what is assumed without a past: quantiles are right, and steps i and j are correlated by hold^|i − j|."""
    root = np.asarray(np.linalg.cholesky(_falling(steps, hold) + 1e-9 * np.eye(steps)), np.float64)
    return JointErrors(np.zeros(steps), root)


def normal_scores(values: Floats, quantiles: Floats, levels: tuple[float, ...]) -> Floats:
    """Return Φ⁻¹(F(value)), F between the quantiles linear in the normal score, beyond them along the last slope.

    Args:
        values: (...) what came.
        quantiles: (..., L) rising forecasts of it, at least two levels.
        levels: (L,) of them.

    Returns:
        (...) scores, clipped to ±`FURTHEST`.
    """
    at = ndtri(np.array(levels))
    # Equal quantiles would divide by zero; a difference far below what matters parts them.
    apart = 1e-6 * (np.abs(quantiles[..., -1:]) + 1e-9) * np.arange(len(levels))
    rising = np.maximum.accumulate(quantiles, axis=-1) + apart
    place = np.clip((rising <= values[..., None]).sum(axis=-1) - 1, 0, len(levels) - 2)[..., None]
    low, high = (np.take_along_axis(rising, place + side, axis=-1)[..., 0] for side in (0, 1))
    left, right = at[place[..., 0]], at[place[..., 0] + 1]
    return np.clip(left + (values - low) / (high - low) * (right - left), -FURTHEST, FURTHEST)


def rates_of(scores: Floats, quantiles: Floats, levels: tuple[float, ...]) -> Floats:
    """Return the rates at (S, K) normal scores under (K, L) quantiles, the inverse of `normal_scores`; at least 0."""
    at = ndtri(np.array(levels))
    rising = np.maximum.accumulate(quantiles, axis=-1)
    place = np.clip(np.searchsorted(at, scores) - 1, 0, len(levels) - 2)
    steps = np.arange(rising.shape[0])
    low, high = rising[steps, place], rising[steps, place + 1]
    share = (scores - at[place]) / (at[place + 1] - at[place])
    return np.maximum(low + share * (high - low), 0.0)


def fit_errors(scores: Floats, independent: float) -> JointErrors:
    """Fit mean and covariance to past scores, shrunk by how little overlapping forecasts say.

    Args:
        scores: (N, K) normal scores of past forecasts; rows with NaN are left out.
        independent: how many of the N count as independent, such as the seconds that they span ÷ those they reach.

    Returns:
        Their joint distribution; `unknown_errors` where fewer than two rows are left.
    """
    known = scores[np.isfinite(scores).all(axis=1)]
    steps = scores.shape[1]
    if len(known) < 2 or independent <= 0:
        return unknown_errors(steps)
    trust = independent / (independent + WEIGHT)
    # Bias and width are two numbers per step that all pasts share, of which far fewer would do.
    mean = known.mean(axis=0) * independent / (independent + WEIGHT / 4)
    wide = np.clip(np.sqrt(((known - mean) ** 2).mean(axis=0)), 1 / WIDEST, WIDEST)
    wide = np.exp(np.log(wide) * independent / (independent + WEIGHT / 4))
    each = (known - known.mean(axis=0)) / np.maximum(known.std(axis=0), 1e-9)
    found = each.T @ each / len(each)
    near = float(np.clip(np.diagonal(found, 1).mean(), 0.0, 0.999)) if steps > 1 else 0.0
    hold = trust * near + (1 - trust) * UNKNOWN_HOLD
    mixed = trust * found + (1 - trust) * _falling(steps, hold)
    np.fill_diagonal(mixed, 1.0)
    low, turned = np.linalg.eigh(mixed)
    whole = turned @ np.diag(np.maximum(low, 1e-9)) @ turned.T
    return JointErrors(mean, np.linalg.cholesky(wide[:, None] * whole * wide + 1e-9 * np.eye(steps)))


def _falling(steps: int, hold: float) -> Floats:
    at = np.arange(steps)
    found: Floats = np.asarray(hold ** np.abs(at[:, None] - at[None, :]).astype(float), np.float64)
    return found
