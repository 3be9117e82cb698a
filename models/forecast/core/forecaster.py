"""Base types of all forecasters: task, state, track; and how gaps of a load are filled."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from configs.bounds import DAY_S, WEEK_S
from models.forecast.core.gaps import level_change
from models.forecast.core.series import Floats, Series, SeriesError

MOST_STEPS, MOST_LEVELS = 1000, 100
"""Of a forecast: what it keeps of its errors grows with the square of its steps."""
ERRORS = 2000
"""Newest errors of a naive forecast that its quantiles are taken over, at most."""


@dataclass(frozen=True)
class Task:
    """A forecasting task: quantiles at `levels` for the next `horizon` steps of `step_s` seconds each.

    Attributes:
        step_s: seconds per step, above 0 and at most a day.
        horizon: steps ahead, 1 to MOST_STEPS (1000).
        levels: quantile levels in (0, 1), rising, 1 to MOST_LEVELS (100).

    Raises:
        SeriesError: one of them is outside its range.
    """

    step_s: float
    horizon: int
    levels: tuple[float, ...]

    def __post_init__(self) -> None:
        if not (math.isfinite(self.step_s) and 0 < self.step_s <= DAY_S):
            raise SeriesError(f"step_s={self.step_s}: above 0 s and at most {DAY_S:g} s is expected")
        if not 1 <= self.horizon <= MOST_STEPS:
            raise SeriesError(f"horizon={self.horizon}: 1 to {MOST_STEPS} steps are expected")
        rising = all(0 < a < b < 1 for a, b in zip((1e-9, *self.levels), self.levels, strict=False))
        if not 0 < len(self.levels) <= MOST_LEVELS or not rising:
            raise SeriesError(f"levels={self.levels!r:.200}: 1 to {MOST_LEVELS} that rise within (0, 1) are expected")

    @property
    def day(self) -> int:
        """Steps per day, rounded."""
        return round(DAY_S / self.step_s)

    @property
    def week(self) -> int:
        """Steps per week, rounded."""
        return round(WEEK_S / self.step_s)

    def kept_steps(self, context: int = 0) -> int:
        """Return how many of the newest steps a `State` keeps: a week, and enough more for weekly errors or a context.

        Args:
            context: steps before the newest one that a forecaster reads beside a day's lags.
        """
        return self.week + max(min(self.week, ERRORS), self.day + context)


@dataclass(frozen=True, eq=False)
class State:
    """The newest steps of one series, and what its forecaster carries from step to step.

    Attributes:
        time: epoch seconds at which the next step begins, which is the first step forecast.
        values: (kept,) records/s, newest last, gaps filled; NaN before the series began.
        filled: (kept,) whether each of them was missing.
        seen: steps since the first known value, gaps included.
        carried: what the kind of forecaster needs beside these; None where it needs nothing or has nothing yet.
    """

    time: float
    values: Floats
    filled: NDArray[np.bool_]
    seen: int
    carried: Any = None


class Track(Protocol):
    """One series followed by a forecaster, step by step."""

    @property
    def quantiles(self) -> Floats:
        """(horizon, levels) records/s after the newest step; NaN while nothing was ever seen. Read-only."""

    def step(self, value: float) -> None:
        """Append one step.

        Args:
            value: its mean rate in records/s; NaN: missing, filled by the forecaster's own rule.

        Raises:
            SeriesError: the value is negative or infinite; nothing has changed.
        """

    def basis(self) -> str:
        """Name what the quantiles rest on: the kind, "network", a naive repetition such as "last value", or "none"."""

    def state(self) -> bytes:
        """Serialise the track; `Forecaster.resume` of the same forecaster continues from it bit by bit."""


class Forecaster(ABC):
    """Base class of every forecaster; serving, digital twin and backtest use the same object.

    Attributes:
        task: what is forecast.
        kind: name of the kind, such as "gru" or "seasonal_naive".
    """

    task: Task
    kind: str

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

    @abstractmethod
    def begin(self, history: Series) -> Track:
        """Start a track at the end of a history, which may be empty.

        Raises:
            SeriesError: the history has another step than the task, or negative or infinite values.
        """

    @abstractmethod
    def resume(self, kept: bytes) -> tuple[Track, State]:
        """Restore a track from the bytes of `Track.state`.

        Returns:
            The track, and the state it was restored to.

        Raises:
            OnlineError: the bytes are no state, or one of another kind or task.
        """


def begin_state(task: Task, history: Series, context: int = 0) -> State:
    """Build the state at the end of a history: its newest steps with gaps filled, and nothing carried.

    Args:
        task: what is forecast.
        history: may be empty; NaN: missing, filled as by `fill_gaps`. What lies before its first known value is not
            seen.
        context: steps before the newest one that the forecaster reads beside a day's lags, kept as well.

    Returns:
        The state at the history's end: `task.kept_steps(context)` records/s (a week and at least a day more), NaN where
        none was, which of them were filled, and how many steps were seen since the first known one.

    Raises:
        SeriesError: the history has another step than the task, or negative or infinite values.
    """
    values = fill_gaps(check_history(task, history), task)
    known = np.flatnonzero(np.isfinite(values))
    values = values[known[0] :] if len(known) else values[:0]
    newest, filled = np.full(kept := task.kept_steps(context), np.nan), np.zeros(kept, dtype=bool)
    if count := min(len(values), kept):
        newest[-count:] = values[-count:]
        filled[-count:] = np.isnan(history.values[-count:])
    return State(history.end, newest, filled, len(values))


def check_history(task: Task, history: Series) -> Floats:
    """Return a history's values, not a copy, after checking its step length (unless it is empty) and its loads.

    Raises:
        SeriesError: the step is not the task's, or a value is negative or infinite; NaN is allowed.
    """
    if len(history) and history.step_s != task.step_s:
        raise SeriesError(
            f"the history has steps of {history.step_s:g} s, the forecaster of {task.step_s:g} s. "
            "Make the series with the forecaster's step."
        )
    return check_loads(history.values)


def check_loads(values: Floats) -> Floats:
    """Return the same (T,) loads in records/s, not a copy, after checking that each is finite and at least 0, or NaN.

    Raises:
        SeriesError: a value is negative or infinite; the message names the first such index.
    """
    if (bad := (values < 0) | np.isinf(values)).any():
        at = int(np.argmax(bad))
        raise SeriesError(
            f"step {at}: {values[at]} records/s; a load is finite and not negative. Quarantine the record."
        )
    return values


def fill_gaps(values: Floats, task: Task) -> Floats:
    """Return a copy of a load, each missing step filled from a week, else a day, else a step before (`gap_value`).

    Args:
        values: (T,) records/s, oldest first; NaN: missing.
        task: gives the steps of a day and a week.

    Returns:
        (T,) records/s; what lies before the first known value stays NaN.
    """
    filled = values.astype(np.float64, copy=True)
    for at in np.flatnonzero(np.isnan(filled)):
        filled[at] = gap_value(filled, int(at), task)
    return filled


def gap_value(values: Floats, at: int, task: Task) -> float:
    """Return the value that fills a missing step: that of one week before, else of one day, else of one step before.

    That of a week before is taken at the present level, where this has changed for good since (`level_change`).

    Args:
        values: (T,) records/s, oldest first, filled up to the gap.
        at: index of the missing step, at most T; above it numpy's IndexError.
        task: gives the steps of a day and a week.

    Returns:
        Records/s; NaN where none of the three is known.
    """
    for lag in (task.week, task.day, 1):
        if at >= lag and math.isfinite(earlier := values[at - lag]):
            return float(earlier) * (level_change(values, at, task.day, lag) if lag == task.week else 1.0)
    return math.nan
