"""The blend with a trained network's quantiles mixed in, weighed by the newest losses of both."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from models.forecast.blend.blend import Blend, BlendTrack, ExpertState
from models.forecast.blend.mixing import MixState, empty_mix_state, score_and_mix
from models.forecast.blend.scoring import LOST
from models.forecast.core.forecaster import Forecaster, State, Task
from models.forecast.core.series import Floats, Series
from models.forecast.core.state import read_state, write_state
from models.forecast.core.tracks import Ring
from models.forecast.neural.compiled import CompiledNetwork, step_network
from models.forecast.neural.frozen import FrozenNetwork


@dataclass(eq=False)
class NetworkedState:
    """What one series carries from step to step beside its newest values.

    Attributes:
        experts: of the blend.
        hidden: (units,) state of the network.
        mix: losses of both, and what they have issued.
        quantiles: (horizon, levels) records/s from the newest step on.
    """

    experts: ExpertState
    hidden: Floats
    mix: MixState
    quantiles: Floats


@dataclass(frozen=True)
class NetworkedBlend(Forecaster):
    """A blend that carries a trained network; its weights are frozen, its share follows the newest losses.

    Until the end of the rows that it was trained on the network is silent and the blend speaks alone: of these its
    forecasts are better than those to come, and would earn it a share that it does not deserve.

    Attributes:
        task: what is forecast.
        network: a GRU, trained for this task.
        kind: "networked_blend".
        compiled: the network's arrays.

    Raises:
        ValueError, KeyError, TypeError: the network's weights are not of this task, see `FrozenNetwork.compiled`.
    """

    task: Task
    network: FrozenNetwork
    kind: str = "networked_blend"
    compiled: CompiledNetwork = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "compiled", self.network.compiled(self.task, "gru"))  # refuses what does not fit

    @cached_property
    def blend(self) -> Blend:
        """The blend without the network."""
        return Blend(self.task)

    @cached_property
    def levels_array(self) -> Floats:
        """(levels,) of the quantiles."""
        return np.array(self.task.levels)

    def begin(self, history: Series) -> NetworkedTrack:
        """Start a track at the end of a history, as `Blend.begin`.

        Raises:
            SeriesError: the history has another step than the task, or negative or infinite values.
        """
        inner, values = self.blend.prepare(history)
        quantiles = np.full((self.horizon, len(self.levels)), np.nan)
        nothing = NetworkedState(inner.kept, np.zeros(self.network.hidden), empty_mix_state(self.task), quantiles)
        track = NetworkedTrack(self, inner, nothing)
        for value in values:
            track.step(value)
        inner.ring.time = history.end
        return track

    def resume(self, kept: bytes) -> tuple[NetworkedTrack, State]:
        """Restore a track from the bytes of `NetworkedTrack.state`; returns the track and its state.

        Raises:
            OnlineError: the bytes are no state, or one of another kind or task.
        """
        state = read_state(self, kept, NetworkedState)
        inner = BlendTrack(self.blend, Ring(self.task, state), state.carried.experts)
        return NetworkedTrack(self, inner, state.carried), state


class NetworkedTrack:
    """One series followed by a `NetworkedBlend`; its arrays are changed in place."""

    def __init__(self, forecaster: NetworkedBlend, inner: BlendTrack, kept: NetworkedState) -> None:
        self.forecaster, self.inner, self.kept = forecaster, inner, kept
        self._needs = forecaster.network.view(forecaster.task).needs
        self._made = np.empty(kept.quantiles.shape)

    @property
    def quantiles(self) -> Floats:
        """(horizon, levels) records/s after the newest step; NaN while nothing was seen. `step` overwrites it."""
        return self.kept.quantiles

    def step(self, value: float) -> None:
        """Append one step: the blend learns from it, the network reads it, both are scored and mixed anew.

        Args:
            value: mean rate in records/s; NaN: missing. While the series has not begun, a NaN moves the time only.

        Raises:
            SeriesError: the value is negative or infinite; nothing has changed.
        """
        inner, kept, forecaster = self.inner, self.kept, self.forecaster
        before = inner.ring.seen
        inner.step(value)
        if inner.ring.seen == before:
            return
        made, judged = self._made, inner.kept.judged
        if inner.ring.seen >= self._needs:
            step_network(forecaster.compiled, inner.ring.buffer, inner.ring.end, kept.hidden, made)
        if inner.ring.seen < self._needs or inner.ring.time < forecaster.network.until:
            made.fill(np.nan)
        score_and_mix(
            kept.mix, forecaster.levels_array, judged.share, inner.kept.seen, value, bool(judged.scalars[LOST]),
            inner.quantiles, made, kept.quantiles,
        )  # fmt: skip

    def basis(self) -> str:
        """Name what the quantiles rest on, as `BlendTrack.basis`; "networked_blend" where the network has a share."""
        return self.forecaster.kind if self.kept.mix.shares.any() else self.inner.basis()

    def state(self) -> bytes:
        """Serialise the newest values and all that was learnt, for `NetworkedBlend.resume`."""
        kept = self.kept
        carried = NetworkedState(self.inner.carried(), kept.hidden, kept.mix, kept.quantiles)
        return write_state(self.forecaster, self.inner.ring.state(carried))
