"""What forecasts of one series were wrong by, in place: `Matured`, its errors in a ring and in order."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from models.forecast.baselines.naive import FEW
from models.forecast.core.ordered import exchange, spread
from models.forecast.core.residual_window import NEWEST, Matured
from models.forecast.core.series import Floats


@numba.njit(cache=True)
def _take(made: Any, errors: Any, oldest: int, ordered: Any, counts: Any, value: float) -> None:
    for h in range(len(counts)):
        fresh = value - made[h, h]
        counts[h] = exchange(ordered[h], counts[h], errors[oldest, h], fresh)
        errors[oldest, h] = fresh
    for i in range(len(made) - 1, 0, -1):
        made[i] = made[i - 1]


@numba.njit(cache=True)
def _spread(centres: Any, ordered: Any, counts: Any, levels: Any, out: Any) -> None:
    for h in range(len(counts)):
        spread(ordered[h], counts[h], levels, centres[h], out[h])


class Maturing:
    """The newest forecasts and errors of one series; `made` is that of `Matured`, changed in place."""

    def __init__(self, horizon: int, levels: Floats) -> None:
        self.levels, self._taken = levels, 0
        self.made, self._errors = np.full((horizon, horizon), np.nan), np.full((NEWEST, horizon), np.nan)
        self._ordered, self._counts = np.empty((horizon, NEWEST + 1)), np.zeros(horizon, dtype=np.int64)

    def load(self, past: Matured) -> None:
        """Begin with these."""
        self.made[:], self._taken = past.made, 0
        self._errors[:] = np.nan
        self._errors[NEWEST - len(past.errors) :] = past.errors
        for h, column in enumerate(self._errors.T):
            known = np.sort(column[np.isfinite(column)])
            self._ordered[h, : len(known)], self._counts[h] = known, len(known)

    def past(self) -> Matured:
        """All of it, as `load` takes it."""
        return Matured(self.made, np.roll(self._errors, -(self._taken % NEWEST), axis=0))

    def take(self, outcome: float) -> None:
        """One step later: its outcome (NaN: missing), as `Matured.moved`; row 0 of `made` is left for the new one."""
        _take(self.made, self._errors, self._taken % NEWEST, self._ordered, self._counts, outcome)
        self._taken += 1

    def say(self, centres: Floats, out: Floats) -> bool:
        """Fill (horizon, levels): the centres spread by `Matured.spread`, not below 0. False while errors are few."""
        if self._counts[-1] < FEW:
            return False
        _spread(centres, self._ordered, self._counts, self.levels, out)
        return True


def around(centres: Floats, naive: Floats) -> Floats:
    """The centres spread as the naive forecast's quantiles are, while own errors are few."""
    found: Floats = np.maximum(centres[:, None] + (naive - np.median(naive, axis=1, keepdims=True)), 0.0)
    return found
