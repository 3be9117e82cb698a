"""What torch's network and its compiled step agree on; without torch, which takes two seconds to load."""

from __future__ import annotations

from typing import Literal

from models.forecast.neural.windows import PastWindow

Cell = Literal["gru", "lstm"]
CELLS: tuple[Cell, ...] = ("gru", "lstm")
SHARE = 0.3
"""Of the volatility: how much the median is corrected by, per unit of the network's output."""
LEAST_LEVEL = 0.05
"""Of the day's mean root rate: a lower expected root counts as this where it sets the widths."""
_LOOK = (1, 3, 6, 12)  # steps ahead of the linear forecast that the cell reads


def carried_by(cell: Cell, hidden: int) -> int:
    """Return how many numbers a cell of so many units carries: its output, then of an LSTM its cell state."""
    return hidden * (1 if cell == "gru" else 2)


def cell_inputs(view: PastWindow) -> tuple[list[int], list[int]]:
    """Return which moves the cell reads, and which steps ahead (less one) of the linear forecast."""
    seasonal = (i for i, (lag, k) in enumerate(view.moves) if lag and k in (0, 1))
    return [view.moves.index((0, -1)), *seasonal], [h - 1 for h in _LOOK if h <= view.task.horizon]
