"""The production forecaster: a blend of experts that learns at every step, with quantiles that calibrate themselves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.forecast.blend.tracks import BlendTrack, Learnt, Shape, nothing_learnt
from models.forecast.core.forecaster import State, begin, check_history
from models.forecast.core.ring import Ring
from models.forecast.core.series import Floats, Series
from models.forecast.core.state import read

LEARN = 16_384
"""Newest steps of a history that are learnt from."""


@dataclass(frozen=True)
class Blend(Shape):
    """Any step, any length of history; it has no parameters beside its task, because it learns while it runs.

    A state carries a `BlendTrack`, which `step` copies: whoever follows one series had better use `online`.
    """

    def begin(self, history: Series) -> BlendTrack:
        """A series after a history, which may be empty: as after stepping through its newest `LEARN` steps.

        Raises:
            SeriesError: the history has another step, or negative or infinite values.
        """
        known = np.flatnonzero(np.isfinite(check_history(self.task, history)))
        cut = max(len(history) - LEARN, int(known[0])) if len(known) else len(history)
        older = Series(history.start, history.step_s, history.values[:cut])
        ring = Ring(self.task, begin(self.task, older, self.context))
        track = BlendTrack(self, ring, nothing_learnt(self))
        for value in history.values[cut:].tolist():
            track.step(value)
        track.ring.time = history.end
        return track

    def init(self, history: Series) -> State:
        """The state after a history, which may be empty."""
        return _state(self.begin(history))

    def step(self, state: State, value: float) -> tuple[State, Floats]:
        """The state one step later (NaN: missing) and its forecast (horizon, levels)."""
        track = state.carried.copied()
        track.step(value)
        return _state(track), track.quantiles

    def current(self, state: State) -> Floats:
        """(horizon, levels) records/s; NaN where nothing was ever seen."""
        quantiles: Floats = state.carried.quantiles
        return quantiles

    def trust(self, state: State) -> str:
        """`blend`, "last value" while no regression has learnt anything or the load has just changed, or "none"."""
        found: str = state.carried.trust()
        return found


def _state(track: BlendTrack) -> State:
    return State(track.ring.time, track.ring.values, track.ring.seen, track)


class BlendTracks:
    """All series that follow one blend."""

    def __init__(self, blend: Blend) -> None:
        self.blend = blend

    def begin(self, history: Series) -> BlendTrack:
        """A series after a history."""
        return self.blend.begin(history)

    def resume(self, kept: bytes) -> tuple[BlendTrack, State]:
        """A series as it was."""
        state = read(self.blend, kept, Learnt)
        return BlendTrack(self.blend, Ring(self.blend.task, state), state.carried), state
