"""A trained recurrent network as a forecaster that carries its hidden state from step to step."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from models.forecast.baselines.naive import Naive
from models.forecast.core.forecaster import State, Task, begin_state, fill_gaps
from models.forecast.core.series import Floats, Series
from models.forecast.core.tracks import Carrying
from models.forecast.neural.recurrent import Recurrent
from models.forecast.neural.windows import MOST, RECENT, Packed, PastWindow, input_rows, moves_to_rates

Module = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


def script_step(module: Module, width: int, carried: int) -> Module:
    """Turn one step of a network into TorchScript, which gives the same numbers in a quarter of the time.

    What torch.export loads checks its inputs and goes from operator to operator in Python, 270 µs for 50 µs of work.

    Args:
        module: row (1, width) and state (1, carried) to moves (1, horizon, levels) and state (1, carried).
        width: numbers in a row.
        carried: numbers in a hidden state.

    Raises:
        RuntimeError: the module takes other shapes.
    """
    jit: Any = torch.jit
    example = torch.zeros(1, width), torch.zeros(1, carried)
    if isinstance(module, torch.fx.GraphModule):
        module = torch.fx.GraphModule(module, module.graph)  # without the checks, which cannot be traced
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # torch recommends its compiler, which a server cannot wait for
        scripted: Module = jit.freeze(jit.trace(module, example, check_trace=False).eval())
    return scripted


class NetworkState(NamedTuple):
    """What a `Network` carries from step to step beside the newest values.

    Attributes:
        hidden: (carried,) the network's hidden state after the newest step.
        quantiles: (horizon, levels) records/s, its forecast there.
    """

    hidden: Packed
    quantiles: Floats


@dataclass(frozen=True)
class Network(Carrying):
    """A trained GRU or LSTM as a forecaster; the naive forecast stands in until the history is long enough.

    Attributes:
        view: what of the past the network reads.
        module: one step: row (B, width) and state (B, carried) to moves (B, horizon, levels) and state; a `Recurrent`
            or what `script_step` makes of an exported one.
        kind: name of the cell, "gru" or "lstm".
        carried: numbers in a hidden state.
    """

    view: PastWindow
    module: Module
    kind: str
    carried: int
    carries: ClassVar[Any] = NetworkState

    @property
    def task(self) -> Task:  # type: ignore[override]
        """What is forecast."""
        return self.view.task

    def state_after(self, history: Series) -> State:
        """Build the state at the end of a history (may be empty); the network runs over its newest 20,001 rows at most.

        Any but a `Recurrent` is run row by row, which is slower. Nothing is carried while the history is shorter than
        `view.needs` steps.

        Raises:
            SeriesError: the history has another step than the task, or negative or infinite values.
        """
        state = begin_state(self.view.task, history, RECENT)
        if state.seen < self.view.needs:
            return state
        values = fill_gaps(history.values, self.view.task)[-min(state.seen, MOST + self.view.needs) :]
        reading = input_rows(self.view, values[None])
        with torch.inference_mode():
            moves, hidden = self._follow(torch.from_numpy(reading.rows))
        quantiles = moves_to_rates(reading, moves[:, None].numpy())[0, -1]
        return replace(state, carried=NetworkState(hidden[0].numpy(), quantiles))

    def next_carried(self, before: State, after: State, value: float) -> NetworkState | None:
        """Return the hidden state and the forecast after one more step; None before `view.needs` steps were seen.

        Args:
            before: the state before the step; without a hidden state the network starts from zeros.
            after: the state after it.
            value: not used; the newest of `after.values` counts, also where it was filled.
        """
        if after.seen < self.view.needs:
            return None
        reading = input_rows(self.view, after.values[None, -self.view.needs :])
        hidden = before.carried.hidden if before.carried else np.zeros(self.carried, dtype=np.float32)
        with torch.inference_mode():
            moves, now = self.module(torch.from_numpy(reading.rows[:, 0]), torch.from_numpy(hidden[None]))
        return NetworkState(now[0].numpy(), moves_to_rates(reading, moves[:, None].numpy())[0, 0])

    def quantiles_of(self, state: State) -> Floats:
        """Return the (horizon, levels) quantile forecast at a state in records/s; NaN while nothing was ever seen.

        Without a hidden state it is the seasonal naive forecast.
        """
        if state.carried is None:
            return Naive(self.view.task).quantiles_of(state)
        quantiles: Floats = state.carried.quantiles
        return quantiles

    def basis(self, state: State) -> str:
        """Return "network", or what the naive forecast that stands in rests on (`Naive.basis`)."""
        return "network" if state.carried is not None else Naive(self.view.task).basis(state)

    def _follow(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return moves and hidden state after rows (1, T, width) from a zero state, row by row without `run_rows`."""
        hidden = torch.zeros(1, self.carried)
        if isinstance(self.module, Recurrent):
            moves, hidden = self.module.run_rows(rows, hidden)
            return moves[:, -1], hidden
        for row in rows[0]:
            moves, hidden = self.module(row[None], hidden)
        return moves, hidden
