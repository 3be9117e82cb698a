"""A forecast in coarse steps, corrected by the load of this very moment.

A forecast is made when a step ends; a policy decides within the step and knows the rate of the last seconds. The
forecast's present error is added to the load ahead, less and less the further ahead it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.policy.core.capacity import Floats

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
        return int(np.argmin(np.abs(np.array(self.levels) - level)))


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
    (n, horizon, levels), middle = curves.quantiles.shape, curves.nearest(0.5)
    median = np.concatenate([curves.last[:, None], curves.quantiles[:, :, middle]], axis=1)
    spread = curves.quantiles - curves.quantiles[:, :, middle : middle + 1]
    spread = np.concatenate([np.zeros((n, 1, levels)), spread], axis=1)
    place = (curves.age_s[:, None] + offsets_s[None, :]) / curves.step_s + 0.5
    left = np.clip(np.floor(place).astype(np.int64), 0, horizon - 1)
    share = np.clip(place - left, 0.0, 1.0)
    rows = np.arange(n)[:, None]
    line: Floats = median[rows, left] * (1 - share) + median[rows, left + 1] * share
    wide: Floats = spread[rows, left] * (1 - share[..., None]) + spread[rows, left + 1] * share[..., None]
    return line, wide


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
    now, _ = interpolate_forecasts(curves, np.zeros(1))
    line, wide = interpolate_forecasts(curves, offsets_s)
    fading = np.exp(-offsets_s / memory_s)
    centre = line + (rate_now[:, None] - now) * fading
    unsure = np.sqrt(1 - fading**2)
    ahead: Floats = np.maximum(centre[..., None] + wide * unsure[None, :, None], 0.0)
    return ahead
