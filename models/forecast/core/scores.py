"""How good a forecast was: pure functions; pairs whose outcome is NaN do not count, and without any a score is NaN."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from models.forecast.core.series import Floats


def rmse(actual: Floats, predicted: Floats) -> float:
    """Root of the mean squared error, in the unit of the values; NaN without a pair."""
    return math.sqrt(_mean((predicted - actual)[np.isfinite(actual)] ** 2))


def mae(actual: Floats, predicted: Floats) -> float:
    """Mean absolute error, in the unit of the values; NaN without a pair."""
    return _mean(np.abs(predicted - actual)[np.isfinite(actual)])


def wape(actual: Floats, predicted: Floats) -> float:
    """Σ|y − ŷ| ÷ Σ|y|, a share; NaN without a pair or where every outcome is 0."""
    known = np.isfinite(actual)
    total = float(np.abs(actual[known]).sum())
    return float(np.abs(predicted[known] - actual[known]).sum()) / total if total else math.nan


def smape_sum(actual: Floats, predicted: Floats) -> float:
    """100/n · Σ |y − ŷ| / (|y| + |ŷ|), per cent, 0 to 100; a term 0/0 counts as 0, NaN without a pair.

    The formula as the paper of the source forecasters prints it, without the factor ½ under the fraction.
    """
    known = np.isfinite(actual)
    error, size = np.abs(actual - predicted)[known], (np.abs(actual) + np.abs(predicted))[known]
    return 100 * _mean(np.divide(error, size, out=np.zeros_like(size), where=size > 0))


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
    error = actual[known][:, None] - quantiles[known]
    level = np.asarray(levels)
    return _mean(np.maximum(level * error, (level - 1) * error))


def coverage(actual: Floats, upper: Floats) -> float:
    """Share of outcomes at or under a quantile; the quantile's own level is what it should be. NaN without a pair."""
    return _mean((actual <= upper)[np.isfinite(actual)])


def covered(actual: Floats, lower: Floats, upper: Floats) -> float:
    """Share of outcomes within an interval, its ends included; NaN without a pair."""
    return _mean(((lower <= actual) & (actual <= upper))[np.isfinite(actual)])


def skill(error: float, reference: float) -> float:
    """1 − error ÷ reference: 0 is as good as the reference, 1 is perfect; NaN where the reference made no error."""
    return 1 - error / reference if reference > 0 else math.nan


def _mean(values: Floats | NDArray[np.bool_]) -> float:
    return float(np.mean(values)) if values.size else math.nan
