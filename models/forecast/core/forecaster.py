"""What every forecaster is, and the state they all carry: the newest steps of the series they follow."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np

from models.forecast.core.series import Floats, Series, SeriesError

DAY_S = 86_400.0
WEEK_S = 7 * DAY_S
ERRORS = 2000
"""How many of the newest errors an empirical quantile is taken over, at most."""


@dataclass(frozen=True)
class Task:
    """What is forecast: quantiles at `levels` for the next `horizon` steps of `step_s` seconds."""

    step_s: float
    horizon: int
    levels: tuple[float, ...]

    def __post_init__(self) -> None:
        if not (math.isfinite(self.step_s) and 0 < self.step_s <= DAY_S):
            raise SeriesError(f"step_s={self.step_s}: above 0 s and at most {DAY_S:g} s is expected")
        if self.horizon < 1:
            raise SeriesError(f"horizon={self.horizon}: at least 1 step is expected")
        rising = all(0 < a < b < 1 for a, b in zip((1e-9, *self.levels), self.levels, strict=False))
        if not self.levels or not rising:
            raise SeriesError(f"levels={self.levels}: they must rise within (0, 1)")

    @property
    def day(self) -> int:
        """Steps per day, rounded."""
        return round(DAY_S / self.step_s)

    @property
    def week(self) -> int:
        """Steps per week, rounded."""
        return round(WEEK_S / self.step_s)

    def kept(self, context: int = 0) -> int:
        """Steps a state must hold: for the weekly errors of the naive forecast, and for a context with its lags."""
        return self.week + max(min(self.week, ERRORS), self.day + context)


@dataclass(frozen=True, eq=False)
class State:
    """The newest steps a forecaster has seen.

    Attributes:
        time: epoch seconds at which the next step begins; that is the first step forecast.
        values: (kept,) records/s, newest last, gaps filled; NaN before the series began.
        seen: steps since the series began, gaps included.
        carried: what a kind carries from step to step beside these, None where it carries nothing.
    """

    time: float
    values: Floats
    seen: int
    carried: Any = None


class Described(Protocol):
    """What a forecaster is told apart by."""

    @property
    def kind(self) -> str: ...  # noqa: D102
    @property
    def step_s(self) -> float: ...  # noqa: D102
    @property
    def horizon(self) -> int: ...  # noqa: D102
    @property
    def levels(self) -> tuple[float, ...]: ...  # noqa: D102


class Forecaster(Described, Protocol):
    """Every kind of champion: pure, so that serving, twin and backtest use the same object.

    Attributes:
        kind: what it is, e.g. "gru" or "seasonal_naive".
        step_s, horizon, levels: what it forecasts.
        carries: the type of `State.carried`; None where nothing is carried.
    """

    carries: ClassVar[Any]

    def init(self, history: Series) -> State:
        """The state after a history, which may be empty."""

    def step(self, state: State, value: float) -> tuple[State, Floats]:
        """The state after one more step's mean rate (NaN: it is missing) and (horizon, levels) records/s from there."""

    def current(self, state: State) -> Floats:
        """(horizon, levels) records/s from `state.time` on, rising over levels and ≥ 0; NaN where nothing was seen."""

    def trust(self, state: State) -> str:
        """What `current` rests on: "none", "last value", "same time yesterday", "same time last week" or "network"."""


class _HasTask(Protocol):
    @property
    def task(self) -> Task: ...


class OfTask:
    """The figures of a forecaster's task under their own names; what has a `task` inherits them.

    Attributes:
        carries: the type of `State.carried`, so that it can be read again; None where nothing is carried.
    """

    carries: ClassVar[Any] = None

    @property
    def step_s(self: _HasTask) -> float:
        """Seconds per step."""
        return self.task.step_s

    @property
    def horizon(self: _HasTask) -> int:
        """Steps ahead."""
        return self.task.horizon

    @property
    def levels(self: _HasTask) -> tuple[float, ...]:
        """Quantile levels."""
        return self.task.levels


class Carrying(OfTask):
    """A forecaster that carries its newest quantiles, or whatever else, from step to step beside the newest values."""

    def step(self: _Carrying, state: State, value: float) -> tuple[State, Floats]:
        """The state one step later (NaN: missing) and its forecast (horizon, levels)."""
        after = push(self.task, state, value)
        if not after.seen:
            return after, self.current(after)
        after = replace(after, carried=self.carry(state, after, value))
        return after, self.current(after)

    def current(self: _HasTask, state: State) -> Floats:
        """(horizon, levels) records/s; NaN where nothing was ever seen."""
        if state.carried is None:
            return np.full((self.task.horizon, len(self.task.levels)), np.nan)
        quantiles: Floats = state.carried.quantiles
        return quantiles


class _Carrying(_HasTask, Protocol):
    def current(self, state: State) -> Floats: ...
    def carry(self, before: State, after: State, value: float) -> Any:
        """What is carried one step later, given the state before and, without what is carried, the one after."""


def begin(task: Task, history: Series, context: int = 0) -> State:
    """The state after a history; leading gaps count as not yet begun.

    Raises:
        SeriesError: the history has another step, or negative or infinite values.
    """
    values = fill(check_history(task, history), task)
    known = np.flatnonzero(np.isfinite(values))
    values = values[known[0] :] if len(known) else values[:0]
    ring = np.full(task.kept(context), np.nan)
    kept = values[-len(ring) :]
    if len(kept):
        ring[-len(kept) :] = kept
    return State(history.end, ring, len(values))


def check_history(task: Task, history: Series) -> Floats:
    """Its values, which must have the task's step and be finite or NaN, and not negative.

    Raises:
        SeriesError: names the step and the value.
    """
    if len(history) and history.step_s != task.step_s:
        raise SeriesError(
            f"the history has steps of {history.step_s:g} s, the forecaster of {task.step_s:g} s. "
            "Make the series with the forecaster's step."
        )
    return check_load(history.values)


def push(task: Task, state: State, value: float) -> State:
    """The state one step later; a NaN is filled as `fill` does."""
    if not math.isnan(value):
        check_load(np.array([value]))
    else:
        value = _stand_in(state.values, len(state.values), task)
    seen = state.seen + 1 if state.seen or not math.isnan(value) else 0
    return State(state.time + task.step_s, np.append(state.values[1:], value), seen)


def fill(values: Floats, task: Task) -> Floats:
    """(T,) values with each gap filled from before it: same time last week, else yesterday, else the last value."""
    filled = values.astype(np.float64, copy=True)
    for at in np.flatnonzero(np.isnan(filled)):
        filled[at] = _stand_in(filled, int(at), task)
    return filled


def check_load(values: Floats) -> Floats:
    """The values, which must be finite or NaN, and not negative.

    Raises:
        SeriesError: names the step and the value.
    """
    if (bad := (values < 0) | np.isinf(values)).any():
        at = int(np.argmax(bad))
        raise SeriesError(
            f"step {at}: {values[at]} records/s; a load is finite and not negative. Quarantine the record."
        )
    return values


def _stand_in(values: Floats, at: int, task: Task) -> float:
    for lag in (task.week, task.day, 1):
        if at >= lag and np.isfinite(values[at - lag]):
            return float(values[at - lag])
    return math.nan
