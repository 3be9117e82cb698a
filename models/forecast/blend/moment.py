"""What the blend's experts read and forecast at one moment, compiled; `tables` is an `experts.IndexTables`."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from models.forecast.blend.experts import LEAST, YESTERDAY
from models.forecast.blend.lags import AROUND, NEAR, RECENT
from models.forecast.blend.ridge import CAP, OFFSET

JUMP = 6.0  # times the usual change from step to step: a larger change is a jump
ALIKE = 0.5  # share of a jump: one a day earlier that differs by less confirms it


@numba.njit(cache=True)
def _sum(values: Any) -> float:
    """Sum in the same order as `np.sum` on contiguous memory, so that the last bit is the same."""
    count = len(values)
    if count > 128:
        half = count // 2
        half -= half % 8
        total: float = _sum(values[:half]) + _sum(values[half:])
        return total
    if count < 8:
        few = 0.0
        for value in values:
            few += value
        return few
    a, b, c, d, e, f, g, h = values[:8]
    whole = count - count % 8
    for i in range(8, whole, 8):
        a += values[i]
        b += values[i + 1]
        c += values[i + 2]
        d += values[i + 3]
        e += values[i + 4]
        f += values[i + 5]
        g += values[i + 6]
        h += values[i + 7]
    total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for i in range(whole, count):
        total += values[i]
    return total


@numba.njit(cache=True, error_model="numpy")
def fill_regressors(tables: Any, buffer: Any, end: int, seen: int, sums: Any, weights: Any, columns: Any) -> float:
    """Fill the row of loads that the experts read after the newest step, and add that step to the running means.

    Args:
        tables: which steps a column reads, see `IndexTables`.
        buffer: of the `Ring`, (2 · kept + 1,) records/s, gaps filled. Compiled: neither shapes nor indices are checked.
        end: index after its newest value, at least `kept`.
        seen: known values in the ring, at least 1.
        sums: (means,) decayed sums of the long-run mean and the running means, records/s, changed in place.
        weights: (means,) their decayed counts, changed in place.
        columns: (columns,) records/s, filled in the order of `Lags`; NaN where the history does not reach.

    Returns:
        The level: mean of the newest day in records/s, at least 1 % of the long-run mean; 0 while all loads were.
    """
    newest = end - 1
    for m in range(len(sums)):
        sums[m] = tables.keep[m] * sums[m] + buffer[newest]
        weights[m] = tables.keep[m] * weights[m] + 1
    total, count = 0.0, 0
    for i in range(RECENT):
        columns[i] = buffer[newest - i]
        if i < NEAR and not math.isnan(columns[i]):
            total, count = total + columns[i], count + 1
    columns[tables.near] = total / count
    for i in range(len(tables.windows)):
        length = min(tables.windows[i], seen)
        columns[tables.near + 1 + i] = _sum(buffer[end - length : end]) / length
    at, many, around = tables.near + 1 + len(tables.windows), tables.lags.shape[2], np.empty(len(tables.points))
    for season in range(2):
        for i in range(many):
            total, count = 0.0, 0
            for k in range(tables.repeats[season]):
                there = newest + tables.lags[season, k, i]
                for j in range(len(around)):
                    around[j] = buffer[there + tables.points[j]]
                value = _sum(around) / len(around) if len(around) > 1 else around[0]
                if k == 0:
                    columns[at + i] = value
                if not math.isnan(value):
                    total, count = total + value, count + 1
            columns[at + many + i] = total / count
        columns[at + 2 * many] = _sum(columns[at + AROUND : at + AROUND + NEAR]) / NEAR
        columns[at + 2 * many + 1] = _sum(columns[at + many + AROUND : at + many + AROUND + NEAR]) / NEAR
        at += 2 * many + 2
    level: float = max(columns[tables.near + 1], LEAST * (sums[0] / weights[0]))
    return level


@numba.njit(cache=True, error_model="numpy")
def forecast_experts(tables: Any, columns: Any, level: float, means: Any, coefficients: Any, forecasts: Any) -> None:
    """Fill in every expert's forecast for 1 to `horizon` steps ahead. Compiled: shapes are not checked.

    Naive experts repeat a column or a running mean. A regression adds weighted differences of scaled columns to a base
    column; its forecasts are at least 0 and at most three times the highest load in `columns`.

    Args:
        tables: which columns an expert reads, see `IndexTables`.
        columns: (columns,) records/s, as `fill_regressors` filled them.
        level: records/s, as `fill_regressors` returned it; at 0 the regressions have no forecast.
        means: (means,) records/s: the long-run mean, then the running means.
        coefficients: (R, horizon, p) of the R regressions, padded to p regressors; NaN before they have learnt.
        forecasts: (E, horizon) records/s, filled in the order of `Experts`; NaN where an expert has none.
    """
    horizon, plain, highest = forecasts.shape[1], YESTERDAY + 3, 0.0
    z = np.empty((3, len(columns)))
    for i in range(len(columns)):
        ratio = columns[i] / level
        z[0, i], z[1, i], z[2, i] = ratio, math.sqrt(ratio), math.log(ratio + OFFSET)
        if columns[i] > highest:
            highest = columns[i]
    for h in range(horizon):
        forecasts[0, h] = columns[0]
        for m in range(1, len(means)):
            forecasts[m, h] = means[m]
        for i in range(3):
            forecasts[YESTERDAY + i, h] = columns[tables.naive[i, h]]
    for r in range(len(tables.widths)):
        scale = tables.scales[r]
        read = z[scale]
        for h in range(horizon):
            at = read[tables.base[r, h]]
            for i in range(tables.widths[r]):
                at += (read[tables.plus[r, h, i]] - read[tables.minus[r, h, i]]) * coefficients[r, h, i]
            if not math.isnan(at):
                if scale == 2:
                    at = max(math.exp(min(at, 50.0)) - OFFSET, 0.0)
                else:
                    at = max(at, 0.0) ** 2 if scale == 1 else max(at, 0.0)
                at = min(at * level, CAP * highest)
            forecasts[plain + r, h] = at


@numba.njit(cache=True)
def filter_jumps(tables: Any, buffer: Any, end: int, seen: int, forecasts: Any) -> None:
    """Drop the forecasts of experts that read yesterday, from the first unrepeated jump on, by setting them to NaN.

    A jump is a change from one step to the next of more than 6 times the newest day's mean change. It is unrepeated
    where the change at that time a day earlier is unknown or differs by at least half its size. Nothing changes where a
    day has fewer than 2 steps. Compiled: shapes are not checked.

    Args:
        tables: steps of a day, and which experts read yesterday.
        buffer: of the `Ring`, records/s, gaps filled.
        end: index after its newest value.
        seen: known values in the ring.
        forecasts: (E, horizon) records/s, changed in place.
    """
    day, newest, usual = tables.day, end - 1, 0.0
    first = end - seen
    if day < 2:
        return
    for i in range(max(newest - day + 1, first + 1), end):
        usual += abs(buffer[i] - buffer[i - 1])
    usual /= day
    silent = False
    for h in range(1, forecasts.shape[1] + 1):
        i = newest + h - day * (-(-h // day))  # the newest day that is known at that time
        if i > first and not silent:
            here = buffer[i] - buffer[i - 1]
            before = buffer[i - day] - buffer[i - day - 1] if i - day > first else math.nan
            silent = abs(here) > JUMP * usual and not abs(here - before) < ALIKE * abs(here)
        if silent:
            for e in range(len(forecasts)):
                if tables.daily[e]:
                    forecasts[e, h - 1] = math.nan
