"""Series that follow a naive forecast: the errors of what it repeats lie in order, one step changes one of them."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from models.forecast.baselines.naive import FEW, Naive
from models.forecast.core.forecaster import ERRORS, State
from models.forecast.core.ordered import exchange, spread
from models.forecast.core.ring import Ring
from models.forecast.core.series import Floats, Series
from models.forecast.core.state import made_by, parted, read, refill, write
from models.forecast.core.tracks import OneByOne


@numba.njit(cache=True)
def _repeat(
    buffer: Any, end: int, seen: int, lag: int, behinds: Any, which: Any, ordered: Any, counts: Any, fresh: bool,
    levels: Any, out: Any,
) -> None:  # fmt: skip
    """Fill (horizon, levels) records/s as `Naive.current` does.

    Args:
        buffer: of the ring.
        end: index after its newest value.
        seen: values in the ring.
        lag: how far back the repeated values lie.
        behinds: (K,) how far back errors look.
        which: (horizon,) which of these a step ahead has.
        ordered: (K, ERRORS + 1) the errors, rising.
        counts: (K,) how many of them there are.
        fresh: whether the newest value's error is still to come in.
        levels: (levels,).
        out: is filled.
    """
    for k in range(len(behinds)):
        behind, count = behinds[k], counts[k]
        if fresh and seen > behind:
            gone = np.nan
            if count == min(ordered.shape[1] - 1, seen - behind):
                gone = buffer[end - 1 - count] - buffer[end - 1 - count - behind]
            counts[k] = exchange(ordered[k], count, gone, buffer[end - 1] - buffer[end - 1 - behind])
    for h in range(len(which)):
        k, centre = which[h], buffer[end - lag + h % lag]
        if counts[k]:
            spread(ordered[k], counts[k], levels, centre, out[h])
        else:
            out[h] = max(centre, 0.0)


class NaiveTrack:
    """One series."""

    def __init__(self, tracks: NaiveTracks) -> None:
        self.tracks, self.naive = tracks, tracks.naive
        self.ring = Ring(self.naive.task, np.full(2 * tracks.reach, np.nan))
        self.quantiles = np.full((self.naive.horizon, len(self.naive.levels)), np.nan)
        self._behinds = self._which = self._counts = np.zeros(0, dtype=np.int64)
        self._ordered = np.empty((0, ERRORS + 1))

    def step(self, value: float) -> None:
        """One step later."""
        before = min(self.ring.seen, self.ring.kept)
        if not self.ring.push(value):
            return
        seen = min(self.ring.seen, self.ring.kept)
        if seen != before and seen in self.tracks.turns:
            self.look()
        else:
            self._say(fresh=True)

    def look(self) -> None:
        """Begin anew with the errors: what is repeated has changed, or the series begins."""
        seen = min(self.ring.seen, self.ring.kept)
        if not seen:
            return
        behinds = [self.naive._behind(seen, h) for h in range(1, self.naive.horizon + 1)]
        distinct = list(dict.fromkeys(behinds))
        self._behinds, self._which = np.array(distinct), np.array([distinct.index(behind) for behind in behinds])
        self._counts = np.zeros(len(distinct), dtype=np.int64)
        self._ordered = np.empty((len(distinct), ERRORS + 1))
        values = self.ring.values[-seen:]
        for k, behind in enumerate(distinct):
            errors = np.sort((values[behind:] - values[: max(seen - behind, 0)])[-ERRORS:])
            self._ordered[k, : len(errors)], self._counts[k] = errors, len(errors)
        self._say(fresh=False)

    def trust(self) -> str:
        """Which repetition the forecast rests on."""
        return self.naive.trust(State(self.ring.time, self.ring.values, self.ring.seen))

    def state(self) -> bytes:
        """Nothing but what stands in missing steps: all else follows from the samples."""
        return write(self.tracks.made, self.ring, b"")

    def _say(self, fresh: bool) -> None:
        ring = self.ring
        _repeat(
            ring.buffer, ring.end, min(ring.seen, ring.kept), self.naive._lag(ring.seen), self._behinds, self._which,
            self._ordered, self._counts, fresh, self.tracks.levels, self.quantiles,
        )  # fmt: skip


class NaiveTracks(OneByOne):
    """What the series of one naive forecast have in common.

    Attributes:
        naive: the forecast.
        reach: newest samples that `resume` asks for.
        turns: numbers of values at which the forecast may look elsewhere than one value before.
        levels: of the quantiles.
    """

    def __init__(self, naive: Naive) -> None:
        self.naive, self.reach, self.made = naive, naive.task.kept(), made_by(naive)
        self.levels: Floats = np.array(naive.levels)
        ahead = range(1, naive.horizon + 1)
        self.turns = {1, *naive._lags(), *(lag * -(-h // lag) + FEW for lag in naive._lags() for h in ahead)}

    def begin(self, history: Series) -> NaiveTrack:
        """A series after a history."""
        track = NaiveTrack(self)
        track.ring.start(self.naive.init(history), history)
        track.look()
        return track

    def resume(self, kept: bytes, history: Series) -> tuple[NaiveTrack, Series]:
        """A series as it was, and the steps after."""
        found = read(self.made, kept)
        older, rest = parted(found, history)
        track = NaiveTrack(self)
        refill(found, older, track.ring)
        track.look()
        return track, rest
