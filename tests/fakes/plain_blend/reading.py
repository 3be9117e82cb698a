"""What the experts read at moments, and what a regression says of it."""

from __future__ import annotations

import numpy as np

from models.forecast.blend.lags import AROUND, NEAR, RECENT, Indices, Lags
from models.forecast.blend.ridge import CAP, OFFSET, Ridge
from models.forecast.core.series import Floats


def gather(lags: Lags, values: Floats, at: Indices) -> Floats:
    """The columns at moments.

    Args:
        values: (T,) records/s, gaps filled; NaN before the series began.
        at: (N,) index of each moment's own step, the newest known.

    Returns:
        (N, columns) records/s; NaN where the series does not reach back so far. Means are over what there is.
    """
    recent = _take(values, at[:, None] - np.arange(RECENT))
    parts = [recent, np.nanmean(recent[:, :NEAR], axis=1, keepdims=True)]
    parts.extend(mean(values, at, length)[:, None] for length in lags.windows)
    for season in lags.seasons:
        back = season.steps * np.arange(season.repeats)
        where = season.offsets[None, :] - back[:, None]
        if len(lags.points) > 1:
            found = _take(values, at[:, None, None, None] + where[..., None] + lags.points).mean(axis=-1)
        else:
            found = _take(values, at[:, None, None] + where)  # (N, repeats, lags)
        known = np.isfinite(found)
        count = known.sum(axis=1)
        total = np.where(known, found, 0.0).sum(axis=1)
        profile = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)
        anchor = slice(AROUND, AROUND + NEAR)
        parts += [found[:, 0], profile, found[:, 0, anchor].mean(axis=1, keepdims=True)]
        parts.append(profile[:, anchor].mean(axis=1, keepdims=True))
    return np.concatenate(parts, axis=1)


def mean(values: Floats, at: Indices, length: int) -> Floats:
    """(N,) means over the `length` steps that end at each moment, or as many as there are."""
    begin = max(int(at.min()) - length + 1, 0)
    part = values[begin : int(at.max()) + 1]
    known = np.isfinite(part)
    if len(at) == 1:
        return np.array([part[known].mean() if known.any() else np.nan])
    total = np.concatenate([[0.0], np.cumsum(np.where(known, part, 0.0))])
    count = np.concatenate([[0], np.cumsum(known)])
    until = at - begin + 1
    since = np.maximum(until - length, 0)
    seen = count[until] - count[since]
    found: Floats = np.divide(total[until] - total[since], seen, out=np.full(len(at), np.nan), where=seen > 0)
    return found


def backward(ridge: Ridge, z: Floats) -> Floats:
    """The multiples of the level that f gives z for, not below 0."""
    if ridge.scale == "log":
        return np.maximum(np.exp(np.minimum(z, 50.0)) - OFFSET, 0.0)
    ratio: Floats = np.maximum(z, 0.0)
    return ratio * ratio if ridge.scale == "root" else ratio


def predict(ridge: Ridge, coefficients: Floats, gathered: Floats, levels: Floats) -> Floats:
    """(N, H) records/s; NaN where the series does not reach back far enough, or nothing was learnt yet."""
    base, differences = ridge.rows(gathered, levels)
    z = base + np.einsum("nhp,hp->nh", differences, coefficients)
    highest = np.fmax.reduce(gathered, axis=1, keepdims=True)
    said: Floats = np.minimum(backward(ridge, z) * levels[:, None], CAP * highest)
    return said


def _take(values: Floats, at: Indices) -> Floats:
    """Values at indices; NaN before the first."""
    return np.where(at >= 0, values[np.maximum(at, 0)], np.nan)
