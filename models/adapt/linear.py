"""Ridge regression for a short history: the baseline that an adapted network must beat."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from models.adapt.scale import CONTEXT
from models.forecast.core.series import Floats, SeriesError

Indices = NDArray[np.int64]
STRENGTHS = (1.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
"""Ridge penalties that are tried, in rows."""
_FOLDS = (0.55, 0.7, 0.85)  # shares of the history: each fold is fitted up to one, tested up to the next
_NEIGHBOURS, _BLOCKS = 3, 6


@dataclass(frozen=True, eq=False)
class ShortRidge:
    """A fitted regression: y(t + h) = y(t) + unit · inputs(t) · weights[:, h].

    Attributes:
        unit: records/s; the standard deviation of the differences between neighbouring steps.
        day: steps per day where yesterday is read as well, else 0.
        weights: (inputs, p).
    """

    unit: float
    day: int
    weights: Floats

    def forecast(self, values: Floats, origins: Indices) -> Floats:
        """Return forecasts 1 to p steps after each origin; they may be negative.

        Args:
            values: (T,) records/s without gaps.
            origins: (N,) indices of the step each forecast is made after, at least 23, and with a day at least day + 3.

        Returns:
            (N, p) records/s.

        Raises:
            IndexError: an origin is T or above. One that is too early reads from the end of the values, unnoticed.
        """
        moves: Floats = (
            self.unit * regressors(values / self.unit, origins, self.day, self.weights.shape[1]) @ self.weights
        )
        return values[origins][:, None] + moves


def step_deviation(values: Floats) -> float:
    """Return the standard deviation of the differences between neighbouring (T,) values, in their unit.

    A linear trend does not count.

    Raises:
        SeriesError: it is 0 or NaN: under three values, a gap, or no change but a trend.
    """
    unit = float(np.std(np.diff(values)))
    if not unit > 0:
        raise SeriesError(f"{len(values)} steps without any change: nothing is to be learned from them")
    return unit


def origins_of(steps: int, day: int, horizon: int) -> Indices:
    """Return the indices that have all their inputs before them and all their outcomes after them; may be empty.

    Args:
        steps: length of the series.
        day: steps per day where yesterday is read, else 0.
        horizon: outcomes, in steps.
    """
    return np.arange((day + _NEIGHBOURS if day else 0) + CONTEXT - 1, steps - horizon)


def regressors(values: Floats, origins: Indices, day: int, horizon: int) -> Floats:
    """Return what the regression reads at each origin t (index of the newest step read), in the values' unit.

    These are y(t − k) − y(t) for k = 1..23; with a day also y(t − day + j) − y(t − day) for j = −3..horizon + 2 but 0,
    as far as these lie before t, and y(t − day) − y(t).

    Args:
        values: (T,) loads without gaps.
        origins: (N,) indices t; one with too few values before it reads from their end, unnoticed.
        day: steps per day where yesterday is read, else 0.
        horizon: steps ahead.

    Returns:
        (N, regressors): 23, with a day horizon + 29, or less where a day is under horizon + 3 steps.

    Raises:
        IndexError: an origin is T or above.
    """
    at = origins[:, None]
    recent: Floats = values[at - np.arange(1, CONTEXT)] - values[at]
    if not day:
        return recent
    course = np.array([j for j in range(-_NEIGHBOURS, min(horizon + _NEIGHBOURS, day)) if j])
    return np.hstack([recent, values[at - day + course] - values[at - day], values[at - day] - values[at]])


def outcomes(values: Floats, origins: Indices, horizon: int) -> Floats:
    """Return the (N, horizon) values that follow each of (N,) origins.

    Raises:
        IndexError: fewer than `horizon` values follow an origin.
    """
    actual: Floats = values[origins[:, None] + np.arange(1, horizon + 1)]
    return actual


def fit(values: Floats, horizon: int, day: int, strength: float) -> ShortRidge:
    """Fit a ridge regression per step ahead: least squares plus `strength · ‖weights‖²`.

    Args:
        values: (T,) records/s without gaps.
        horizon: steps ahead, p.
        day: steps per day where yesterday is read, else 0.
        strength: ridge penalty, in rows: weights of 0 count as so many rows of evidence.

    Raises:
        SeriesError: the values are too few for one row, or constant.
    """
    unit, _, x, y = _rows(values, horizon, day)
    return ShortRidge(unit, day, _solve(x, y, strength))


@dataclass(frozen=True, eq=False)
class ChosenRidge:
    """A regression with the ridge strength that had the least error over rolling origins.

    Attributes:
        model: fitted on the whole history.
        errors: (T, p) outcomes minus forecasts, records/s, each by a fit that did not see the row; NaN elsewhere.
    """

    model: ShortRidge
    errors: Floats


def choose_ridge(values: Floats, horizon: int, days: tuple[int, ...]) -> ChosenRidge:
    """Fit a ridge regression, its strength and whether it reads yesterday chosen on three rolling test parts.

    Chosen is what has the least squared error relative to that of the last value, averaged over steps ahead and rows.

    Args:
        values: (T,) records/s without gaps.
        horizon: steps ahead, p.
        days: which `day` to try (steps per day, or 0 for no yesterday); one is left out where 55 % of the history are
            less than three such days and 48 steps; 0 is tried where none is left.

    Returns:
        The model fitted on all, and its (T, p) errors in records/s by six-fold cross-validation.

    Raises:
        SeriesError: T is under (48 + p)/0.55 or p/0.15 + 1, there is a gap, or the oldest 55 % have no change.
    """
    folds = [int(share * len(values)) for share in (*_FOLDS, 1.0)]
    needed = max(math.ceil((2 * CONTEXT + horizon) / _FOLDS[0]), math.ceil(horizon / (1 - _FOLDS[-1])) + 1)
    if len(values) < needed:
        raise SeriesError(
            f"a history of {len(values)} steps: at least {needed} are needed to choose a regression. "
            "Wait for more, or use shorter steps."
        )

    def loss(day: int, strength: float) -> float:
        """Return the mean relative squared error over the rolling origins."""
        return float(
            np.mean(np.concatenate([_squares(values, *ends, horizon, day, strength) for ends in pairwise(folds)]))
        )

    usable = [day for day in days if folds[0] >= 3 * day + 2 * CONTEXT] or [0]
    _, day, strength = min((loss(day, strength), day, strength) for day in usable for strength in STRENGTHS)
    return ChosenRidge(fit(values, horizon, day, strength), _left_out(values, horizon, day, strength))


def _squares(values: Floats, begin: int, end: int, horizon: int, day: int, strength: float) -> Floats:
    """Return (N,) squared errors over `begin..end` of a fit on the values before, relative to the last value's."""
    model = fit(values[:begin], horizon, day, strength)
    origins = np.arange(begin - 1, end - horizon)
    actual = outcomes(values, origins, horizon)
    naive = np.mean((actual - values[origins][:, None]) ** 2, axis=0) + 1e-12 * model.unit**2
    errors: Floats = ((actual - model.forecast(values, origins)) ** 2 / naive).mean(axis=1)
    return errors


