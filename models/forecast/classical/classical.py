"""ETS, Theta and ARIMA as one linear recursion around a seasonal curve, stepped from their parameters alone."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from configs.bounds import WEEK_S
from models.forecast.baselines.naive import Naive
from models.forecast.core.forecaster import State, Task, begin_state
from models.forecast.core.residuals import NEWEST, ResidualWindow, build_residual_window
from models.forecast.core.series import Floats, Series
from models.forecast.core.tracks import Carrying


@dataclass(frozen=True)
class Harmonics:
    """Seasonal curve s(t) = c₀ + Σ aₖ·cos(2πkt/week) + bₖ·sin(2πkt/week), t in epoch seconds.

    Attributes:
        orders: (K,) waves per week, each k.
        coefficients: (1 + 2K,) c₀, then every aₖ, then every bₖ, in the series' unit.
    """

    orders: list[int]
    coefficients: list[float]

    def at(self, times: Floats) -> Floats:
        """Return the curve at (T,) epoch seconds, in the series' unit."""
        found: Floats = waves(times, self.orders) @ np.array(self.coefficients)
        return found


@dataclass(frozen=True)
class Recursion:
    """Linear state-space model in innovations form: ŷ = w·x, and after y came: x ← F·x + g·(y − ŷ) + c.

    ETS, Theta and ARIMA all have this form (Hyndman et al., Forecasting with Exponential Smoothing, 2008, chapters 2
    and 11).

    Attributes:
        w, g, c: (r,) observation, gain and constant vectors.
        F: (r, r) transition matrix.
    """

    w: list[float]
    F: list[list[float]]
    g: list[float]
    c: list[float]

    def start_state(self, first: float) -> Floats:
        """Return the (r,) state that comes nearest to a load that has always been `first` (least squares)."""
        rows = np.vstack([np.array(self.F) - np.eye(len(self.w)), self.w])
        found: Floats = np.linalg.lstsq(rows, np.append(-np.array(self.c), first), rcond=None)[0]
        return found

    def forecast_map(self, horizon: int) -> tuple[Floats, Floats]:
        """Return the linear map from a state x to its forecasts 1 to `horizon` (at least 1) steps ahead.

        Returns:
            `rows`, (horizon, r), and `added`, (horizon,), in the unit of the fitted loads: forecasts are `rows @ x +
            added`.
        """
        F, c = np.array(self.F), np.array(self.c)
        rows, added = [np.array(self.w)], [0.0]
        for _ in range(horizon - 1):
            added.append(added[-1] + float(rows[-1] @ c))
            rows.append(rows[-1] @ F)
        return np.stack(rows), np.array(added)


@dataclass(frozen=True, eq=False)
class ClassicalState:
    """What a `Classical` forecaster carries from step to step.

    Attributes:
        x: (r,) the recursion's state.
        past: its newest forecasts without the seasonal curve, and their errors, records/s.
    """

    x: Floats
    past: ResidualWindow


class Classical(Carrying):
    """ETS, Theta or ARIMA on the residual of a seasonal curve, with the quantiles of its past errors around it."""

    carries: ClassVar[Any] = ClassicalState

    def __init__(self, kind: str, task: Task, season: Harmonics, recursion: Recursion) -> None:
        self.kind, self.task, self.season, self.recursion = kind, task, season, recursion
        self._ahead, self._added = recursion.forecast_map(task.horizon)
        self._F, self._g, self._c = (np.array(part) for part in (recursion.F, recursion.g, recursion.c))

    def state_after(self, history: Series) -> State:
        """Build the state at the end of a history (may be empty); the recursion runs from its first known step.

        `carried` is None where no step is known, else it holds at most 500 errors per step ahead.

        Raises:
            SeriesError: the history has another step than the task, or negative or infinite values.
        """
        state = begin_state(self.task, history)
        known = np.flatnonzero(np.isfinite(history.values))
        if not len(known):
            return state
        left: Floats = history.values - self.season.at(begins(history))
        return replace(state, carried=self._run(left[known[0] :]))

    def next_carried(self, before: State, after: State, value: float) -> ClassicalState:
        """Return the recursion's state and errors after one more step.

        Args:
            before: the state before the step.
            after: not used.
            value: records/s of the step; NaN: missing, the recursion moves on without a correction.
        """
        left = value - float(self.season.at(np.array([before.time]))[0])
        return self._run(np.array([left])) if before.carried is None else self._moved(before.carried, left)

    def quantiles_of(self, state: State) -> Floats:
        """Return the (horizon, levels) quantile forecast at a state in records/s; NaN while nothing was ever seen.

        Quantile q is the recursion's forecast plus the seasonal curve, at least 0, plus quantile q of its newest errors
        minus their median (see `Naive.quantiles_around`), again at least 0.
        """
        if state.carried is None:
            return np.full((self.horizon, len(self.levels)), np.nan)
        ahead: Floats = state.time + self.step_s * np.arange(self.horizon, dtype=np.float64)
        past: ResidualWindow = state.carried.past
        return Naive(self.task).quantiles_around(np.maximum(past.made[0] + self.season.at(ahead), 0.0), past, state)

    def basis(self, state: State) -> str:
        """Return the kind, or "none" while nothing was ever seen."""
        return "none" if state.carried is None else self.kind

    def _run(self, left: Floats) -> ClassicalState:
        """Run the recursion over (T,) values without season, the first of which is known."""
        x, xs = self.recursion.start_state(float(left[0])), []
        for value in left:
            x = self._next(x, value)
            xs.append(x)
        newest = np.stack(xs[-NEWEST - self.horizon :])
        made = newest @ self._ahead.T + self._added  # (N, horizon)
        return ClassicalState(x, build_residual_window(made, left[len(left) - len(newest) :]))

    def _moved(self, carried: ClassicalState, left: float) -> ClassicalState:
        x = self._next(carried.x, left)
        return ClassicalState(x, carried.past.after_step(left, x @ self._ahead.T + self._added))

    def _next(self, x: Floats, left: float) -> Floats:
        error = 0.0 if math.isnan(left) else left - float(self._ahead[0] @ x)
        moved: Floats = self._F @ x + self._g * error + self._c
        return moved


def begins(series: Series) -> Floats:
    """Return the (T,) epoch seconds at which each step begins."""
    return np.asarray(series.start + series.step_s * np.arange(len(series)), dtype=np.float64)


def waves(times: Floats, orders: list[int]) -> Floats:
    """Return the regressors of a weekly Fourier series at (T,) epoch seconds.

    Args:
        times: epoch seconds.
        orders: (K,) waves per week.

    Returns:
        (T, 1 + 2K): ones, K cosines, K sines.
    """
    angle = 2 * np.pi / WEEK_S * np.multiply.outer(times % WEEK_S, np.array(orders, dtype=np.float64))
    return np.concatenate([np.ones((len(times), 1)), np.cos(angle), np.sin(angle)], axis=1)
