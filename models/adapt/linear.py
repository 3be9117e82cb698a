"""Ridge regression for a short history: what an adapted network must be better than."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from models.adapt.network import CONTEXT
from models.forecast.core.series import Floats, SeriesError

Indices = NDArray[np.int64]
STRENGTHS = (1.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
"""How many rows' worth of evidence weights of 0 have; the newest rows choose."""
_FOLDS = (0.55, 0.7, 0.85)  # of the rows: where rolling origins begin, each judged up to the next
_NEIGHBOURS = 3


@dataclass(frozen=True, eq=False)
class ShortRidge:
    """y(t + h) = y(t) + unit · inputs(t) · weights[:, h].

    Attributes:
        unit: records/s; the deviation of the target's steps from one to the next.
        day: steps per day where yesterday is read as well, else 0.
        weights: (inputs, p).
    """

    unit: float
    day: int
    weights: Floats

    def forecast(self, values: Floats, origins: Indices) -> Floats:
        """(N, p) records/s after each of (N,) origins in (T,) values."""
        moves: Floats = self.unit * inputs(values / self.unit, origins, self.day, self.weights.shape[1]) @ self.weights
        return values[origins][:, None] + moves


def unit_of(values: Floats) -> float:
    """Deviation of the differences between neighbours, which a trend does not enter.

    Raises:
        SeriesError: it is 0.
    """
    unit = float(np.std(np.diff(values)))
    if not unit > 0:
        raise SeriesError(f"{len(values)} steps without any change: nothing is to be learned from them")
    return unit


def origins_of(steps: int, day: int, horizon: int) -> Indices:
    """Every moment of so many steps that has its inputs before it and its outcomes after it."""
    return np.arange((day + _NEIGHBOURS if day else 0) + CONTEXT - 1, steps - horizon)


def inputs(values: Floats, origins: Indices, day: int, horizon: int) -> Floats:
    """(N, inputs) what is read at each origin t, in the values' unit.

    y(t − k) − y(t) for k = 1..23; with a day also yesterday's course around and after the same time, relative to then,
    and how far yesterday's level lies off.
    """
    at = origins[:, None]
    recent: Floats = values[at - np.arange(1, CONTEXT)] - values[at]
    if not day:
        return recent
    course = np.array([j for j in range(-_NEIGHBOURS, horizon + _NEIGHBOURS) if j])
    return np.hstack([recent, values[at - day + course] - values[at - day], values[at - day] - values[at]])


def outcomes(values: Floats, origins: Indices, horizon: int) -> Floats:
    """(N, p) values after each origin."""
    came: Floats = values[origins[:, None] + np.arange(1, horizon + 1)]
    return came


def fit(values: Floats, horizon: int, day: int, strength: float) -> ShortRidge:
    """Least squares with `strength · ‖weights‖²`.

    Args:
        values: (T,) records/s without gaps.
        horizon: p.
        day: steps per day where yesterday is read, else 0.
        strength: in rows.

    Raises:
        SeriesError: not one row fits, or nothing changes.
    """
    unit, _, x, y = _rows(values, horizon, day)
    return ShortRidge(unit, day, _solve(x, y, strength))


@dataclass(frozen=True, eq=False)
class Chosen:
    """What rolling origins found best.

    Attributes:
        model: fitted on the whole history.
        strength: which was chosen.
        errors: (T, p) outcomes minus forecasts of rows that the forecast's own fit did not see; NaN elsewhere.
    """

    model: ShortRidge
    strength: float
    errors: Floats


def choose(values: Floats, horizon: int, days: tuple[int, ...]) -> Chosen:
    """Fit with the strength (and with or without yesterday) that rolling origins over the history find best.

    Args:
        values: (T,) records/s without gaps.
        horizon: p.
        days: which `day` to try; it is left out where the first fold holds less than two days with a yesterday.

    Raises:
        SeriesError: the first fold would hold hardly a row, or nothing changes.
    """
    folds = [int(share * len(values)) for share in (*_FOLDS, 1.0)]
    if folds[0] < 2 * CONTEXT + horizon:
        raise SeriesError(
            f"a history of {len(values)} steps: at least {-(-(2 * CONTEXT + horizon) // _FOLDS[0]):.0f} are needed to "
            "choose a regression. Wait for more, or use shorter steps."
        )

    def loss(day: int, strength: float) -> float:
        return float(
            np.mean(np.concatenate([_squares(values, *ends, horizon, day, strength) for ends in pairwise(folds)]))
        )

    usable = [day for day in days if folds[0] >= 3 * day + 2 * CONTEXT] or [0]
    _, day, strength = min((loss(day, strength), day, strength) for day in usable for strength in STRENGTHS)
    return Chosen(fit(values, horizon, day, strength), strength, _left_out(values, horizon, day, strength))


def _squares(values: Floats, begin: int, end: int, horizon: int, day: int, strength: float) -> Floats:
    """(N,) squared errors over `begin..end` of a fit on what came before, each horizon in units of its last value's."""
    model = fit(values[:begin], horizon, day, strength)
    origins = np.arange(begin - 1, end - horizon)
    came = outcomes(values, origins, horizon)
    naive = np.mean((came - values[origins][:, None]) ** 2, axis=0) + 1e-12 * model.unit**2
    errors: Floats = ((came - model.forecast(values, origins)) ** 2 / naive).mean(axis=1)
    return errors


def _left_out(values: Floats, horizon: int, day: int, strength: float, blocks: int = 6) -> Floats:
    """(T, p) errors of every row by a fit without its block and the rows that overlap it."""
    unit, origins, x, y = _rows(values, horizon, day)
    errors = np.full((len(values), horizon), np.nan)
    for block in np.array_split(np.arange(len(origins)), min(blocks, len(origins))):
        kept = np.ones(len(origins), dtype=bool)
        kept[max(0, block[0] - horizon) : block[-1] + 1 + horizon] = False
        if kept.any():
            errors[origins[block]] = unit * (y[block] - x[block] @ _solve(x[kept], y[kept], strength))
    return errors


def _rows(values: Floats, horizon: int, day: int) -> tuple[float, Indices, Floats, Floats]:
    """The unit, every row's origin, its inputs, and by how much its outcomes lie over its last value, in the unit."""
    unit, origins = unit_of(values), origins_of(len(values), day, horizon)
    if not len(origins):
        raise SeriesError(f"{len(values)} steps are too few for one row of {CONTEXT} inputs and {horizon} outcomes")
    scaled = values / unit
    return (
        unit,
        origins,
        inputs(scaled, origins, day, horizon),
        (outcomes(scaled, origins, horizon) - scaled[origins][:, None]),
    )


def _solve(x: Floats, y: Floats, strength: float) -> Floats:
    return np.asarray(np.linalg.solve(x.T @ x + strength * np.eye(x.shape[1]), x.T @ y))
