"""What yesterday's errors say of today's: a forecast that missed the day's course once will miss it again.

With one day of history no regression can learn what yesterday is worth, for no row has a yesterday. A source that has
weeks can: its rule is the prior, and the target's own rows move away from it as they come.
"""

from __future__ import annotations

import numpy as np

from models.forecast.core.series import Floats

HALF_WIDTHS = (0, 2, 6, 18)
"""Steps around the same time yesterday over which errors are averaged, one input each."""
TRUST = 36.0
"""Rows the prior weighs along directions that have been seen, and again in all directions alike."""
SPIKE = 3.0
"""Deviations beyond which an error counts no further: one spike is no habit."""
HABIT = 0.3
"""A source under this share of yesterday's errors coming again has no daily habit to teach."""


def inputs(errors: Floats, day: int) -> Floats:
    """(T, p, 4) means of yesterday's errors around the same time, known at each origin; 0 where nothing is known.

    Args:
        errors: (T, p) outcome minus forecast h steps after each origin; NaN where there is none.
        day: steps per day.
    """
    steps, horizon = errors.shape
    known = np.isfinite(errors)
    total = np.vstack([np.zeros(horizon), np.cumsum(np.where(known, errors, 0.0), axis=0)])
    count = np.vstack([np.zeros(horizon), np.cumsum(known, axis=0)])
    at = np.arange(steps)
    means = []
    for half in HALF_WIDTHS:
        begin = np.clip(at - day - half, 0, None)
        end = np.clip(np.minimum(at - day + half + 1, at - horizon + 1), 0, None)
        begin = np.minimum(begin, end)
        means.append((total[end] - total[begin]) / np.maximum(count[end] - count[begin], 1))
    return np.stack(means, axis=-1)


def rule(errors: Floats, day: int) -> Floats:
    """(4,) weights of `inputs` by least squares on a source's own (T, p) errors; 0 where it has no daily habit."""
    scaled = np.clip(errors / _deviation(errors), -SPIKE, SPIKE)
    x = inputs(scaled, day)
    kept = np.isfinite(scaled).all(axis=1) & (np.arange(len(scaled)) >= 2 * day)
    if kept.sum() < day:
        return np.zeros(len(HALF_WIDTHS))
    rows, came = x[kept].reshape(-1, x.shape[-1]), scaled[kept].ravel()
    gram = rows.T @ rows
    weights: Floats = np.linalg.solve(gram + 0.01 * np.trace(gram) / len(gram) * np.eye(len(gram)), rows.T @ came)
    return weights if weights.sum() >= HABIT else np.zeros_like(weights)


def corrections(errors: Floats, day: int, prior: Floats) -> Floats:
    """(T, p) what to add to the forecast at each origin, from errors known by then.

    The weights are θ(t) = (S + P)⁻¹(b + P·prior) with S = Σ xxᵀ and b = Σ x·e over what is known at t, and the prior's
    weight P = TRUST/k · (S + trace(S)/4 · I) after k rows: with a prior of 0 nothing is corrected before rows speak.

    Args:
        errors: (T, p) outcome minus forecast; NaN where there is none (yet).
        day: steps per day.
        prior: (4,) weights to begin with.
    """
    steps, horizon = errors.shape
    deviation = _deviation(errors[: max(day - HALF_WIDTHS[-1] - horizon, 1)])  # known before any row has inputs
    scaled = np.clip(errors / deviation, -SPIKE, SPIKE)
    x = inputs(scaled, day)
    counts = np.isfinite(scaled).all(axis=1) & (x != 0).any(axis=(1, 2))
    e, seen = np.where(counts[:, None], scaled, 0.0), np.where(counts[:, None, None], x, 0.0)
    s = np.cumsum(np.einsum("thw,thv->twv", seen, seen), axis=0) / horizon
    b = np.cumsum(np.einsum("thw,th->tw", seen, e), axis=0) / horizon
    rows = np.cumsum(counts)
    weights = np.tile(prior, (steps, 1))
    for at in range(horizon, steps):
        k = rows[at - horizon]  # an error h steps ahead is known h steps later
        if k:
            gram, size = s[at - horizon], len(prior)
            trust = TRUST / k * (gram + np.trace(gram) / size * np.eye(size))
            weights[at] = np.linalg.solve(gram + trust + 1e-9 * np.eye(size), b[at - horizon] + trust @ prior)
    return np.asarray(np.einsum("thw,tw->th", x, weights) * deviation)


def _deviation(errors: Floats) -> Floats:
    """(p,) root mean square per horizon; 1 where nothing is known."""
    known = np.isfinite(errors)
    squares = np.where(known, errors, 0.0) ** 2
    mean = squares.sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    return np.where(mean > 0, np.sqrt(mean), 1.0)
