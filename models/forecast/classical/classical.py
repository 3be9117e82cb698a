"""ETS, Theta and ARIMA as one linear recursion around a seasonal curve, stepped from their parameters alone."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from models.forecast.baselines.naive import Naive
from models.forecast.core.forecaster import WEEK_S, State, Task, begin
from models.forecast.core.residuals import NEWEST, ResidualWindow, residual_window
from models.forecast.core.series import Floats, Series
from models.forecast.core.tracks import Carrying


@dataclass(frozen=True)
class Harmonics:
    """s(t) = c₀ + Σ aₖ·cos(2πkt/week) + bₖ·sin(2πkt/week), t in epoch seconds.

    Attributes:
        orders: (K,) waves per week, each k.
        coefficients: (1 + 2K,) c₀, then every aₖ, then every bₖ, in the series' unit.
    """

    orders: list[int]
    coefficients: list[float]

    def at(self, times: Floats) -> Floats:
        """(T,) the curve at epoch seconds."""
        found: Floats = waves(times, self.orders) @ np.array(self.coefficients)
        return found


@dataclass(frozen=True)
class Recursion:
    """A linear model in innovations form: ŷ = w·x, and after y came: x ← F·x + g·(y − ŷ) + c.

    ETS, Theta and ARIMA are all of this form (Hyndman et al., Forecasting with Exponential Smoothing, 2008, chapters 2
    and 11), so that one recursion serves them all.

    Attributes:
        w, g, c: (r,) how the state is seen, corrected and moved on.
        F: (r, r) how it evolves.
    """

    w: list[float]
    F: list[list[float]]
    g: list[float]
    c: list[float]

    def start(self, first: float) -> Floats:
        """(r,) the state as if the load had always been `first`, as near as the model can."""
        rows = np.vstack([np.array(self.F) - np.eye(len(self.w)), self.w])
        found: Floats = np.linalg.lstsq(rows, np.append(-np.array(self.c), first), rcond=None)[0]
        return found

    def ahead(self, horizon: int) -> tuple[Floats, Floats]:
        """(horizon, r) and (horizon,): the forecast h steps ahead is row h of the first times x, plus the second."""
        F, c = np.array(self.F), np.array(self.c)
        rows, added = [np.array(self.w)], [0.0]
        for _ in range(horizon - 1):
            added.append(added[-1] + float(rows[-1] @ c))
            rows.append(rows[-1] @ F)
        return np.stack(rows), np.array(added)


@dataclass(frozen=True, eq=False)
class ClassicalState:
    """What is carried from step to step.

    Attributes:
        x: (r,) the recursion's state.
        past: its newest forecasts without their season, and their errors.
    """

    x: Floats
    past: ResidualWindow


class Classical(Carrying):
    """A recursion on what a seasonal curve leaves over, spread by the quantiles of what it was wrong by so far."""

    carries: ClassVar[Any] = ClassicalState

    def __init__(self, kind: str, task: Task, season: Harmonics, recursion: Recursion) -> None:
        self.kind, self.task, self.season, self.recursion = kind, task, season, recursion
        self._ahead, self._added = recursion.ahead(task.horizon)
        self._F, self._g, self._c = (np.array(part) for part in (recursion.F, recursion.g, recursion.c))

    def init(self, history: Series) -> State:
        """The state after a history, which may be empty."""
        state = begin(self.task, history)
        known = np.flatnonzero(np.isfinite(history.values))
        if not len(known):
            return state
        left: Floats = history.values - self.season.at(begins(history))
        return replace(state, carried=self._run(left[known[0] :]))

    def carry(self, before: State, after: State, value: float) -> ClassicalState:
        """What is carried one step later; `step` asks for it."""
        left = value - float(self.season.at(np.array([before.time]))[0])
        return self._run(np.array([left])) if before.carried is None else self._moved(before.carried, left)

    def current(self, state: State) -> Floats:
        """(horizon, levels) records/s; NaN where nothing was ever seen.

        The median is the recursion's forecast plus the season; level q lies the q-quantile of the errors so many steps
        ahead away from it, as in the naive forecast, whose spread stands in while there are few.
        """
        if state.carried is None:
            return np.full((self.horizon, len(self.levels)), np.nan)
        ahead: Floats = state.time + self.step_s * np.arange(self.horizon, dtype=np.float64)
        past: ResidualWindow = state.carried.past
        return Naive(self.task).around(np.maximum(past.made[0] + self.season.at(ahead), 0.0), past, state)

    def trust(self, state: State) -> str:
        """The kind, or "none" where nothing was ever seen."""
        return "none" if state.carried is None else self.kind

    def _run(self, left: Floats) -> ClassicalState:
        """The recursion over (T,) values without season, the first of which is known."""
        x, xs = self.recursion.start(float(left[0])), []
        for value in left:
            x = self._next(x, value)
            xs.append(x)
        newest = np.stack(xs[-NEWEST - self.horizon :])
        made = newest @ self._ahead.T + self._added  # (N, horizon)
        return ClassicalState(x, residual_window(made, left[len(left) - len(newest) :]))

    def _moved(self, carried: ClassicalState, left: float) -> ClassicalState:
        x = self._next(carried.x, left)
        return ClassicalState(x, carried.past.moved(left, x @ self._ahead.T + self._added))

    def _next(self, x: Floats, left: float) -> Floats:
        error = 0.0 if math.isnan(left) else left - float(self._ahead[0] @ x)
        moved: Floats = self._F @ x + self._g * error + self._c
        return moved


def begins(series: Series) -> Floats:
    """(T,) epoch seconds at which each step begins."""
    return np.asarray(series.start + series.step_s * np.arange(len(series)), dtype=np.float64)


def waves(times: Floats, orders: list[int]) -> Floats:
    """(T, 1 + 2K) a one, every cosine and every sine of a week's waves at epoch seconds."""
    angle = 2 * np.pi / WEEK_S * np.multiply.outer(times % WEEK_S, np.array(orders, dtype=np.float64))
    return np.concatenate([np.ones((len(times), 1)), np.cos(angle), np.sin(angle)], axis=1)
