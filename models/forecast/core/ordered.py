"""Quantiles of a moving window, in place: it is kept in order, so that a step moves a part of it and sorts nothing."""

from __future__ import annotations

import math
from typing import Any

import numba


@numba.njit(cache=True)
def _place(ordered: Any, count: int, value: float) -> int:
    """How many of the values are below this one."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if ordered[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@numba.njit(cache=True)
def exchange(ordered: Any, count: int, gone: float, fresh: float) -> int:
    """Take one value out of (≥ count + 1,) rising ones and put another in; NaN: none. How many there are then."""
    leaves, enters = not math.isnan(gone), not math.isnan(fresh)
    at = _place(ordered, count, gone) if leaves else count
    if not enters:
        for i in range(at, count - leaves):
            ordered[i] = ordered[i + 1]
        return count - leaves
    to = _place(ordered, count, fresh)
    if to > at:
        for i in range(at, to - 1):
            ordered[i] = ordered[i + 1]
        ordered[to - 1] = fresh
    else:
        for i in range(at, to, -1):
            ordered[i] = ordered[i - 1]
        ordered[to] = fresh
    return count + enters - leaves


@numba.njit(cache=True)
def quantile(ordered: Any, count: int, level: float) -> float:
    """As `np.quantile` of the first so many, bit by bit: linear between neighbours; NaN where there is none."""
    if count == 0:
        return math.nan
    place = level * (count - 1)
    low = int(place)
    share, a, b = place - low, ordered[low], ordered[min(low + 1, count - 1)]
    found: float = b - (b - a) * (1.0 - share) if share >= 0.5 else a + (b - a) * share
    return found


@numba.njit(cache=True)
def median(ordered: Any, count: int) -> float:
    """As `np.median` of the first so many; NaN where there is none."""
    if count == 0:
        return math.nan
    found: float = (ordered[(count - 1) // 2] + ordered[count // 2]) / 2.0
    return found


@numba.njit(cache=True)
def spread(ordered: Any, count: int, levels: Any, centre: float, out: Any) -> None:
    """Fill (levels,): the centre, spread by the quantiles around their median, not below 0."""
    middle = median(ordered, count)
    for i in range(len(levels)):
        out[i] = max(centre + (quantile(ordered, count, levels[i]) - middle), 0.0)
