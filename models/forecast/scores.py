"""How good a forecast was: pure functions; pairs whose outcome is NaN do not count."""

from __future__ import annotations

import numpy as np

from models.forecast.series import Floats


def rmse(actual: Floats, predicted: Floats) -> float:
    """Root of the mean squared error, in the unit of the values; NaN without a pair."""
    error = (predicted - actual)[np.isfinite(actual)]
    return float(np.sqrt(np.mean(error**2))) if error.size else float("nan")


def mae(actual: Floats, predicted: Floats) -> float:
    """Mean absolute error, in the unit of the values; NaN without a pair."""
    error = (predicted - actual)[np.isfinite(actual)]
    return float(np.mean(np.abs(error))) if error.size else float("nan")


def pinball(actual: Floats, quantiles: Floats, levels: tuple[float, ...]) -> float:
    """Mean pinball loss over pairs and levels: max(q·(y − ŷ), (q − 1)·(y − ŷ)) (Koenker and Bassett 1978).

    Args:
        actual: (...,) outcomes.
        quantiles: (..., levels) forecasts.
        levels: (levels,) each in (0, 1).
    """
    known = np.isfinite(actual)
    if not known.any():
        return float("nan")
    error = actual[known][:, None] - quantiles[known]
    level = np.asarray(levels)
    return float(np.mean(np.maximum(level * error, (level - 1) * error)))


def coverage(actual: Floats, upper: Floats) -> float:
    """Share of outcomes at or under a quantile; the quantile's own level is what it should be. NaN without a pair."""
    known = np.isfinite(actual)
    return float(np.mean(actual[known] <= upper[known])) if known.any() else float("nan")
