"""The forecasts that a model must beat: same time last week or yesterday, or the last value, spread by their errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.forecast.core.forecaster import ERRORS, OfTask, State, Task, begin, push
from models.forecast.core.residual_window import FEW
from models.forecast.core.series import Floats, Series


@dataclass(frozen=True)
class Naive(OfTask):
    """Repeats the past, and spreads it by the quantiles of what that has been wrong by so far.

    Attributes:
        task: what is forecast.
        seasonal: same time last week, else yesterday, else the last value; without it always the last value.
        weekly: whether last week is looked at; without it the season is a day.
    """

    task: Task
    seasonal: bool = True
    weekly: bool = True

    @property
    def kind(self) -> str:
        """`seasonal_naive`, `yesterday` or `last_value`."""
        if not self.seasonal:
            return "last_value"
        return "seasonal_naive" if self.weekly else "yesterday"

    def init(self, history: Series) -> State:
        """The state after a history, which may be empty."""
        return begin(self.task, history)

    def step(self, state: State, value: float) -> tuple[State, Floats]:
        """The state one step later (NaN: missing) and its forecast (horizon, levels)."""
        state = push(self.task, state, value)
        return state, self.current(state)

    def current(self, state: State) -> Floats:
        """(horizon, levels) records/s; NaN where nothing was ever seen.

        The centre is the repeated value y(t + h − lag); quantile q is the centre plus the q-quantile of the errors
        y(t) − y(t − lag) so far, not below 0. The median keeps the centre, so that the naive forecast stays naive.
        """
        if state.seen == 0:
            return np.full((self.horizon, len(self.levels)), np.nan)
        seen = state.values[-min(state.seen, len(state.values)) :]
        lag = self._lag(state.seen)
        ahead = np.arange(self.horizon)
        centre = seen[len(seen) - lag + ahead % lag]
        spreads: dict[int, Floats] = {}  # most horizons look equally far back
        for behind in dict.fromkeys(self._behind(len(seen), int(h)) for h in ahead + 1):
            spreads[behind] = _spread(seen, behind, self.levels)
        spread = np.stack([spreads[self._behind(len(seen), int(h))] for h in ahead + 1])
        return np.maximum(centre[:, None] + spread, 0.0)

    def trust(self, state: State) -> str:
        """Which repetition the forecast rests on."""
        if state.seen == 0:
            return "none"
        lag = self._lag(state.seen)
        if lag == 1 and not self.seasonal:
            return "last value"
        return {self.task.week: "same time last week", self.task.day: "same time yesterday"}.get(lag, "last value")

    def _lag(self, seen: int) -> int:
        return next(lag for lag in self._lags() if seen >= lag)

    def _lags(self) -> tuple[int, ...]:
        """How far back may be looked, the farthest first."""
        seasons = (self.task.week, self.task.day) if self.weekly else (self.task.day,)
        return (*seasons, 1) if self.seasonal else (1,)

    def _behind(self, seen: int, h: int) -> int:
        """How far back the errors for h steps ahead look: as the forecast does, if there are a few of them."""
        whole = [lag * -(-h // lag) for lag in self._lags() if seen >= lag]
        return next((behind for behind in whole if seen - behind >= FEW), whole[-1])


def _spread(seen: Floats, behind: int, levels: tuple[float, ...]) -> Floats:
    """(levels,) quantiles of the newest errors of repeating what was that far back, around their median."""
    if len(seen) <= behind:
        return np.zeros(len(levels))
    errors = (seen[behind:] - seen[:-behind])[-ERRORS:]
    found: Floats = np.quantile(errors, levels)
    return found - np.median(errors)
