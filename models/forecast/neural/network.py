"""A trained recurrent network as a forecaster that carries its hidden state from step to step."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from models.forecast.baselines.naive import Naive
from models.forecast.core.forecaster import State, Task, begin_state, fill_gaps
from models.forecast.core.series import Floats, Series
from models.forecast.core.tracks import Carrying
from models.forecast.neural.cells import Cell, carried_by
from models.forecast.neural.compiled import CompiledNetwork, step_network
from models.forecast.neural.frozen import FrozenNetwork, freeze
from models.forecast.neural.windows import MOST, RECENT, PastWindow

if TYPE_CHECKING:
    from models.forecast.neural.recurrent import Recurrent


class NetworkState(NamedTuple):
    """What a `Network` carries from step to step beside the newest values.

    Attributes:
        hidden: (carried,) the network's hidden state after the newest step, see `cells.carried_by`.
        quantiles: (horizon, levels) records/s, its forecast there.
    """

    hidden: Floats
    quantiles: Floats


@dataclass(frozen=True)
class Network(Carrying):
    """A trained GRU or LSTM as a forecaster; the naive forecast stands in until the history is long enough.

    Attributes:
        task: what is forecast.
        frozen: the network, trained for this task.
        kind: name of the cell, "gru" or "lstm".
        compiled: the network's arrays.

    Raises:
        ValueError, KeyError, TypeError: the weights are not of this task or cell, see `FrozenNetwork.compiled`.
    """

    task: Task
    frozen: FrozenNetwork
    kind: Cell
    compiled: CompiledNetwork = field(init=False, repr=False, compare=False)
    carries: ClassVar[Any] = NetworkState

    def __post_init__(self) -> None:
        object.__setattr__(self, "compiled", self.frozen.compiled(self.task, self.kind))  # refuses what does not fit

    @cached_property
    def view(self) -> PastWindow:
        """What of the past the network reads."""
        return self.frozen.view(self.task)

    def state_after(self, history: Series) -> State:
        """Build the state at the end of a history (may be empty), over whose newest 20,001 rows at most it runs.

        Nothing is carried while the history is shorter than `view.needs` steps.

        Raises:
            SeriesError: the history has another step than the task, or negative or infinite values.
        """
        state = begin_state(self.task, history, RECENT)
        if state.seen < self.view.needs:
            return state
        values = fill_gaps(history.values, self.task)[-min(state.seen, MOST + self.view.needs) :]
        hidden, quantiles = self._nothing()
        for end in range(self.view.needs, len(values) + 1):
            step_network(self.compiled, values, end, hidden, quantiles)
        return replace(state, carried=NetworkState(hidden, quantiles))

    def next_carried(self, before: State, after: State, value: float) -> NetworkState | None:
        """Return the hidden state and the forecast after one more step; None before `view.needs` steps were seen.

        Args:
            before: the state before the step; without a hidden state the network starts from zeros.
            after: the state after it.
            value: not used; the newest of `after.values` counts, also where it was filled.

        Raises:
            ValueError: the hidden state before has another size than the cell's.
        """
        if after.seen < self.view.needs:
            return None
        hidden, quantiles = self._nothing()
        if before.carried is not None:
            hidden[:] = before.carried.hidden  # a copy, in double precision also where an older release kept single
        step_network(self.compiled, after.values, len(after.values), hidden, quantiles)
        return NetworkState(hidden, quantiles)

    def quantiles_of(self, state: State) -> Floats:
        """Return the (horizon, levels) quantile forecast at a state in records/s; NaN while nothing was ever seen.

        Without a hidden state it is the seasonal naive forecast.
        """
        if state.carried is None:
            return Naive(self.task).quantiles_of(state)
        quantiles: Floats = state.carried.quantiles
        return quantiles

    def basis(self, state: State) -> str:
        """Return "network", or what the naive forecast that stands in rests on (`Naive.basis`)."""
        return "network" if state.carried is not None else Naive(self.task).basis(state)

    def _nothing(self) -> tuple[Floats, Floats]:
        """A hidden state of zeros, and room for the quantiles."""
        carried = carried_by(self.kind, self.frozen.hidden)
        return np.zeros(carried), np.empty((self.horizon, len(self.levels)))


def as_forecaster(network: Recurrent, view: PastWindow, until: float) -> Network:
    """Return a network as a forecaster, with a copy of its weights as they are now.

    Args:
        network: built for `view`.
        view: what of the past it reads; its task is what is forecast.
        until: epoch seconds at which the history that it was trained on ends.
    """
    return Network(view.task, freeze(network.state_dict(), network.cell, network.hidden, view, until), network.cell)
