"""Forecast scores as pure functions.

Pairs whose outcome is not finite are left out; without any pair a score is NaN. A forecast that is NaN beside a known
outcome makes a mean NaN. Arrays whose shapes do not fit raise numpy's ValueError or IndexError.
"""

from __future__ import annotations

import math

import numpy as np

from models.forecast.core.series import Floats


def rmse(actual: Floats, predicted: Floats) -> float:
    """Return the root mean squared error, in the unit of the values; NaN without a pair or where a forecast is NaN."""
    return math.sqrt(_mean((predicted - actual)[np.isfinite(actual)] ** 2))


def mae(actual: Floats, predicted: Floats) -> float:
    """Return the mean absolute error, in the unit of the values; NaN without a pair."""
    return _mean(np.abs(predicted - actual)[np.isfinite(actual)])


def wape(actual: Floats, predicted: Floats) -> float:
    """Return the weighted absolute percentage error Σ|y − ŷ| ÷ Σ|y| as a share, 1 = 100 %.

    Returns:
        NaN without a pair or where every outcome is 0.
    """
    known = np.isfinite(actual)
    total = float(np.abs(actual[known]).sum())
    return float(np.abs(predicted[known] - actual[known]).sum()) / total if total else math.nan


def smape_sum(actual: Floats, predicted: Floats) -> float:
    """Return 100/n · Σ |y − ŷ| / (|y| + |ŷ|) in per cent, 0 to 100: sMAPE without the factor ½ in the denominator.

    Returns:
        NaN without a pair or where a forecast is NaN; a term 0/0 counts as 0.
    """
    known = np.isfinite(actual)
    error, size = np.abs(actual - predicted)[known], (np.abs(actual) + np.abs(predicted))[known]
    return 100 * _mean(np.divide(error, size, out=np.zeros_like(size), where=size != 0))


def smape_half(actual: Floats, predicted: Floats) -> float:
    """Return the usual sMAPE, 100/n · Σ |y − ŷ| / ((|y| + |ŷ|)/2), in per cent, 0 to 200: twice `smape_sum`."""
    return 2 * smape_sum(actual, predicted)


def pinball(actual: Floats, quantiles: Floats, levels: tuple[float, ...]) -> float:
    """Return the mean pinball (quantile) loss over pairs and levels, in the unit of the values.

    The loss is max(q·(y − ŷ), (q − 1)·(y − ŷ)) (Koenker and Bassett 1978). NaN without a pair, or where a quantile is
    NaN.

    Args:
        actual: (...,) outcomes; one that is not finite is left out.
        quantiles: (..., levels) forecasts.
        levels: (levels,) each in (0, 1).

    Raises:
        IndexError: the leading shapes of `actual` and `quantiles` differ.
        ValueError: the number of levels differs.
    """
    known = np.isfinite(actual)
    error = actual[known][:, None] - quantiles[known]
    level = np.asarray(levels)
    return _mean(np.maximum(level * error, (level - 1) * error))


def coverage(actual: Floats, upper: Floats) -> float:
    """Return the share of outcomes at or under a quantile forecast: its level, if calibrated.

    Returns:
        NaN without a pair or where a quantile is NaN.
    """
    return covered(actual, np.full_like(upper, -math.inf), upper)


def covered(actual: Floats, lower: Floats, upper: Floats) -> float:
    """Return the share of outcomes within [lower, upper]; NaN without a pair or where an end is NaN."""
    within = np.where(np.isnan(lower) | np.isnan(upper), math.nan, (lower <= actual) & (actual <= upper))
    return _mean(within[np.isfinite(actual)])


def skill(error: float, reference: float) -> float:
    """Return 1 − error ÷ reference: 1 is perfect, 0 as good as the reference, negative worse.

    Returns:
        NaN where the reference is not above 0.
    """
    return 1 - error / reference if reference > 0 else math.nan


def _mean(values: Floats) -> float:
    return float(np.mean(values)) if values.size else math.nan
