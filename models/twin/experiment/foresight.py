"""What a forecaster says at every decision of a run, and what somebody who knows the future would say."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.ndimage import maximum_filter1d

from models.forecast.baselines.naive import Naive
from models.forecast.blend.blend import Blend
from models.forecast.core.forecaster import Forecaster, Task, fill
from models.forecast.core.series import Series
from models.forecast.online import Online
from models.policy.core.capacity import Floats, Integers
from models.policy.received.nowcast import ForecastRows, corrected

LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
HORIZON = 12
"""Steps that a forecaster looks ahead."""
REACH = HORIZON - 1.5
"""Steps ahead that are known at every moment of a step: the middle of the last one is half a step before its end, and
the newest forecast is up to a step old."""
FORECASTERS = ("blend", "last_value")


class IssuedForecasts(NamedTuple):
    """What a forecaster said at the beginning of every step of a series' newest part.

    Attributes:
        quantiles: (N, H, L) rates of the next H steps.
        last: (N,) rate of the step that had just ended.
        step_s: seconds per step of the forecaster.
        begins_s: epoch seconds of the first of the N moments.
        levels: (L,) of the quantiles.
    """

    quantiles: Floats
    last: Floats
    step_s: float
    begins_s: float
    levels: tuple[float, ...] = LEVELS

    def scaled(self, factor: float, speed: float = 1.0) -> IssuedForecasts:
        """In other units, on a clock that runs slower by `speed`."""
        step_s, begins_s = self.step_s / speed, self.begins_s / speed
        return IssuedForecasts(self.quantiles * factor, self.last * factor, step_s, begins_s, self.levels)

    def curves(self, moments_s: Floats, only: Sequence[int] | None = None) -> ForecastRows:
        """The newest forecasts, of all levels or those of some indices, at moments (epoch seconds)."""
        since = moments_s - self.begins_s
        at = np.clip((since // self.step_s).astype(np.int64), 0, len(self.last) - 1)
        places = list(range(len(self.levels)) if only is None else only)
        levels = tuple(self.levels[i] for i in places)
        return ForecastRows(
            self.quantiles[at][:, :, places], self.last[at], since - at * self.step_s, self.step_s, levels
        )


def coarseness(step_s: float, reach_s: float) -> int:
    """Steps of a series that one step of a forecaster must cover, so that it sees so many seconds ahead."""
    return max(1, math.ceil(reach_s / (REACH * step_s)))


def issued(forecaster: str, series: Series, first: int, many: int = 1) -> IssuedForecasts:
    """What a forecaster of `FORECASTERS` says from step `first` of a series on, in steps of `many` of the series'."""
    step_s = series.step_s * many
    older = _grouped(np.concatenate([np.full(-first % many, np.nan), series.values[:first]]), many)
    held = _grouped(np.concatenate([series.values[first:], np.full(-(len(series) - first) % many, np.nan)]), many)
    begins = series.start + first * series.step_s
    task = Task(step_s, HORIZON, LEVELS)
    model: Forecaster = Blend(task) if forecaster == "blend" else Naive(task, False, False)
    return followed(model, Series(begins - len(older) * step_s, step_s, older), held)


def followed(model: Forecaster, older: Series, held: Floats) -> IssuedForecasts:
    """What a forecaster says from the end of a series on, at the beginning of each of the (N,) steps that are held."""
    online = Online(model)  # as the model's own steps, to the last few bits, and many times as fast
    online.admit("one", older)
    made = [online.current("one"), *(online.step("one", value) for value in held[:-1])]
    quantiles = np.stack(made).astype(np.float32)
    known = fill(np.concatenate([older.values, held]), Task(older.step_s, model.horizon, model.levels))
    last = known[len(older) - 1 : len(known) - 1]
    return IssuedForecasts(quantiles.astype(float), last, older.step_s, older.end, model.levels)


def received(
    said: IssuedForecasts, moments_s: Floats, rate_now: Floats, offsets_s: Floats, memory_s: float, level: float | None
) -> Floats:
    """(D, K, L) what a policy hears at its decisions: the newest forecast, corrected by the rate of the moment.

    Args:
        said: by the forecaster.
        moments_s: (D,) epoch seconds of the decisions.
        rate_now: (D,) records/s of the last seconds.
        offsets_s: (K,) as of `nowcast.offsets`.
        memory_s: as of `nowcast.corrected`.
        level: the one of `LEVELS` that is wanted, for L = 1; None for all of them.
    """
    if level is None:
        return corrected(said.curves(moments_s), offsets_s, rate_now, memory_s)
    few = said.curves(moments_s, (LEVELS.index(0.5), LEVELS.index(level)))
    return corrected(few, offsets_s, rate_now, memory_s)[:, :, 1:]


def true(rates: Floats, looks_s: Integers, offsets_s: Floats) -> Floats:
    """(D, K) the highest true rate of every stretch.

    Args:
        rates: (T,) records/s of every second; beyond them the last one stays.
        looks_s: (D,) seconds of the decisions.
        offsets_s: (K,) as of `nowcast.offsets`.
    """
    found, before = np.empty((len(looks_s), len(offsets_s))), 0
    for k, offset in enumerate(offsets_s):
        end = max(round(float(offset)), before + 1)
        found[:, k] = highest(rates, end - before)[np.minimum(looks_s + before, len(rates) - 1)]
        before = end
    return found


def highest(rates: Floats, size: int) -> Floats:
    """(..., T) the highest of `size` rates from every second on; beyond the end the last one stays."""
    return maximum_filter1d(rates, size, mode="nearest", origin=-(size // 2))


def _grouped(values: Floats, many: int) -> Floats:
    if many == 1:
        return values
    parts = values.reshape(-1, many)
    count = np.isfinite(parts).sum(axis=1)
    return np.divide(np.nansum(parts, axis=1), count, out=np.full(len(parts), np.nan), where=count > 0)
