"""The newest steps of one series, kept in place: a step moves no other value."""

from __future__ import annotations

import math

import numpy as np

from models.forecast.core.forecaster import State, Task
from models.forecast.core.series import Floats, SeriesError


class Ring:
    """What `push` of `forecaster` does to a `State`, without a copy of all its values.

    The values lie in a buffer twice as long; when its end is reached, the newest half moves to the front. It has one
    place more, so that the `values` before a push are still whole after it.

    Attributes:
        buffer: (2 · kept + 1,) records/s, gaps filled; NaN before the series began. A week is kept at least.
        end: index after the newest value.
        seen: steps since the series began, gaps included.
        time: epoch seconds at which the next step begins.
    """

    def __init__(self, task: Task, state: State) -> None:
        self.kept, self.step_s, self.seen, self.time = len(state.values), task.step_s, state.seen, state.time
        self.buffer = np.concatenate([state.values, np.full(self.kept + 1, np.nan)])
        self.end, self._lags = self.kept, (task.week, task.day, 1)

    @property
    def values(self) -> Floats:
        """(kept,) the newest values, a view."""
        return self.buffer[self.end - self.kept : self.end]

    def push(self, value: float) -> bool:
        """One step later; a NaN is filled as `fill` does. False where the series has not begun yet.

        Raises:
            SeriesError: the value is negative or infinite; nothing has changed.
        """
        if math.isnan(value):
            value = self._stand_in()
        elif not 0.0 <= value < math.inf:
            raise refused(value)
        self.time += self.step_s
        if not self.seen and math.isnan(value):
            return False
        if self.end == len(self.buffer):
            self.buffer[: self.kept] = self.values
            self.end = self.kept
        self.buffer[self.end] = value
        self.end += 1
        self.seen += 1
        return True

    def _stand_in(self) -> float:
        for lag in self._lags:
            if math.isfinite(found := self.buffer[self.end - lag]):
                return float(found)
        return math.nan


def refused(value: float) -> SeriesError:
    """What is raised for such a load."""
    return SeriesError(f"{value} records/s; a load is finite and not negative. Quarantine the record.")
