"""How one series is followed: a ring buffer of its newest steps, and a track that steps an immutable state."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from models.forecast.core.forecaster import Forecaster, State, Task, gap_value
from models.forecast.core.series import Floats, Series, SeriesError
from models.forecast.core.state import read_state, write_state


class Ring:
    """Ring buffer of the newest steps of one series; a push moves no other value.

    The values lie in a buffer twice as long; when its end is reached, the newest half moves to the front. It has one
    place more, so that the `values` before a push are still whole after it.

    Attributes:
        buffer: (2 · kept + 1,) records/s, gaps filled; NaN before the series began. A week is kept at least.
        filled: (2 · kept + 1,) whether each of them was missing.
        end: index after the newest value.
        seen: steps since the series began, gaps included.
        time: epoch seconds at which the next step begins.
    """

    def __init__(self, task: Task, state: State) -> None:
        self.task, self.kept, self.seen, self.time = task, len(state.values), state.seen, state.time
        self.buffer = np.concatenate([state.values, np.full(self.kept + 1, np.nan)])
        self.filled = np.concatenate([state.filled, np.zeros(self.kept + 1, dtype=bool)])
        self.end = self.kept

    @property
    def values(self) -> Floats:
        """(kept,) the newest values, a view."""
        return self.buffer[self.end - self.kept : self.end]

    def state(self, carried: Any = None) -> State:
        """Return the state at the newest step, with what its forecaster carries; its arrays are views."""
        newest = slice(self.end - self.kept, self.end)
        return State(self.time, self.buffer[newest], self.filled[newest], self.seen, carried)

    def push(self, value: float) -> bool:
        """Append one step; a missing one is filled from a week, a day or a step before (`forecaster.gap_value`).

        Args:
            value: records/s; NaN: missing.

        Returns:
            Whether a value was appended; False while the series has not begun and the value is missing: only `time`
            moved.

        Raises:
            SeriesError: the value is negative or infinite; nothing has changed.
        """
        if missing := math.isnan(value):
            value = gap_value(self.buffer, self.end, self.task)
        elif not 0.0 <= value < math.inf:
            raise SeriesError(f"{value} records/s; a load is finite and not negative. Quarantine the record.")
        self.time += self.task.step_s
        if not self.seen and math.isnan(value):
            return False
        if self.end == len(self.buffer):
            for kept in (self.buffer, self.filled):
                kept[: self.kept] = kept[self.end - self.kept : self.end]
            self.end = self.kept
        self.buffer[self.end], self.filled[self.end] = value, missing
        self.end += 1
        self.seen += 1
        return True


class Carrying(Forecaster):
    """Base class of forecasters whose carried state is immutable: each step returns a new one.

    Attributes:
        carries: the type of `State.carried`, needed to read it back; None where it follows from the newest values.
    """

    carries: ClassVar[Any] = None

    @abstractmethod
    def state_after(self, history: Series) -> State:
        """Build the state at the end of a history, which may be empty.

        Raises:
            SeriesError: the history has another step than the task, or negative or infinite values.
        """

    @abstractmethod
    def next_carried(self, before: State, after: State, value: float) -> Any:
        """Return `State.carried` after one more step.

        Args:
            before: the state before the step.
            after: the state after it, its `carried` still None.
            value: records/s of the step; NaN: missing.
        """

    @abstractmethod
    def basis(self, state: State) -> str:
        """Name what the forecast of a state rests on, as `Track.basis` does."""

    def quantiles_of(self, state: State) -> Floats:
        """Return the (horizon, levels) quantile forecast at a state in records/s; NaN where nothing is carried."""
        if state.carried is None:
            return np.full((self.horizon, len(self.levels)), np.nan)
        quantiles: Floats = state.carried.quantiles
        return quantiles

    def step(self, state: State, value: float) -> tuple[State, Floats]:
        """Return the state after one more step, and the (horizon, levels) forecast there in records/s.

        Args:
            state: before the step; it is not changed.
            value: records/s; NaN: missing.

        Raises:
            SeriesError: the value is negative or infinite.
        """
        track = PlainTrack(self, state)
        track.step(value)
        return track.kept, track.quantiles

    def begin(self, history: Series) -> PlainTrack:
        """Start a track at the end of a history, which may be empty.

        Raises:
            SeriesError: the history has another step than the task, or negative or infinite values.
        """
        return PlainTrack(self, self.state_after(history))

    def resume(self, kept: bytes) -> tuple[PlainTrack, State]:
        """Restore a track from the bytes of `PlainTrack.state`; returns the track and its state.

        Raises:
            OnlineError: the bytes are no state, or one of another kind or task.
        """
        state = read_state(self, kept, self.carries | None if self.carries else None)
        return PlainTrack(self, state), state


class PlainTrack:
    """One series stepped by its forecaster's `next_carried`; its newest values lie in a `Ring`."""

    def __init__(self, forecaster: Carrying, kept: State) -> None:
        self.forecaster, self.kept, self.quantiles = forecaster, kept, forecaster.quantiles_of(kept)
        self._ring = Ring(forecaster.task, kept)

    def step(self, value: float) -> None:
        """Append one step and replace `kept` (the state) and `quantiles` (the (horizon, levels) forecast, records/s).

        Args:
            value: records/s; NaN: missing, see `Ring.push`. While the series has not begun, a NaN moves the time only.

        Raises:
            SeriesError: the value is negative or infinite; nothing has changed.
        """
        ring, carried = self._ring, self.kept.carried
        before = ring.state(carried)
        if ring.push(value):
            carried = self.forecaster.next_carried(before, ring.state(), value)
        self.kept = ring.state(carried)
        self.quantiles = self.forecaster.quantiles_of(self.kept)

    def basis(self) -> str:
        """Name what the quantiles rest on, as `Track.basis` does."""
        return self.forecaster.basis(self.kept)

    def state(self) -> bytes:
        """Serialise the newest values and what is carried, for `Carrying.resume`."""
        return write_state(self.forecaster, self.kept if self.forecaster.carries else replace(self.kept, carried=None))
