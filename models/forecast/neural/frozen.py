"""A trained GRU or LSTM as data: values that compare and that JSON holds."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from models.forecast.core.forecaster import Task
from models.forecast.core.series import Floats
from models.forecast.neural.cells import Cell, cell_inputs
from models.forecast.neural.compiled import CompiledNetwork
from models.forecast.neural.windows import STATES, PastWindow

if TYPE_CHECKING:
    from torch import Tensor

_STORED = np.dtype("<f4")
MOST_UNITS = 1024
"""Units of a cell, at most."""


@dataclass(frozen=True)
class FrozenNetwork:
    """A trained GRU or LSTM as values that compare and that JSON can hold; which of them, its forecaster knows.

    Attributes:
        season: steps of the longest season it reads, see `PastWindow`.
        hidden: units of the cell.
        until: epoch seconds at which what it was trained on ends; 0 where an older release did not keep it.
        weights: float32 as Base64 by torch's names, in the shapes of `weight_shapes`.
    """

    season: int
    hidden: int
    until: float
    weights: Mapping[str, str]

    def view(self, task: Task) -> PastWindow:
        """Return what of the past it reads."""
        return PastWindow(task, self.season)

    def compiled(self, task: Task, cell: Cell) -> CompiledNetwork:
        """Return the arrays of the compiled step.

        Args:
            task: what it was trained for.
            cell: "gru" or "lstm".

        Raises:
            ValueError: weights are not as many as cell, units and task ask for, or not finite; or season, units, levels
                or time are none that a network can have.
            KeyError: a weight is missing.
            TypeError: text in place of a number.
        """
        known = self.season in (task.day, task.week) and 1 <= self.hidden <= MOST_UNITS and math.isfinite(self.until)
        if not known or 0.5 not in task.levels:
            raise ValueError(
                f"a network of {self.hidden} units, a season of {self.season} steps, levels {task.levels}, trained "
                f"until {self.until}: 1 to {MOST_UNITS}, {task.day} or {task.week}, with 0.5, a time are expected"
            )
        view = self.view(task)
        shapes = weight_shapes(cell, self.hidden, view)
        weights = {name: _unpacked(self.weights[name], name, shape) for name, shape in shapes.items()}
        read, look = cell_inputs(view)
        return CompiledNetwork(
            task.levels.index(0.5), task.day, self.season, view.back, view.weekly.astype(np.uint8),
            np.array(read), np.array(look), weights["linear"], weights["bias"], weights["centre"], weights["width"],
            weights["steep"][:, 0], weights["restless"][:, 0], float(weights["typical"]), weights["rnn.weight_ih_l0"],
            weights["rnn.weight_hh_l0"], np.stack([weights["rnn.bias_ih_l0"], weights["rnn.bias_hh_l0"]]),
            weights["head.weight"], weights["head.bias"],
        )  # fmt: skip


def freeze(learned: Mapping[str, Tensor], cell: Cell, hidden: int, view: PastWindow, until: float) -> FrozenNetwork:
    """Return a trained network as data; what its linear part does not read has weight 0. Sizes are not checked.

    Args:
        learned: `Recurrent.state_dict` of the network, by torch's names; other names are not read.
        cell: "gru" or "lstm".
        hidden: units of the cell.
        view: what of the past it reads.
        until: epoch seconds at which the history that it was trained on ends.

    Raises:
        KeyError: a weight is missing.
    """
    named = {name: learned[name].detach() for name in weight_shapes(cell, hidden, view)}
    named["linear"] = named["linear"] * learned["kept"]
    weights = {
        name: base64.b64encode(value.numpy().astype(_STORED).tobytes()).decode() for name, value in named.items()
    }
    return FrozenNetwork(view.season, hidden, until, weights)


def weight_shapes(cell: Cell, hidden: int, view: PastWindow) -> dict[str, tuple[int, ...]]:
    """Return the shape of each weight of a network by torch's name."""
    horizon, levels, moves = view.task.horizon, len(view.task.levels), len(view.moves)
    rows = hidden * (3 if cell == "gru" else 4)
    inputs = sum(len(part) for part in cell_inputs(view)) + STATES - 1
    return {
        "linear": (horizon, moves), "bias": (horizon,), "centre": (horizon,), "width": (horizon, levels),
        "steep": (horizon, 1), "restless": (horizon, 1), "typical": (), "rnn.weight_ih_l0": (rows, inputs),
        "rnn.weight_hh_l0": (rows, hidden), "rnn.bias_ih_l0": (rows,), "rnn.bias_hh_l0": (rows,),
        "head.weight": (horizon * levels, hidden), "head.bias": (horizon * levels,),
    }  # fmt: skip


def _unpacked(text: str, name: str, shape: tuple[int, ...]) -> Floats:
    found = np.frombuffer(base64.b64decode(text, validate=True), _STORED).astype(np.float64)
    if found.size != math.prod(shape) or not np.isfinite(found).all():
        raise ValueError(f"{name} has {found.size} weights; {math.prod(shape)} finite ones are expected")
    return found.reshape(shape)
