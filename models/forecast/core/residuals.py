"""The newest forecast errors of a series, kept sorted: the spread of every forecaster without one of its own."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from models.forecast.core.series import Floats

FEW = 24
"""With fewer errors than this the spread of the naive forecast stands in."""
NEWEST = 500
"""Errors are kept of so many of the newest forecasts."""


class SortedWindows(NamedTuple):
    """W windows of at most `size` values each, every one kept sorted.

    Attributes:
        rising: (W, size + 1) each window's values in rising order; beyond its count the content is meaningless.
        counts: (W,) values in each window.
    """

    rising: Floats
    counts: NDArray[np.int64]

    @staticmethod
    def sort(windows: list[Floats], size: int) -> SortedWindows:
        """Build from W unsorted (n,) windows of at most `size` values each; values that are not finite are left out.

        Raises:
            ValueError: a window has more than `size + 1` finite values.
        """
        ordered = SortedWindows(np.empty((len(windows), size + 1)), np.zeros(len(windows), dtype=np.int64))
        for i, values in enumerate(windows):
            known = np.sort(values[np.isfinite(values)])
            ordered.counts[i] = len(known)
            ordered.rising[i, : len(known)] = known
        return ordered

    def replace_each(self, gone: Floats, fresh: Floats) -> SortedWindows:
        """Return a copy in which one value of each window is replaced by another.

        Args:
            gone: (W,) values that leave, each of them in its window; NaN: none.
            fresh: (W,) values that enter; NaN: none.
        """
        after = SortedWindows(self.rising.copy(), self.counts.copy())
        _exchange_all(after.rising, after.counts, gone, fresh)
        return after

    def spread(self, levels: tuple[float, ...]) -> Floats:
        """Return (W, levels) quantiles minus the median, linearly interpolated; NaN for an empty window."""
        found: Floats = _spread(self.rising, self.counts, np.array(levels))
        return found


@dataclass(frozen=True, eq=False)
class ResidualWindow:
    """The newest forecasts and forecast errors of one series.

    Attributes:
        made: (horizon, horizon) the newest forecasts, records/s, newest first; NaN where none was made.
        errors: (at most NEWEST, horizon) outcome minus forecast, newest outcome last, column h - 1 of the forecast
            issued h steps before; NaN unknown.
    """

    made: Floats
    errors: Floats

    def after_step(self, outcome: float, made: Floats) -> ResidualWindow:
        """Return a new window with the errors of one more step (of the newest 500) and the forecast made after it.

        Args:
            outcome: records/s of the step; NaN: missing, its errors are unknown.
            made: (horizon,) records/s forecast after it; of another length: numpy's ValueError.
        """
        errors = outcome - np.diagonal(self.made)  # what h steps ago was issued for h steps ahead
        full = len(self.errors) == NEWEST
        after = ResidualWindow(
            np.concatenate([made[None], self.made[:-1]]), np.concatenate([self.errors[full:], errors[None]])
        )
        gone = self.errors[0] if full else np.full(len(errors), np.nan)
        after.__dict__["_ordered"] = self._ordered.replace_each(gone, errors)  # updated, instead of sorted again
        return after

    def spread(self, levels: tuple[float, ...]) -> Floats | None:
        """Return (horizon, levels) quantiles of the errors minus their median, in records/s.

        Returns:
            None while fewer than `FEW` errors are known at the farthest horizon.
        """
        return self._ordered.spread(levels) if self._ordered.counts[-1] >= FEW else None

    @cached_property
    def _ordered(self) -> SortedWindows:
        return SortedWindows.sort(list(self.errors.T), NEWEST)


def build_residual_window(made: Floats, outcomes: Floats) -> ResidualWindow:
    """Build the window of past forecasts and the newest 500 steps' errors at once; as `after_step` step by step.

    Args:
        made: (N, horizon) records/s forecast after each of N steps, oldest first, N at least 1.
        outcomes: (N,) records/s of these N steps; NaN: missing. Of another length: numpy's ValueError.
    """
    count, horizon = made.shape
    errors = np.full(made.shape, np.nan)
    for h in range(1, min(horizon, count - 1) + 1):
        errors[h:, h - 1] = outcomes[h:] - made[:-h, h - 1]
    pending = np.full((horizon, horizon), np.nan)
    newest = made[::-1][:horizon]
    pending[: len(newest)] = newest
    return ResidualWindow(pending, errors[-NEWEST:])


@numba.njit(cache=True)
def _place(ordered: Any, count: int, value: float) -> int:
    """Return how many of the first `count` sorted values are below `value`, by bisection."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if ordered[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@numba.njit(cache=True)
def replace_sorted(ordered: Any, count: int, gone: float, fresh: float) -> int:
    """Remove one value from a sorted array and insert another, in place, keeping it sorted.

    Compiled: neither the length nor whether `gone` is there is checked.

    Args:
        ordered: (at least count + 1,) rising values, of which the first `count` are valid.
        count: how many values it has.
        gone: value to remove, which must be in it; NaN: none.
        fresh: value to insert; NaN: none.

    Returns:
        How many values it has now.
    """
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
def _exchange_all(rising: Any, counts: Any, gone: Any, fresh: Any) -> None:
    for i in range(len(counts)):
        counts[i] = replace_sorted(rising[i], counts[i], gone[i], fresh[i])


@numba.njit(cache=True)
def _at(rising: Any, count: int, level: float) -> float:
    where = (count - 1) * level
    below = int(where)
    above = min(below + 1, count - 1)
    return float(rising[below] + (rising[above] - rising[below]) * (where - below))


@numba.njit(cache=True)
def _spread(rising: Any, counts: Any, levels: Any) -> Any:
    found = np.full((len(counts), len(levels)), np.nan)
    for i in range(len(counts)):
        if counts[i]:
            median = _at(rising[i], counts[i], 0.5)
            for q in range(len(levels)):
                found[i, q] = _at(rising[i], counts[i], levels[q]) - median
    return found
