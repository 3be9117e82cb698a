"""Many series that follow one recurrent network, stepped in one compiled pass, their values and states in place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.forecast.baselines.naive import Naive
from models.forecast.core.forecaster import State, begin, fill
from models.forecast.core.ring import Ring
from models.forecast.core.series import Floats, Series
from models.forecast.core.state import OnlineError, made_by, parted, read, refill, write
from models.forecast.neural import kernel as online_kernel
from models.forecast.neural.flat_weights import Indices, Weights
from models.forecast.neural.network import Network
from models.forecast.neural.windows import MOST


class NetworkTrack:
    """One series: a row of the arrays of its `NetworkTracks`."""

    def __init__(self, tracks: NetworkTracks, slot: int) -> None:
        self.tracks, self.slot = tracks, slot
        self.ring = Ring(tracks.network.task, tracks.values[slot])
        self._slots, self._ends = np.array([slot]), np.array([0])

    @property
    def quantiles(self) -> Floats:
        """(horizon, levels) records/s after the newest step."""
        found: Floats = self.tracks.quantiles[self.slot]
        return found

    @property
    def ready(self) -> bool:
        """Whether the network speaks; until then the naive forecast does."""
        return self.ring.seen >= self.tracks.weights.needs

    def step(self, value: float) -> None:
        """One step later."""
        self.ring.push(value)
        if self.ready:
            self._ends[0] = self.ring.end
            self.tracks.run(self._slots, self._ends)
        else:
            self.quantiles[:] = self.tracks.naive.current(self._seen())

    def trust(self) -> str:
        """`network`, or what the naive forecast that stands in rests on."""
        return "network" if self.ready else self.tracks.naive.trust(self._seen())

    def state(self) -> bytes:
        """The carried state and the newest quantiles; the values are those of the samples."""
        carried = self.tracks.hidden[self.slot].tobytes() + self.quantiles.tobytes()
        return write(self.tracks.made, self.ring, carried)

    def _seen(self) -> State:
        return State(self.ring.time, self.ring.values, self.ring.seen)


class NetworkTracks:
    """The arrays in which every series has a row.

    Attributes:
        network: what is followed.
        weights: its own.
        reach: newest samples that `resume` asks for.
        values: (slots, 2 · reach) records/s, the buffers of the rings.
        hidden: (slots, carried) states after the newest step.
        quantiles: (slots, horizon, levels) records/s there.
    """

    def __init__(self, network: Network, weights: Weights) -> None:
        self.network, self.weights, self.naive = network, weights, Naive(network.task)
        self.reach = max(network.view.needs, network.task.week)
        self.made = made_by(network, network.carried)
        self.values = np.full((1, 2 * self.reach), np.nan)
        self.hidden = np.zeros((1, network.carried), dtype=np.float32)
        self.quantiles = np.full((1, network.horizon, len(network.levels)), np.nan)
        self._held: list[NetworkTrack | None] = [None]

    def begin(self, history: Series) -> NetworkTrack:
        """A series after a history, read from its first row on."""
        state = begin(self.network.task, history)
        track = self._track()
        track.ring.start(state, history)
        if track.ready:
            newest = fill(history.values, self.network.task)[-min(state.seen, MOST + self.weights.needs) :]
            online_kernel.follow(self.weights, newest, self.hidden[track.slot], self.quantiles[track.slot])
        else:
            track.quantiles[:] = self.naive.current(track._seen())
        return track

    def resume(self, kept: bytes, history: Series) -> tuple[NetworkTrack, Series]:
        """A series as it was, and the steps after."""
        found = read(self.made, kept)
        older, rest = parted(found, history)
        width = self.hidden[0].nbytes
        if len(found.carried) != width + self.quantiles[0].nbytes:
            raise OnlineError(f"a carried state of {len(found.carried)} bytes. Admit the job on its history.")
        track = self._track()
        try:
            refill(found, older, track.ring)
        except OnlineError:
            self.drop(track)
            raise
        self.hidden[track.slot] = np.frombuffer(found.carried[:width], dtype=np.float32)
        self.quantiles[track.slot].ravel()[:] = np.frombuffer(found.carried[width:])
        return track, rest

    def step_all(self, tracks: Sequence[NetworkTrack], values: Floats) -> Floats:
        """Different tracks one step on in one pass: (series, horizon, levels) records/s."""
        ready = []
        for track, value in zip(tracks, values.tolist(), strict=True):
            track.ring.push(value)
            if track.ready:
                ready.append(track)
            else:
                track.quantiles[:] = self.naive.current(track._seen())
        if ready:
            self.run(np.array([t.slot for t in ready]), np.array([t.ring.end for t in ready]))
        found: Floats = self.quantiles[[track.slot for track in tracks]]
        return found

    def run(self, slots: Indices, ends: Indices) -> None:
        """The network's step for the series in these slots, whose newest values are there."""
        online_kernel.step_all(self.weights, self.values, ends, slots, self.hidden, self.quantiles)

    def drop(self, track: NetworkTrack) -> None:
        """The series is followed no more; another may have its row."""
        self._held[track.slot] = None

    def _track(self) -> NetworkTrack:
        if None not in self._held:
            self._grow()
        slot = self._held.index(None)
        self.values[slot], self.hidden[slot], self.quantiles[slot] = np.nan, 0.0, np.nan
        track = self._held[slot] = NetworkTrack(self, slot)
        return track

    def _grow(self) -> None:
        self.values, self.hidden, self.quantiles = (
            np.concatenate([array, np.zeros_like(array)]) for array in (self.values, self.hidden, self.quantiles)
        )
        for track in self._held:
            if track is not None:
                track.ring.buffer = self.values[track.slot]
        self._held.extend([None] * len(self._held))