def _left_out(values: Floats, horizon: int, day: int, strength: float) -> Floats:
    """Return (T, p) errors, each by a fit without the row's block and the rows that overlap it; NaN elsewhere."""
    unit, origins, x, y = _rows(values, horizon, day)
    errors = np.full((len(values), horizon), np.nan)
    for block in np.array_split(np.arange(len(origins)), min(_BLOCKS, len(origins))):
        kept = np.ones(len(origins), dtype=bool)
        kept[max(0, block[0] - horizon) : block[-1] + 1 + horizon] = False
        if kept.any():
            errors[origins[block]] = unit * (y[block] - x[block] @ _solve(x[kept], y[kept], strength))
    return errors


def _rows(values: Floats, horizon: int, day: int) -> tuple[float, Indices, Floats, Floats]:
    """Return the unit, and of every row the origin, the inputs, and the outcomes less the last value, in the unit.

    Raises:
        SeriesError: the values are too few for one row, or constant.
    """
    unit, origins = step_deviation(values), origins_of(len(values), day, horizon)
    if not len(origins):
        raise SeriesError(f"{len(values)} steps are too few for one row of {CONTEXT} inputs and {horizon} outcomes")
    scaled = values / unit
    return (
        unit,
        origins,
        regressors(scaled, origins, day, horizon),
        (outcomes(scaled, origins, horizon) - scaled[origins][:, None]),
    )


def _solve(x: Floats, y: Floats, strength: float) -> Floats:
    return np.asarray(np.linalg.solve(x.T @ x + strength * np.eye(x.shape[1]), x.T @ y))
