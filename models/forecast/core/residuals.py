"""What forecasts were wrong by so far, in order: the spread of every kind without one of its own."""

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
"""An error distribution of fewer errors than this is not trusted; that of the next simpler forecast stands in."""
NEWEST = 500
"""Of how many of the newest forecasts the errors are kept."""


class Ordered(NamedTuple):
    """W windows of at most `size` values.

    Attributes:
        rising: (W, size + 1) the values of each in order, then whatever is left of others.
        counts: (W,) how many there are in each.
    """

    rising: Floats
    counts: NDArray[np.int64]

    @staticmethod
    def of(windows: list[Floats], size: int) -> Ordered:
        """Of the finite ones of (≤ size,) values each."""
        made = Ordered(np.empty((len(windows), size + 1)), np.zeros(len(windows), dtype=np.int64))
        for i, values in enumerate(windows):
            known = np.sort(values[np.isfinite(values)])
            made.counts[i] = len(known)
            made.rising[i, : len(known)] = known
        return made

    def exchanged(self, gone: Floats, fresh: Floats) -> Ordered:
        """One step later: (W,) values leave and (W,) others enter; NaN: none does."""
        after = Ordered(self.rising.copy(), self.counts.copy())
        _exchange_all(after.rising, after.counts, gone, fresh)
        return after

    def spread(self, levels: tuple[float, ...]) -> Floats:
        """(W, levels) quantiles around the median, between two values on the line; NaN of an empty window."""
        found: Floats = _spread(self.rising, self.counts, np.array(levels))
        return found


@dataclass(frozen=True, eq=False)
class ResidualWindow:
    """The newest forecasts and errors of one series.

    Attributes:
        made: (horizon, horizon) the newest forecasts, newest first; NaN where none was made.
        errors: (≤ NEWEST, horizon) outcome minus what was forecast so many steps before, newest last; NaN unknown.
    """

    made: Floats
    errors: Floats

    def moved(self, outcome: float, made: Floats) -> ResidualWindow:
        """One step later: its outcome (NaN: missing) and the new forecast (horizon,)."""
        found = outcome - np.diagonal(self.made)  # what h steps ago was issued for h steps ahead
        full = len(self.errors) == NEWEST
        after = ResidualWindow(
            np.concatenate([made[None], self.made[:-1]]), np.concatenate([self.errors[full:], found[None]])
        )
        gone = self.errors[0] if full else np.full(len(found), np.nan)
        after.__dict__["_ordered"] = self._ordered.exchanged(gone, found)  # not sorted anew
        return after

    def spread(self, levels: tuple[float, ...]) -> Floats | None:
        """(horizon, levels) quantiles of the errors around their median; None while there are few."""
        return self._ordered.spread(levels) if self._ordered.counts[-1] >= FEW else None

    @cached_property
    def _ordered(self) -> Ordered:
        return Ordered.of(list(self.errors.T), NEWEST)


def residual_window(made: Floats, outcomes: Floats) -> ResidualWindow:
    """The same at once: (N, horizon) forecasts made after each of N steps, oldest first, and these steps' outcomes."""
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
def _exchange_all(rising: Any, counts: Any, gone: Any, fresh: Any) -> None:
    for i in range(len(counts)):
        counts[i] = exchange(rising[i], counts[i], gone[i], fresh[i])


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
