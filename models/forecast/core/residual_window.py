"""What forecasts were wrong by so far, and the quantiles of that: the spread of every kind without one of its own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from models.forecast.core.ordered import Ordered
from models.forecast.core.series import Floats

FEW = 24
"""An error distribution of fewer errors than this is not trusted; that of the next simpler forecast stands in."""
NEWEST = 500
"""Of how many of the newest forecasts the errors are kept."""


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
        found = outcome - np.diagonal(self.made)  # what h steps ago was said of h steps ahead
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
