"""How one forecaster follows many series: what every kind must offer, and the general way by `init` and `step`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from models.forecast.core.forecaster import Forecaster, State
from models.forecast.core.series import Floats, Series
from models.forecast.core.state import decode, made_by, parted, read, write_whole
from models.forecast.neural.network import Carried, Network


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
        """What must be kept so that `resume` goes on bit by bit as this would."""


class Tracks(Protocol):
    """All series that follow one forecaster.

    Attributes:
        reach: newest samples that `resume` asks for; 0: the state holds all.
    """

    reach: int

    def begin(self, history: Series) -> Any:
        """A `Track` after a history, which may be empty; as `Forecaster.init`."""

    def resume(self, kept: bytes, history: Series) -> tuple[Any, Series]:
        """A `Track` as it was when its state was kept, and the steps of the history that come after.

        Raises:
            OnlineError: the bytes are no state of this forecaster, or the history does not lead to it.
        """

    def step_all(self, tracks: Sequence[Any], values: Floats) -> Floats:
        """Different tracks one step on: (series, horizon, levels) records/s."""

    def drop(self, track: Any) -> None:
        """The series is followed no more."""


class OneByOne:
    """Series that have nothing in common but the forecaster."""

    def step_all(self, tracks: Sequence[Track], values: Floats) -> Floats:
        """Different tracks one step on, one after the other: (series, horizon, levels) records/s."""
        for track, value in zip(tracks, values.tolist(), strict=True):
            track.step(value)
        return np.stack([track.quantiles for track in tracks])

    def drop(self, track: Track) -> None:
        """The series is followed no more."""


class Plain:
    """A series that is stepped by its forecaster."""

    def __init__(self, forecaster: Forecaster, kept: State) -> None:
        self.forecaster, self.kept, self.quantiles = forecaster, kept, forecaster.current(kept)

    def step(self, value: float) -> None:
        """One step later."""
        self.kept, self.quantiles = self.forecaster.step(self.kept, value)

    def trust(self) -> str:
        """What the quantiles rest on."""
        return self.forecaster.trust(self.kept)

    def state(self) -> bytes:
        """All of it, the values included."""
        return write_whole(made_by(self.forecaster), self.kept, self.kept.carried)


class PlainTracks(OneByOne):
    """Any kind, by its `init` and `step`; its state is all that it carries."""

    reach = 0

    def __init__(self, forecaster: Forecaster) -> None:
        self.forecaster = forecaster

    def begin(self, history: Series) -> Plain:
        """A series after a history."""
        return Plain(self.forecaster, self.forecaster.init(history))

    def resume(self, kept: bytes, history: Series) -> tuple[Plain, Series]:
        """A series as it was, and the steps after; of an empty history there are none."""
        found = read(made_by(self.forecaster), kept)
        rest = parted(found, history)[1]
        carried: Any = decode(_carried(self.forecaster), found.carried)
        values = np.frombuffer(bytearray(found.values))
        return Plain(self.forecaster, State(found.time, values, found.seen, carried)), rest


def _carried(forecaster: Forecaster) -> Any:
    """The type of what it carries; None may stand in its place."""
    if isinstance(forecaster, Network):
        return Carried | None  # the others carry something from the first step on
    begun = forecaster.init(Series(0.0, forecaster.step_s, np.ones(1))).carried
    return type(begun) | None if begun is not None else None
