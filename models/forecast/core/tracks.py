"""How one series is followed: what every kind must offer, and the general way by `init` and `carry`."""

from __future__ import annotations

from typing import Any, Protocol

from models.forecast.core.forecaster import Forecaster, State, Task
from models.forecast.core.ring import Ring
from models.forecast.core.series import Floats, Series
from models.forecast.core.state import read, write


class Track(Protocol):
    """One series that is followed."""

    @property
    def quantiles(self) -> Floats:
        """(horizon, levels) records/s after the newest step; NaN where nothing was ever seen. Not to be changed."""

    def step(self, value: float) -> None:
        """One step later; the value is finite and not negative, or NaN: missing."""

    def trust(self) -> str:
        """What the quantiles rest on, as `Forecaster.trust` says."""

    def state(self) -> bytes:
        """What must be kept so that another track goes on bit by bit as this would."""


class Tracks(Protocol):
    """All series that follow one forecaster."""

    def begin(self, history: Series) -> Track:
        """A series after a history, which may be empty; as `Forecaster.init`."""

    def resume(self, kept: bytes) -> tuple[Track, State]:
        """A series as it was when its state was kept, and that state.

        Raises:
            OnlineError: the bytes are no state of this forecaster.
        """


class Carrying(Forecaster, Protocol):
    """What inherits `forecaster.Carrying`: every kind but the blend."""

    @property
    def task(self) -> Task: ...  # noqa: D102
    def carry(self, before: State, after: State, value: float) -> Any:
        """What is carried one step later."""


class PlainTrack:
    """A series that is stepped by its forecaster, its values in place."""

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
        return write(self.forecaster, self.kept, self.kept.carried if self.forecaster.carries else None)


class PlainTracks:
    """Any kind, by its `init` and `carry`."""

    def __init__(self, forecaster: Carrying) -> None:
        self.forecaster = forecaster

    def begin(self, history: Series) -> PlainTrack:
        """A series after a history."""
        return PlainTrack(self.forecaster, self.forecaster.init(history))

    def resume(self, kept: bytes) -> tuple[PlainTrack, State]:
        """A series as it was."""
        carries = self.forecaster.carries
        state = read(self.forecaster, kept, carries | None if carries else None)
        return PlainTrack(self.forecaster, state), state
