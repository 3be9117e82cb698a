"""The newest steps of one series, kept in place: a step moves no other value."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable

import numpy as np

from models.forecast.core.forecaster import State, Task
from models.forecast.core.series import Floats, Series, SeriesError


class Ring:
    """What `push` of `forecaster` does to a `State`, without a copy of all its values.

    The values lie in a buffer twice as long; when its end is reached, the newest half moves to the front.

    Attributes:
        buffer: (2 · kept,) records/s, gaps filled; NaN before the series began. A week is kept at least.
        end: index after the newest value.
        seen: steps since the series began, gaps included.
        time: epoch seconds at which the next step begins.
        filled: numbers of the kept steps that were missing, counted from the series' first one.
    """

    __slots__ = ("_lags", "buffer", "end", "filled", "kept", "seen", "step_s", "time")

    def __init__(self, task: Task, buffer: Floats) -> None:
        self.buffer, self.kept, self.step_s = buffer, len(buffer) // 2, task.step_s
        self._lags = (task.week, task.day, 1)
        self.end, self.seen, self.time = self.kept, 0, 0.0
        self.filled: deque[int] = deque()

    def load(self, values: Floats, seen: int, time: float, filled: Iterable[int]) -> None:
        """Begin with (kept,) values and the other attributes."""
        self.buffer[: self.kept] = values
        self.end, self.seen, self.time, self.filled = self.kept, seen, time, deque(filled)

    def start(self, state: State, history: Series) -> None:
        """Take over the values of a state that this history led to."""
        values, many = np.full(self.kept, np.nan), min(state.seen, self.kept)
        if many:
            values[-many:] = state.values[-many:]
        missing = np.flatnonzero(np.isnan(history.values[len(history) - many :]))
        self.load(values, state.seen, state.time, (missing + state.seen - many).tolist())

    @property
    def values(self) -> Floats:
        """(kept,) the newest values, a view."""
        return self.buffer[self.end - self.kept : self.end]

    def push(self, value: float) -> bool:
        """One step later; a NaN is filled as `fill` does. False where the series has not begun yet.

        Raises:
            SeriesError: the value is negative or infinite; nothing has changed.
        """
        missing = math.isnan(value)
        if missing:
            value = self._stand_in()
        elif not 0.0 <= value < math.inf:
            raise refused(value)
        self.time += self.step_s
        if not self.seen and math.isnan(value):
            return False
        if self.end == len(self.buffer):
            self.buffer[: self.kept] = self.buffer[self.kept :]
            self.end = self.kept
        self.buffer[self.end] = value
        self.end += 1
        if missing:
            self.filled.append(self.seen)
        self.seen += 1
        if self.filled and self.filled[0] < self.seen - self.kept:
            self.filled.popleft()
        return True

    def _stand_in(self) -> float:
        for lag in self._lags:
            if math.isfinite(found := self.buffer[self.end - lag]):
                return float(found)
        return math.nan


def refused(value: float) -> SeriesError:
    """What is raised for such a load."""
    return SeriesError(f"{value} records/s; a load is finite and not negative. Quarantine the record.")
