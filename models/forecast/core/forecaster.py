"""What every forecaster is, how one series follows it, and how the gaps of a load are filled."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol

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


class Track(Protocol):
    """One series that follows a forecaster."""

    @property
    def quantiles(self) -> Floats:
        """(horizon, levels) records/s after the newest step; NaN where nothing was ever seen. Not to be changed."""

    def step(self, value: float) -> None:
        """One step later, its mean rate in records/s (NaN: missing).

        Raises:
            SeriesError: the value is negative or infinite; nothing has changed.
        """

    def trust(self) -> str:
        """What the quantiles rest on: the kind, "network", a naive repetition such as "last value", or "none"."""

    def state(self) -> bytes:
        """What must be kept so that another track goes on bit by bit as this would."""


class Forecaster(ABC):
    """Every kind of champion: serving, twin and backtest follow the same object.

    Attributes:
        task: what is forecast.
        kind: what it is, e.g. "gru" or "seasonal_naive".
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
        """A series after a history, which may be empty.

        Raises:
            SeriesError: the history has another step, or negative or infinite values.
        """

    @abstractmethod
    def resume(self, kept: bytes) -> tuple[Track, State]:
        """A series as it was when its state was kept, and that state.

        Raises:
            OnlineError: the bytes are no state of this forecaster.
        """


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


def fill(values: Floats, task: Task) -> Floats:
    """(T,) values with each gap filled from before it: same time last week, else yesterday, else the last value."""
    filled = values.astype(np.float64, copy=True)
    for at in np.flatnonzero(np.isnan(filled)):
        filled[at] = stand_in(filled, int(at), task)
    return filled


def stand_in(values: Floats, at: int, task: Task) -> float:
    """What fills a gap at an index: the value a week, else a day, else a step before it; NaN without any."""
    for lag in (task.week, task.day, 1):
        if at >= lag and math.isfinite(found := values[at - lag]):
            return float(found)
    return math.nan
