"""Ridge regression for a short history, alone or shrunk towards what another load's regression found."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from models.adapt.network import CONTEXT
from models.forecast.core.series import Floats, SeriesError

Indices = NDArray[np.int64]
STRENGTHS = (1.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
"""How many rows' worth of evidence the prior weighs; the newest rows choose."""
_FOLDS = (0.55, 0.7, 0.85)  # of the rows: where rolling origins begin, each judged up to the next
_NEIGHBOURS = 3


@dataclass(frozen=True, eq=False)
class LinearTransfer:
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
        said: Floats = self.unit * inputs(values / self.unit, origins, self.day, self.weights.shape[1]) @ self.weights
        return values[origins][:, None] + said


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
    recent = [values[origins - k] - values[origins] for k in range(1, CONTEXT)]
    if not day:
        return np.stack(recent, axis=1)
    then = origins - day
    course = [values[then + j] - values[then] for j in range(-_NEIGHBOURS, horizon + _NEIGHBOURS) if j]
    return np.stack([*recent, *course, values[then] - values[origins]], axis=1)


def outcomes(values: Floats, origins: Indices, horizon: int) -> Floats:
    """(N, p) values after each origin."""
    return np.stack([values[origins + h] for h in range(1, horizon + 1)], axis=1)


def fit(values: Floats, horizon: int, day: int, strength: float, prior: Floats | None = None) -> LinearTransfer:
    """Least squares with `strength · ‖weights − prior‖²`, the prior being 0 or another load's weights.

    Args:
        values: (T,) records/s without gaps.
        horizon: p.
        day: steps per day where yesterday is read, else 0.
        strength: in rows.
        prior: (inputs, p).

    Raises:
        SeriesError: not one row fits, or nothing changes.
    """
    unit = unit_of(values)
    origins = origins_of(len(values), day, horizon)
    if not len(origins):
        raise SeriesError(f"{len(values)} steps are too few for one row of {CONTEXT} inputs and {horizon} outcomes")
    scaled = values / unit
    x = inputs(scaled, origins, day, horizon)
    return LinearTransfer(
        unit, day, _solve(x, outcomes(scaled, origins, horizon) - scaled[origins][:, None], strength, prior)
    )


@dataclass(frozen=True, eq=False)
class Chosen:
    """What rolling origins found best.

    Attributes:
        model: fitted on the whole history.
        strength: which was chosen.
        errors: (T, p) outcomes minus forecasts of rows that the forecast's own fit did not see; NaN elsewhere.
    """

    model: LinearTransfer
    strength: float
    errors: Floats


def choose(values: Floats, horizon: int, days: tuple[int, ...], prior: Floats | None = None) -> Chosen:
    """Fit with the strength (and with or without yesterday) that rolling origins over the history find best.

    Args:
        values: (T,) records/s without gaps.
        horizon: p.
        days: which `day` to try; it is left out where the first fold holds less than two days with a yesterday.
        prior: (inputs, p) for every day tried; None: 0.

    Raises:
        SeriesError: the first fold would hold hardly a row, or nothing changes.
    """
    found: list[tuple[float, int, float]] = []
    folds = [int(share * len(values)) for share in (*_FOLDS, 1.0)]
    if folds[0] < 2 * CONTEXT + horizon:
        raise SeriesError(
            f"a history of {len(values)} steps: at least {-(-(2 * CONTEXT + horizon) // _FOLDS[0]):.0f} are needed to "
            "choose a regression. Wait for more, or use shorter steps."
        )
    usable = [day for day in days if folds[0] >= 3 * day + 2 * CONTEXT] or [0]
    for day in usable:
        for strength in STRENGTHS:
            judged = [_squares(values, begin, end, horizon, day, strength, prior) for begin, end in pairwise(folds)]
            found.append((float(np.mean(np.concatenate(judged))), day, strength))
    _, day, strength = min(found)
    model = fit(values, horizon, day, strength, prior)
    return Chosen(model, strength, _left_out(values, horizon, day, strength, prior))


def _squares(
    values: Floats, begin: int, end: int, horizon: int, day: int, strength: float, prior: Floats | None
) -> Floats:
    """(N,) squared errors over `begin..end` of a fit on what came before, each horizon in units of its last value's."""
    model = fit(values[:begin], horizon, day, strength, prior)
    origins = np.arange(begin - 1, end - horizon)
    came = outcomes(values, origins, horizon)
    naive = np.mean((came - values[origins][:, None]) ** 2, axis=0) + 1e-12 * model.unit**2
    errors: Floats = ((came - model.forecast(values, origins)) ** 2 / naive).mean(axis=1)
    return errors


def _left_out(values: Floats, horizon: int, day: int, strength: float, prior: Floats | None, blocks: int = 6) -> Floats:
    """(T, p) errors of every row by a fit without its block and the rows that overlap it."""
    unit, origins = unit_of(values), origins_of(len(values), day, horizon)
    scaled = values / unit
    x = inputs(scaled, origins, day, horizon)
    y = outcomes(scaled, origins, horizon) - scaled[origins][:, None]
    errors = np.full((len(values), horizon), np.nan)
    for block in np.array_split(np.arange(len(origins)), min(blocks, len(origins))):
        kept = np.ones(len(origins), dtype=bool)
        kept[max(0, block[0] - horizon) : block[-1] + 1 + horizon] = False
        if kept.any():
            errors[origins[block]] = unit * (y[block] - x[block] @ _solve(x[kept], y[kept], strength, prior))
    return errors


def _solve(x: Floats, y: Floats, strength: float, prior: Floats | None) -> Floats:
    start = np.zeros((x.shape[1], y.shape[1])) if prior is None else prior
    gram = x.T @ x + strength * np.eye(x.shape[1])
    solved: Floats = start + np.linalg.solve(gram, x.T @ (y - x @ start))
    return solved
