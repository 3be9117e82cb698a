"""How one series is followed: its newest steps in place, and the general way by a kind's `init` and `carry`."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from models.forecast.core.forecaster import Forecaster, State, Task, stand_in
from models.forecast.core.series import Floats, Series, SeriesError
from models.forecast.core.state import read, write


class Ring:
    """The newest steps of one series, kept in place: a step moves no other value.

    The values lie in a buffer twice as long; when its end is reached, the newest half moves to the front. It has one
    place more, so that the `values` before a push are still whole after it.

    Attributes:
        buffer: (2 · kept + 1,) records/s, gaps filled; NaN before the series began. A week is kept at least.
        end: index after the newest value.
        seen: steps since the series began, gaps included.
        time: epoch seconds at which the next step begins.
    """

    def __init__(self, task: Task, state: State) -> None:
        self.task, self.kept, self.seen, self.time = task, len(state.values), state.seen, state.time
        self.buffer = np.concatenate([state.values, np.full(self.kept + 1, np.nan)])
        self.end = self.kept

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
            value = stand_in(self.buffer, self.end, self.task)
        elif not 0.0 <= value < math.inf:
            raise SeriesError(f"{value} records/s; a load is finite and not negative. Quarantine the record.")
        self.time += self.task.step_s
        if not self.seen and math.isnan(value):
            return False
        if self.end == len(self.buffer):
            self.buffer[: self.kept] = self.values
            self.end = self.kept
        self.buffer[self.end] = value
        self.end += 1
        self.seen += 1
        return True


class Carrying(Forecaster):
    """A kind that is pure: what it carries from step to step beside the newest values is made anew at every step.

    Attributes:
        carries: the type of `State.carried`, so that it can be read again; None where nothing need be kept.
    """

    carries: ClassVar[Any] = None

    @abstractmethod
    def init(self, history: Series) -> State:
        """The state after a history, which may be empty."""

    @abstractmethod
    def carry(self, before: State, after: State, value: float) -> Any:
        """What is carried one step later, given the state before and, without what is carried, the one after."""

    @abstractmethod
    def trust(self, state: State) -> str:
        """What `current` rests on, as `Track.trust`."""

    def current(self, state: State) -> Floats:
        """(horizon, levels) records/s; NaN where nothing was ever seen."""
        if state.carried is None:
            return np.full((self.horizon, len(self.levels)), np.nan)
        quantiles: Floats = state.carried.quantiles
        return quantiles

    def step(self, state: State, value: float) -> tuple[State, Floats]:
        """The state one step later (NaN: missing) and its forecast (horizon, levels); the one before stays."""
        track = PlainTrack(self, state)
        track.step(value)
        return track.kept, track.quantiles

    def begin(self, history: Series) -> PlainTrack:
        """A series after a history."""
        return PlainTrack(self, self.init(history))

    def resume(self, kept: bytes) -> tuple[PlainTrack, State]:
        """A series as it was."""
        state = read(self, kept, self.carries | None if self.carries else None)
        return PlainTrack(self, state), state


class PlainTrack:
    """A series that is stepped by its forecaster's `carry`, its values in place."""

    def __init__(self, forecaster: Carrying, kept: State) -> None:
        self.forecaster, self.kept, self.quantiles = forecaster, kept, forecaster.current(kept)
        self._ring = Ring(forecaster.task, kept)

    def step(self, value: float) -> None:
        """One step later."""
        ring, carried = self._ring, self.kept.carried
        before = State(ring.time, ring.values, ring.seen, carried)
        if ring.push(value):
            carried = self.forecaster.carry(before, State(ring.time, ring.values, ring.seen), value)
        self.kept = State(ring.time, ring.values, ring.seen, carried)
        self.quantiles = self.forecaster.current(self.kept)

    def trust(self) -> str:
        """What the quantiles rest on."""
        return self.forecaster.trust(self.kept)

    def state(self) -> bytes:
        """All of it, the values included."""
        return write(self.forecaster, self.kept if self.forecaster.carries else replace(self.kept, carried=None))
