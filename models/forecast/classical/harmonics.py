"""A smooth curve over the day and the week, small enough to be written down at any step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.forecast.core.forecaster import DAY_S, WEEK_S
from models.forecast.core.series import Floats, Series

_DAILY = (0, 2, 4, 8, 12)
_WEEKLY = (0, 6, 20, 41)
"""Numbers of harmonics that are tried."""


@dataclass(frozen=True)
class Harmonics:
    """s(t) = c₀ + Σ aₖ·cos(2πkt/week) + bₖ·sin(2πkt/week), t in epoch seconds.

    Attributes:
        orders: (K,) waves per week, each k.
        coefficients: (1 + 2K,) c₀, then every aₖ, then every bₖ, in the series' unit.
    """

    orders: tuple[int, ...]
    coefficients: tuple[float, ...]

    def at(self, times: Floats) -> Floats:
        """(T,) the curve at epoch seconds."""
        found: Floats = _waves(times, self.orders) @ np.array(self.coefficients)
        return found


def fit_harmonics(history: Series) -> Harmonics:
    """The curve by least squares on what is known, with as many waves as the Bayesian information criterion allows.

    A day's waves need two days of history, a week's two weeks; a wave is at least two steps long.
    """
    times = begins(history)
    known = np.isfinite(history.values)
    times, values = times[known], history.values[known]
    if not len(values):
        return Harmonics((), (0.0,))
    span, best = len(history) * history.step_s, (np.inf, Harmonics((), (float(values.mean()),)))
    for daily in _DAILY if span >= 2 * DAY_S else (0,):
        for weekly in _WEEKLY if span >= 2 * WEEK_S else (0,):
            orders = sorted({7 * k for k in range(1, daily + 1)} | set(range(1, weekly + 1)))
            kept = tuple(k for k in orders if WEEK_S / k > 2 * history.step_s)
            if 1 + 2 * len(kept) > len(values) / 4:
                continue
            waves = _waves(times, kept)
            coefficients, *_ = np.linalg.lstsq(waves, values, rcond=None)
            squares = float(np.mean((values - waves @ coefficients) ** 2))
            score = len(values) * np.log(squares + 1e-12) + waves.shape[1] * np.log(len(values))
            if score < best[0]:
                best = (score, Harmonics(kept, tuple(map(float, coefficients))))
    return best[1]


def begins(series: Series) -> Floats:
    """(T,) epoch seconds at which each step begins."""
    return np.asarray(series.start + series.step_s * np.arange(len(series)), dtype=np.float64)


def _waves(times: Floats, orders: tuple[int, ...]) -> Floats:
    angle = 2 * np.pi / WEEK_S * np.multiply.outer(times % WEEK_S, np.array(orders, dtype=np.float64))
    ones: NDArray[np.float64] = np.ones((len(times), 1))
    return np.concatenate([ones, np.cos(angle), np.sin(angle)], axis=1)
