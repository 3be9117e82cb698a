"""What a forecaster issues at every decision of a run, and what one that knows the future would."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter1d

from models.forecast.baselines.naive import Naive
from models.forecast.blend.blend import Blend
from models.forecast.core.forecaster import Forecaster, Task, fill_gaps
from models.forecast.core.series import Series
from models.forecast.online import Online
from models.policy.core.capacity import Floats, Integers
from models.policy.received.nowcast import ForecastRows, correct_by_rate
from models.policy.received.silence import GONE, is_refuted

LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
HORIZON = 12
"""Steps that a forecaster looks ahead."""
REACH = HORIZON - 1.5
"""Steps ahead that are known at every moment of a step: the middle of the last one is half a step before its end, and
the newest forecast is up to a step old."""
FORECASTERS = ("blend", "last_value")


class IssuedForecasts(NamedTuple):
    """Forecasts issued at the beginning of every step of a series' newest part.

    Attributes:
        quantiles: (N, H, L) rates of the next H steps, in the unit of the series.
        last: (N,) rate of the step that had just ended, gaps filled.
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
        """Multiply the rates by a factor, and divide all times by `speed` (seconds of the trace per second)."""
        step_s, begins_s = self.step_s / speed, self.begins_s / speed
        return IssuedForecasts(self.quantiles * factor, self.last * factor, step_s, begins_s, self.levels)

    def places_at(self, moments_s: Floats) -> Integers:
        """Return (M,) indices of the newest forecast at (M,) moments, epoch seconds."""
        since = moments_s - self.begins_s
        return np.clip((since // self.step_s).astype(np.int64), 0, len(self.last) - 1)

    def newest_at(self, moments_s: Floats, only: Sequence[int] | None = None) -> ForecastRows:
        """Return the newest forecast at each moment: quantiles (M, H, L) and last (M,) in the series' unit, age_s (M,).

        Args:
            moments_s: (M,) epoch seconds, not before `begins_s`; after the last forecast that one stays the newest.
            only: indices of the levels that are wanted; None for all.

        Raises:
            IndexError: an index that is no level's.
        """
        since, at = moments_s - self.begins_s, self.places_at(moments_s)
        places = list(range(len(self.levels)) if only is None else only)
        levels = tuple(self.levels[i] for i in places)
        return ForecastRows(
            self.quantiles[at][:, :, places], self.last[at], since - at * self.step_s, self.step_s, levels
        )


def steps_per_forecast_step(step_s: float, reach_s: float) -> int:
    """Return how many steps of a series one forecast step must cover so that its 12 steps reach far enough.

    Args:
        step_s: seconds per step of the series.
        reach_s: seconds ahead that must be known at every moment, that is lead time and hold.
    """
    return max(1, math.ceil(reach_s / (REACH * step_s)))


def issue_forecasts(forecaster: str, series: Series, first: int, many: int = 1) -> IssuedForecasts:
    """Run a forecaster over a series and record what it issues, step by step, from one step on.

    Args:
        forecaster: "blend"; any other name gives the last value.
        series: the trace; missing steps are NaN, and filled by the forecaster's own rule.
        first: index of the first step whose beginning gets a forecast, below the length of the series (not checked).
        many: steps of the series (their mean) per step of the forecaster, at least 1.

    Returns:
        A forecast per step: quantiles (N, 12, 7) at `LEVELS`, in the unit of the series, and times in epoch seconds.

    Raises:
        SeriesError: a negative or infinite rate, or a forecast step longer than a day.
    """
    step_s = series.step_s * many
    older = _grouped(np.concatenate([np.full(-first % many, np.nan), series.values[:first]]), many)
    held = _grouped(np.concatenate([series.values[first:], np.full(-(len(series) - first) % many, np.nan)]), many)
    begins = series.start + first * series.step_s
    task = Task(step_s, HORIZON, LEVELS)
    model: Forecaster = Blend(task) if forecaster == "blend" else Naive(task, False, False)
    return issue_stepwise(model, Series(begins - len(older) * step_s, step_s, older), held)


def issue_stepwise(model: Forecaster, older: Series, held: Floats) -> IssuedForecasts:
    """Step a forecaster through (N,) held-back values after a history, and record what it issues before each.

    Args:
        model: the forecaster.
        older: the history.
        held: (N,) at least one rate per step, in the history's unit; NaN where one is missing.

    Returns:
        N forecasts, each made without the value of its step and later ones: quantiles (N, H, L), in the history's unit.

    Raises:
        SeriesError: the history has another step than the forecaster, or a rate is negative or infinite.
    """
    online = Online(model)  # as the model's own steps, to the last few bits, and many times as fast
    online.admit("one", older)
    made = [online.current("one"), *(online.step("one", value) for value in held[:-1])]
    quantiles = np.stack(made).astype(np.float32)
    known = fill_gaps(np.concatenate([older.values, held]), Task(older.step_s, model.horizon, model.levels))
    last = known[len(older) - 1 : len(known) - 1]
    return IssuedForecasts(quantiles.astype(float), last, older.step_s, older.end, model.levels)


def correct_at_looks(
    said: IssuedForecasts, moments_s: Floats, rate_now: Floats, offsets_s: Floats, memory_s: float, level: float | None
) -> Floats:
    """Return the forecasts a policy receives at its decisions: the newest, corrected by the rate observed then.

    Args:
        said: by the forecaster, records/s.
        moments_s: (D,) epoch seconds of the decisions.
        rate_now: (D,) records/s of the last seconds.
        offsets_s: (K,) seconds from a decision (`nowcast.forecast_offsets`).
        memory_s: seconds after which 1/e of the correction is left, above 0.
        level: the one of `LEVELS` that is wanted, for L = 1; None for all of them.

    Returns:
        (D, K, L) records/s, at least 0.

    Raises:
        ValueError: a level that is none of `LEVELS`.
    """
    if level is None:
        return correct_by_rate(said.newest_at(moments_s), offsets_s, rate_now, memory_s)
    few = said.newest_at(moments_s, (LEVELS.index(0.5), LEVELS.index(level)))
    return correct_by_rate(few, offsets_s, rate_now, memory_s)[:, :, 1:]


def unless_refuted(
    rps: NDArray[np.floating[Any]], said: IssuedForecasts, moments_s: Floats, rate_now: Floats
) -> NDArray[np.floating[Any]]:
    """Return what a policy receives with NaN where nothing arrives and silence has refuted the forecasts, as live.

    Args:
        rps: (..., D, K, Q) records/s that would be received at the decisions otherwise.
        said: by the forecaster, records/s.
        moments_s: (D,) epoch seconds of the decisions.
        rate_now: (..., D) records/s of the last seconds.
    """
    least = said.quantiles[:, 0, int(np.argmin(said.levels))]
    refuted = np.zeros(len(said.last), dtype=bool)
    for i in np.flatnonzero(said.last[1:] < GONE * least[:-1]):  # no other step refutes anything
        refuted[i + 1] = is_refuted(bool(refuted[i]), float(least[i]), float(said.last[i + 1]), said.step_s)
    unknown = refuted[said.places_at(moments_s)] & (rate_now == 0)
    if not unknown.any():
        return rps
    received: NDArray[np.floating[Any]] = np.where(unknown[..., None, None], np.nan, rps)
    return received


def true_peaks(rates: Floats, looks_s: Integers, offsets_s: Floats) -> Floats:
    """Return the highest true rate of each stretch ahead of the decisions, (D, K) records/s.

    Args:
        rates: (T,) records/s of every second, T at least 1; after the end the last one holds.
        looks_s: (D,) seconds of the decisions, indices into `rates`.
        offsets_s: (K,) rising ends of the stretches, seconds from a decision, rounded to whole ones; the first stretch
            begins at the decision.
    """
    found, before = np.empty((len(looks_s), len(offsets_s))), 0
    for k, offset in enumerate(offsets_s):
        end = max(round(float(offset)), before + 1)
        found[:, k] = rolling_maximum(rates, end - before)[np.minimum(looks_s + before, len(rates) - 1)]
        before = end
    return found


def rolling_maximum(rates: Floats, size: int) -> Floats:
    """Return the forward rolling maximum: (..., T) the highest of `size` rates from each second on.

    After the end the last rate holds.
    """
    return maximum_filter1d(rates, size, mode="nearest", origin=-(size // 2))


def _grouped(values: Floats, many: int) -> Floats:
    if many == 1:
        return values
    parts = values.reshape(-1, many)
    count = np.isfinite(parts).sum(axis=1)
    return np.divide(np.nansum(parts, axis=1), count, out=np.full(len(parts), np.nan), where=count > 0)
