"""A forecast in coarse steps, corrected by the load of this very moment.

A forecast is made when a step ends; a policy decides within the step and knows the rate of the last seconds. The
forecast's present error is added to the load ahead, less and less the further ahead it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from models.policy.core.capacity import Floats, Integers
from models.policy.core.view import nearest_level

WITHIN, BEYOND = 4, 3
"""Numbers of equal parts of the lead time, and of the hold after it."""


@dataclass(frozen=True, eq=False)
class ForecastRows:
    """Forecasts as a forecaster made them, one row per moment.

    Attributes:
        quantiles: (N, H, Q) records/s, mean of steps 1 to H after `age_s` seconds ago; NaN without a forecast.
        last: (N,) records/s of the step that had just ended.
        age_s: (N,) seconds since then.
        step_s: seconds per step.
        levels: (Q,) of the quantiles; the one next to 0.5 is taken for the median.
    """

    quantiles: Floats
    last: Floats
    age_s: Floats
    step_s: float
    levels: tuple[float, ...]

    def nearest(self, level: float) -> int:
        """Return the index of the level nearest to the given one."""
        return nearest_level(self.levels, level)

    def nearest_only(self, *levels: float) -> ForecastRows:
        """Return the quantiles next to these levels alone, in their order: what is not looked at costs nothing."""
        places = [self.nearest(level) for level in levels]
        return replace(self, quantiles=self.quantiles[:, :, places], levels=tuple(self.levels[i] for i in places))


@lru_cache(maxsize=1 << 10)
def forecast_offsets(lead_s: float, hold_s: float) -> Floats:
    """Return (K,) rising seconds from now at which a policy is told the forecast; the last is lead + hold.

    `WITHIN` equal parts of the lead time and `BEYOND` of the hold; without a lead time (0) the hold's alone.
    """
    within = np.linspace(0, lead_s, WITHIN + 1)[1:] if lead_s > 0 else np.zeros(0)
    beyond = lead_s + np.linspace(0, hold_s, BEYOND + 1)[1:]
    return np.unique(np.concatenate([within, beyond]))


def interpolate_forecasts(curves: ForecastRows, offsets_s: Floats) -> tuple[Floats, Floats]:
    """Interpolate forecasts linearly between the middles of their steps.

    Before the first step's middle the line comes from the middle of the step before, at the rate `last`; beyond the
    last step's middle it stays level.

    Args:
        curves: N forecasts: quantiles (N, H, Q) and last (N,), records/s; age_s (N,), seconds. NaN stays NaN.
        offsets_s: (K,) seconds from now.

    Returns:
        (N, K) median in records/s, and (N, K, Q) records/s that every level lies above it (below: negative).
    """
    left, share = _places(curves, offsets_s)
    return _line(curves, left, share), _above_median(curves, left) * (1 - share[..., None]) + _above_median(
        curves, left + 1
    ) * share[..., None]


def _places(curves: ForecastRows, offsets_s: Floats) -> tuple[Integers, Floats]:
    """(N, K) middles to the left of the moments, 0 that of the step that had just ended; and shares of the next."""
    place = (curves.age_s[:, None] + offsets_s[None, :]) / curves.step_s + 0.5
    left = np.clip(np.floor(place).astype(np.int64), 0, curves.quantiles.shape[1] - 1)
    return left, np.clip(place - left, 0.0, 1.0)


def _line(curves: ForecastRows, left: Integers, share: Floats) -> Floats:
    """(N, K) medians between those middles."""
    median = np.concatenate([curves.last[:, None], curves.quantiles[:, :, curves.nearest(0.5)]], axis=1)
    rows = np.arange(len(median))[:, None]
    line: Floats = median[rows, left] * (1 - share) + median[rows, left + 1] * share
    return line


def _above_median(curves: ForecastRows, middles: Integers) -> Floats:
    """(N, K, Q) that the levels lie above the median at these middles; 0 in the step that had just ended."""
    said = curves.quantiles[np.arange(len(middles))[:, None], np.maximum(middles - 1, 0)]
    middle = curves.nearest(0.5)
    return np.where(middles[..., None] > 0, said - said[..., middle : middle + 1], 0.0)


def correct_by_rate(curves: ForecastRows, offsets_s: Floats, rate_now: Floats, memory_s: float) -> Floats:
    """Move forecasts to the present rate: their error of now is added, fading as `exp(-offset / memory_s)`.

    Args:
        curves: N forecasts: quantiles (N, H, Q) and last (N,), records/s; age_s (N,), seconds. NaN stays NaN.
        offsets_s: (K,) seconds from now.
        rate_now: (N,) records/s, mean of the last seconds (3 s in a live job).
        memory_s: seconds after which a share of 1/e of an error is left, above 0.

    Returns:
        (N, K, Q) records/s, at least 0. The spread about the median shrinks by `sqrt(1 - exp(-2 offset / memory_s))`,
        the deviation of a first-order process: none now, the forecaster's own far ahead.
    """
    return correct_by_rate_for_each(curves, offsets_s, rate_now, [memory_s])[0]


def correct_by_rate_for_each(
    curves: ForecastRows, offsets_s: Floats, rate_now: Floats, memories_s: Sequence[float]
) -> list[Floats]:
    """As `correct_by_rate`, for several memories at the price of little more than one."""
    line, wide = interpolate_forecasts(curves, np.concatenate([np.zeros(1), offsets_s]))  # from now on
    error = rate_now[:, None] - line[:, :1]
    return [_corrected(line[:, 1:], wide[:, 1:], error, np.exp(-offsets_s / memory_s)) for memory_s in memories_s]


def _corrected(line: Floats, wide: Floats, error: Floats, fading: Floats) -> Floats:
    centre, unsure = line + error * fading, np.sqrt(1 - fading**2)
    ahead: Floats = np.maximum(centre[..., None] + wide * unsure[None, :, None], 0.0)
    return ahead
