"""A moving window that is kept in order, in place: a step moves a part of it and sorts nothing."""

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
