"""The forecasts that a model must beat: same time last week or yesterday, or the last value, spread by their errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.forecast.forecaster import ERRORS, State, Task, begin, push
from models.forecast.series import Floats, Series

FEW = 24
"""An error distribution of fewer errors than this is not trusted; that of the next simpler forecast stands in."""


@dataclass(frozen=True)
class Naive:
    """Repeats the past, and spreads it by the quantiles of what that has been wrong by so far.

    Attributes:
        task: what is forecast.
        seasonal: same time last week, else yesterday, else the last value; without it always the last value.
    """

    task: Task
    seasonal: bool = True

    @property
    def kind(self) -> str:
        """`seasonal_naive` or `last_value`."""
        return "seasonal_naive" if self.seasonal else "last_value"

    @property
    def step_s(self) -> float:
        """Seconds per step."""
        return self.task.step_s

    @property
    def horizon(self) -> int:
        """Steps ahead."""
        return self.task.horizon

    @property
    def levels(self) -> tuple[float, ...]:
        """Quantile levels."""
        return self.task.levels

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
        centre = self._centre(state)
        spread = np.stack([self._spread(state, h) for h in range(1, self.horizon + 1)])
        return np.maximum(centre[:, None] + spread, 0.0)

    def trust(self, state: State) -> str:
        """Which repetition the forecast rests on."""
        if state.seen == 0:
            return "none"
        lag = self._lag(state.seen)
        return {1: "last value", self.task.day: "same time yesterday", self.task.week: "same time last week"}[lag]

    def _lag(self, seen: int) -> int:
        seasons = (self.task.week, self.task.day) if self.seasonal else ()
        return next((lag for lag in seasons if seen >= lag), 1)

    def _centre(self, state: State) -> Floats:
        ahead = np.arange(self.horizon)
        lag = self._lag(state.seen)
        return state.values[len(state.values) - lag + ahead % lag]

    def _spread(self, state: State, h: int) -> Floats:
        """(levels,) the errors' quantiles around their median, of the best repetition that has enough errors."""
        values = state.values[-min(state.seen, len(state.values)) :] if state.seen else state.values[:0]
        for lag in dict.fromkeys((self._lag(state.seen), self._lag(min(state.seen, self.task.week - 1)), 1)):
            back = lag * -(-h // lag)  # h steps ahead is this many steps behind
            errors = (values[back:] - values[:-back])[-ERRORS:]
            if len(errors) >= FEW or (lag == 1 and len(errors)):
                found: Floats = np.quantile(errors, self.levels)
                return found - np.median(errors)
        return np.zeros(len(self.levels))
