"""How good a forecast was: pure functions; pairs whose outcome is NaN do not count."""

from __future__ import annotations

import numpy as np

from models.forecast.core.series import Floats


def rmse(actual: Floats, predicted: Floats) -> float:
    """Root of the mean squared error, in the unit of the values; NaN without a pair."""
    error = (predicted - actual)[np.isfinite(actual)]
    return float(np.sqrt(np.mean(error**2))) if error.size else float("nan")


def mae(actual: Floats, predicted: Floats) -> float:
    """Mean absolute error, in the unit of the values; NaN without a pair."""
    error = (predicted - actual)[np.isfinite(actual)]
    return float(np.mean(np.abs(error))) if error.size else float("nan")


def wape(actual: Floats, predicted: Floats) -> float:
    """Σ|y − ŷ| ÷ Σ|y|, a share; NaN without a pair or where every outcome is 0."""
    known = np.isfinite(actual)
    total = float(np.abs(actual[known]).sum())
    return float(np.abs(predicted[known] - actual[known]).sum()) / total if total else float("nan")


def smape_sum(actual: Floats, predicted: Floats) -> float:
    """100/n · Σ |y − ŷ| / (|y| + |ŷ|), per cent, 0 to 100; a term 0/0 counts as 0, NaN without a pair.

    The formula as the paper of the source forecasters prints it, without the factor ½ under the fraction.
    """
    known = np.isfinite(actual)
    if not known.any():
        return float("nan")
    y, said = actual[known], predicted[known]
    size = np.abs(y) + np.abs(said)
    return float(100 * np.mean(np.divide(np.abs(y - said), size, out=np.zeros_like(size), where=size > 0)))


def smape_half(actual: Floats, predicted: Floats) -> float:
    """100/n · Σ |y − ŷ| / ((|y| + |ŷ|)/2), per cent, 0 to 200: the usual form, and twice `smape_sum`."""
    return 2 * smape_sum(actual, predicted)


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


def covered(actual: Floats, lower: Floats, upper: Floats) -> float:
    """Share of outcomes within an interval, its ends included; NaN without a pair."""
    known = np.isfinite(actual)
    inside = (lower[known] <= actual[known]) & (actual[known] <= upper[known])
    return float(np.mean(inside)) if known.any() else float("nan")


def skill(error: float, reference: float) -> float:
    """1 − error ÷ reference: 0 is as good as the reference, 1 is perfect; NaN where the reference made no error."""
    return 1 - error / reference if reference > 0 else float("nan")
