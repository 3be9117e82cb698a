"""Series that follow a fitted regression: compiled code reads its rows, its errors are kept in order."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from models.forecast.baselines.linear import _CAP, _OFFSET, BESIDE, RECENT, Linear
from models.forecast.baselines.naive import Naive
from models.forecast.baselines.residual_tracks import Maturing, around
from models.forecast.core.forecaster import State, begin
from models.forecast.core.residual_window import Matured
from models.forecast.core.ring import Ring
from models.forecast.core.series import Floats, Series
from models.forecast.core.state import decode, made_by, parted, read, refill, write_whole
from models.forecast.core.tracks import OneByOne


@numba.njit(cache=True)
def _make(buffer: Any, end: int, lags: Any, weights: Any, bias: Any, scale: float, logs: bool, out: Any) -> None:
    """Fill (horizon,) records/s as `Linear._made` does after the newest value."""
    highest = 0.0
    for h in range(len(bias)):
        said = bias[h]
        for i in range(lags.shape[1]):
            seen = buffer[end - 1 + lags[h, i]]
            highest = max(highest, seen)
            said += weights[h, i] * (np.log(seen / scale + _OFFSET) if logs else seen / scale)
        out[h] = (np.exp(min(said, 50.0)) - _OFFSET if logs else said) * scale
    for h in range(len(bias)):
        out[h] = min(max(out[h], 0.0), _CAP * highest)


class LinearTrack:
    """One series."""

    def __init__(self, tracks: LinearTracks, ring: Ring, past: Matured | None) -> None:
        self.tracks, self.ring = tracks, ring
        self.past = Maturing(tracks.linear.horizon, tracks.levels)
        self.quantiles = np.full((tracks.linear.horizon, len(tracks.levels)), np.nan)
        if past is not None:
            self.past.load(past)
        self._say()

    def step(self, value: float) -> None:
        """One step later."""
        self.ring.push(value)
        if self._ready:
            self.past.take(value)
            _make(self.ring.buffer, self.ring.end, *self.tracks.fitted, self.past.made[0])
        self._say()

    def trust(self) -> str:
        """`ridge`, or what the naive forecast that stands in rests on."""
        return self.tracks.linear.kind if self._ready else self.tracks.naive.trust(self._seen())

    def state(self) -> bytes:
        """The newest forecasts and errors, and the values."""
        return write_whole(self.tracks.made, self.ring, self.past.past())

    @property
    def _ready(self) -> bool:
        return self.ring.seen >= self.tracks.linear._needs

    def _say(self) -> None:
        if not self.past.say(self.past.made[0], self.quantiles):
            naive = self.tracks.naive.current(self._seen())
            self.quantiles[:] = around(self.past.made[0], naive) if self._ready else naive

    def _seen(self) -> State:
        return State(self.ring.time, self.ring.values, self.ring.seen)


class LinearTracks(OneByOne):
    """What the series of one regression have in common.

    Attributes:
        linear: the forecaster.
        kept: newest values of a series.
        fitted: lags, weights, bias, scale and whether logarithms are read.
        levels: of the quantiles.
    """

    reach = 0

    def __init__(self, linear: Linear) -> None:
        self.linear, self.naive, self.made = linear, Naive(linear.task), made_by(linear)
        self.kept = linear.task.kept(RECENT + BESIDE)
        weights, bias = np.array(linear.fitted.weights), np.array(linear.fitted.bias)
        self.fitted = linear._lags, weights, bias, linear.fitted.scale, linear.fitted.logs
        self.levels: Floats = np.array(linear.levels)

    def begin(self, history: Series) -> LinearTrack:
        """A series after a history."""
        ring = self._ring()
        ring.start(begin(self.linear.task, history, RECENT + BESIDE), history)
        return LinearTrack(self, ring, self.linear.init(history).carried)

    def resume(self, kept: bytes, history: Series) -> tuple[LinearTrack, Series]:
        """A series as it was, and the steps after."""
        found = read(self.made, kept)
        older, rest = parted(found, history)
        ring = self._ring()
        refill(found, older, ring)
        return LinearTrack(self, ring, decode(Matured, found.carried)), rest

    def _ring(self) -> Ring:
        return Ring(self.linear.task, np.full(2 * self.kept, np.nan))
