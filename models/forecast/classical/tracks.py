"""Series that follow ETS, Theta or ARIMA: a recursion of a few numbers, whose errors are kept in order."""

from __future__ import annotations

import numpy as np

from models.forecast.baselines.naive import Naive
from models.forecast.baselines.residual_tracks import Maturing, around
from models.forecast.classical.classical import Carried, Classical
from models.forecast.core.forecaster import State
from models.forecast.core.ring import Ring
from models.forecast.core.series import Floats, Series
from models.forecast.core.state import decode, made_by, parted, read, refill, write_whole
from models.forecast.core.tracks import OneByOne


class ClassicalTrack:
    """One series."""

    def __init__(self, tracks: ClassicalTracks, ring: Ring, carried: Carried | None) -> None:
        self.tracks, self.ring = tracks, ring
        self.past = Maturing(tracks.classical.horizon, tracks.levels)
        self.quantiles = np.full((tracks.classical.horizon, len(tracks.levels)), np.nan)
        self.x: Floats | None = None
        if carried is not None:
            self._load(carried)
            self._say()

    def step(self, value: float) -> None:
        """One step later."""
        made, begins = self.tracks.classical, self.ring.time
        if not self.ring.push(value):
            return
        left = value - float(made.season.at(np.array([begins]))[0])
        if self.x is None:
            self._load(made._run(np.array([left])))
        else:
            self.x = made._next(self.x, left)
            self.past.take(left)
            self.past.made[0] = self.x @ made._ahead.T + made._added
        self._say()

    def trust(self) -> str:
        """The kind, or "none" where nothing was ever seen."""
        return "none" if self.x is None else self.tracks.classical.kind

    def state(self) -> bytes:
        """The recursion's state, its newest forecasts and errors, and the values."""
        carried = None if self.x is None else Carried(self.x, self.past.past())
        return write_whole(self.tracks.made, self.ring, carried)

    def _load(self, carried: Carried) -> None:
        self.x = carried.x
        self.past.load(carried.past)

    def _say(self) -> None:
        made, ring = self.tracks.classical, self.ring
        season = made.season.at(ring.time + self.tracks.ahead_s)
        centres = np.maximum(self.past.made[0] + season, 0.0)
        if not self.past.say(centres, self.quantiles):
            self.quantiles[:] = around(centres, self.tracks.naive.current(State(ring.time, ring.values, ring.seen)))


class ClassicalTracks(OneByOne):
    """What the series of one recursion have in common.

    Attributes:
        classical: the forecaster.
        ahead_s: (horizon,) seconds from the newest step's end to where each step ahead begins.
        levels: of the quantiles.
    """

    reach = 0

    def __init__(self, classical: Classical) -> None:
        self.classical, self.naive, self.made = classical, Naive(classical.task), made_by(classical)
        self.ahead_s: Floats = classical.step_s * np.arange(classical.horizon, dtype=np.float64)
        self.levels: Floats = np.array(classical.levels)

    def begin(self, history: Series) -> ClassicalTrack:
        """A series after a history."""
        state = self.classical.init(history)
        ring = self._ring()
        ring.start(state, history)
        return ClassicalTrack(self, ring, state.carried)

    def resume(self, kept: bytes, history: Series) -> tuple[ClassicalTrack, Series]:
        """A series as it was, and the steps after."""
        found = read(self.made, kept)
        older, rest = parted(found, history)
        ring = self._ring()
        refill(found, older, ring)
        return ClassicalTrack(self, ring, decode(Carried | None, found.carried)), rest

    def _ring(self) -> Ring:
        return Ring(self.classical.task, np.full(2 * self.classical.task.kept(), np.nan))
