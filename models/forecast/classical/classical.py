"""ETS, Theta and ARIMA as one linear recursion around a seasonal curve, stepped from their parameters alone."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import numpy as np

from models.forecast.baselines.naive import Naive
from models.forecast.classical.harmonics import Harmonics, begins
from models.forecast.core.forecaster import Carrying, State, Task, begin
from models.forecast.core.residual_window import NEWEST, ResidualWindow, residual_window
from models.forecast.core.series import Floats, Series


@dataclass(frozen=True)
class Recursion:
    """A linear model in innovations form: ŷ = w·x, and after y came: x ← F·x + g·(y − ŷ) + c.

    ETS, Theta and ARIMA are all of this form (Hyndman et al., Forecasting with Exponential Smoothing, 2008, chapters 2
    and 11), so that one recursion serves them all.

    Attributes:
        w, g, c: (r,) how the state is seen, corrected and moved on.
        F: (r, r) how it evolves.
    """

    w: tuple[float, ...]
    F: tuple[tuple[float, ...], ...]
    g: tuple[float, ...]
    c: tuple[float, ...]

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
        season = self.season.at(ahead)
        centre = np.maximum(state.carried.past.made[0] + season, 0.0)
        spread = state.carried.past.spread(self.levels)
        if spread is None:
            quantiles = Naive(self.task).current(state)
            spread = quantiles - np.median(quantiles, axis=1, keepdims=True)
        found: Floats = np.maximum(centre[:, None] + spread, 0.0)
        return found

    def trust(self, state: State) -> str:
        """The kind, or "none" where nothing was ever seen."""
        return "none" if state.carried is None else self.kind

    def parameters(self) -> dict[str, Any]:
        """All that is needed to build the same forecaster again, as JSON values."""
        return {"season": asdict(self.season), "recursion": asdict(self.recursion)}

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


def revive_classical(kind: str, task: Task, parameters: dict[str, Any]) -> Classical:
    """The forecaster with those `parameters`.

    Raises:
        KeyError: one is missing.
    """
    season, recursion = parameters["season"], parameters["recursion"]
    return Classical(
        kind,
        task,
        Harmonics(**{name: tuple(values) for name, values in season.items()}),
        Recursion(
            tuple(recursion["w"]),
            tuple(tuple(row) for row in recursion["F"]),
            tuple(recursion["g"]),
            tuple(recursion["c"]),
        ),
    )
