"""How far a load, or the size of its forecast errors, lies outside its usual range at the same time of day."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from configs.bounds import DAY_S
from models.forecast.core.series import Floats, Series

WEEKS = 4
"""Comparable are yesterday and the same day of so many weeks before; within the first week every day before."""
_OFFSET = 0.02  # share of the mean so far, added to loads before their ratio, for zeros
_HIGHEST = 1.0  # |log error| of one forecast counts at most so much: wrong by a factor of e


@dataclass(frozen=True, eq=False)
class BlockMeans:
    """Means over equal blocks of time, which begin at multiples of `span_s` since the epoch.

    Attributes:
        start: epoch seconds at which the first begins.
        span_s: seconds each covers.
        values: (N,) means; NaN where less than half of the steps were known.
    """

    start: float
    span_s: float
    values: Floats

    @property
    def day(self) -> int:
        """Means per day, rounded."""
        return max(round(DAY_S / self.span_s), 1)

    def end_of(self, index: int) -> float:
        """Return the epoch seconds at which the mean of that index ends."""
        return self.start + (index + 1) * self.span_s


def block_means(series: Series, steps: int) -> BlockMeans:
    """Average a series over blocks of time, which begin at multiples of their length since the epoch.

    Incomplete blocks at either end are left out.

    Args:
        series: in any unit; NaN: missing. A step length of 0: ZeroDivisionError.
        steps: of the series per block; cut to 1 .. a quarter of a day.

    Returns:
        The means, maybe none, in the series' unit; NaN where less than half of a block was known.
    """
    day = max(round(DAY_S / series.step_s), 1)
    steps = max(min(steps, day // 4), 1)
    span_s = steps * series.step_s
    first = math.ceil(series.start / span_s - 1e-6)
    lead = round((first * span_s - series.start) / series.step_s)
    count = max((len(series) - lead) // steps, 0)
    parts = series.values[lead : lead + count * steps].reshape(count, steps)
    known = np.isfinite(parts)
    seen = known.sum(axis=1)
    sums = np.where(known, parts, 0.0).sum(axis=1)
    return BlockMeans(
        first * span_s, span_s, np.divide(sums, seen, out=np.full(count, np.nan), where=2 * seen >= steps)
    )


@dataclass(frozen=True)
class Shift:
    """A known change of level.

    Attributes:
        time: epoch seconds from which on it holds.
        by: its size, a log ratio for a load; earlier values moved by it count as usual beside the original ones.
    """

    time: float
    by: float


def load_surprise(load: BlockMeans, shift: Shift | None = None) -> Floats:
    """Return how far a load lies outside its usual range, as log ratio to the nearest end of that range.

    The range is that of the same time yesterday and on the same weekday of the last 4 weeks; within the first week, of
    every day before. 2 % of the mean load so far is added to both before the ratio, for zeros.

    Args:
        load: means in records/s, at least 0 (not checked).
        shift: a known change of level, after which the new level is usual too.

    Returns:
        (N,) log ratios: 0 within the range, about 0.26 at 30 % above it; NaN where the load or its range is unknown.
    """
    known = np.isfinite(load.values)
    total = np.cumsum(np.where(known, load.values, 0.0))
    offset = _OFFSET * total / np.maximum(np.cumsum(known), 1)
    moved = load.values * math.exp(shift.by) if shift else None
    lowest, highest = _usual(load, moved, shift)
    nearest = np.clip(load.values, lowest, highest)
    ratio = np.divide(load.values + offset, nearest + offset, out=np.ones(len(known)), where=nearest + offset > 0)
    return np.where(np.isfinite(nearest), np.log(ratio), np.nan)


def error_size(errors: Series, steps: int) -> BlockMeans:
    """Return block means of |log(actual/forecast)|, each value cut to at most 1.

    Args:
        errors: (T,) log(actual/forecast); NaN where there is no forecast or no load.
        steps: as in `block_means`.
    """
    return block_means(Series(errors.start, errors.step_s, np.minimum(np.abs(errors.values), _HIGHEST)), steps)


def error_surprise(size: BlockMeans, shift: Shift | None = None) -> Floats:
    """Return (N,) by how much the size of the errors exceeds its usual range; 0 within or below it.

    Args:
        size: as `error_size` returns it.
        shift: a known change of that size, after which the new size is usual too.

    Returns:
        NaN where the size or its usual range is unknown.
    """
    moved = size.values + shift.by if shift else None
    _, highest = _usual(size, moved, shift)
    return np.maximum(size.values - highest, 0.0)


def _usual(means: BlockMeans, moved: Floats | None, shift: Shift | None) -> tuple[Floats, Floats]:
    """Return (N,) the lowest and (N,) the highest mean at the same time on comparable days; NaN where there is none.

    For a week after a known shift the days before it count both as they were and moved: in that week each hour is met
    at the new level for the first time, and that is not another change.
    """
    day, count = means.day, len(means.values)
    onset = count if shift is None else max(round((shift.time - means.start) / means.span_s), 0)
    week = 7 * day
    lowest, highest = np.full(count, np.nan), np.full(count, np.nan)
    lags = [day, *(k * week for k in range(1, WEEKS + 1))]
    for lag in [*lags, *(k * day for k in range(2, 7))]:
        reaches = count if lag in lags else min(week, count)
        if lag < reaches:
            then, at = means.values[: reaches - lag], slice(lag, reaches)
            lowest[at], highest[at] = np.fmin(lowest[at], then), np.fmax(highest[at], then)
        met = min(reaches, onset + min(lag, week))
        if moved is not None and max(lag, onset) < met:
            at = slice(max(lag, onset), met)
            then = moved[at.start - lag : at.stop - lag]
            lowest[at], highest[at] = np.fmin(lowest[at], then), np.fmax(highest[at], then)
    return lowest, highest
