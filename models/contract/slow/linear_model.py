"""A job's response to its controls, learned while it runs: y(t+1) ≈ A·y(t) + B·x(t).

Unified batch-stream runtime paper, eq. 6.2; recursive least squares with forgetting (Ljung, "System Identification",
1999, ch. 11). It steers nothing: its coefficients say how sensitive each signal is to each control, and its errors when
the job has become another one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FORGETTING = 0.98
"""What the past counts after each interval."""
FIRST = 20
"""Intervals before which no drift is reported, more by two per input."""
SLACK, ALARM = 2.0, 8.0
"""Of a CUSUM of the errors in their own deviations (Page 1954): what passes for noise, and the sum that is an alarm."""
_WIDEST = 3.0  # deviations: a larger error counts as this one in the noise
_LEAST_NOISE = 1e-12  # of the outputs' squares: rounding of what fits exactly
_MOST_TRACE = 1e8  # of P: what is never excited is not forgotten further


@dataclass(frozen=True, eq=False)
class LinearModel:
    """A linear model with as many inputs φ = (y, x) as it was begun with.

    Attributes:
        weights: Θ, (inputs, outputs); row j says how each output moves with input j.
        spread: P, (inputs, inputs).
        noise: (outputs,) variance of the errors.
        excess: (outputs,) CUSUM of the errors.
        count: intervals learned from since the beginning or the newest alarm.
        alarm: whether the newest interval told of a drift.
    """

    weights: Floats
    spread: Floats
    noise: Floats
    excess: Floats
    count: int = 0
    alarm: bool = False

    @classmethod
    def begin(cls, inputs: int, outputs: int, spread: float = 1.0) -> LinearModel:
        """Start from zero weights; `spread` is the variance that they may have."""
        return cls(np.zeros((inputs, outputs)), spread * np.eye(inputs), np.zeros(outputs), np.zeros(outputs))

    def predict(self, inputs: Floats) -> Floats:
        """Return (outputs,) values for (inputs,) values."""
        expected: Floats = inputs @ self.weights
        return expected


def gain(model: LinearModel, inputs: Floats) -> Floats:
    """Return K = Pφ/(f + φᵀPφ), (inputs,)."""
    spread: Floats = model.spread @ inputs
    return spread / (FORGETTING + inputs @ spread)


def learn(model: LinearModel, inputs: Floats, outputs: Floats) -> LinearModel:
    """Return the model after an interval: Θ += K(y − φᵀΘ), P = (P − KφᵀP)/f.

    After an alarm it forgets as much as it did at the beginning, so that it soon follows the job as it is now.

    Args:
        model: so far.
        inputs: φ, (inputs,); with a value that is not finite nothing is learned.
        outputs: y, (outputs,), of the interval after; likewise.
    """
    if not (np.isfinite(inputs).all() and np.isfinite(outputs).all()):
        return replace(model, alarm=False)
    error, by = outputs - model.predict(inputs), gain(model, inputs)
    weights = model.weights + np.outer(by, error)
    left = model.spread - np.outer(by, inputs @ model.spread)
    spread = (left + left.T) / 2
    if np.trace(spread) < _MOST_TRACE:
        spread = spread / FORGETTING
    warm = model.count >= FIRST + 2 * len(inputs)
    floor = _LEAST_NOISE * (1 + outputs**2)
    size = np.abs(error) / np.sqrt(np.maximum(model.noise, floor))
    excess = np.maximum(model.excess + size - SLACK, 0.0) if warm else model.excess
    counted = np.minimum(size, _WIDEST) ** 2 * np.maximum(model.noise, floor) if warm else error**2
    share = max(1 - FORGETTING, 1 / max(model.count + 1 - 2 * len(inputs), 1))  # the first tell what was not known
    noise = (1 - share) * model.noise + share * counted
    if (excess > ALARM).any():
        widened = spread * max(math.sqrt(_MOST_TRACE) / max(float(np.trace(spread)), 1.0), 1.0)
        return LinearModel(weights, widened, noise, np.zeros_like(excess), 0, True)
    return LinearModel(weights, spread, noise, excess, model.count + 1)
