"""Fitting a recurrent network by truncated back-propagation with carried state: the loop yields, the caller logs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from models.forecast.core.forecaster import Task
from models.forecast.core.series import Series
from models.forecast.neural.adam import Adam
from models.forecast.neural.cells import Cell
from models.forecast.neural.network import Network, as_forecaster
from models.forecast.neural.recurrent import Recurrent
from models.forecast.neural.windows import PastWindow, season_of, training_windows

HIDDEN = 32
"""Units of a cell where nothing else is asked for."""
SEED = 7
"""Default seed of the first weights and of where the lanes (parallel stretches of history) are cut."""
VALIDATION = 0.15
"""Newest share of the rows with a known outcome, on which the number of epochs is chosen."""
CHUNKS = 8
"""Chunks in a lane (contiguous stretch of history), at least; a short history is read in fewer lanes."""
WARMTH = 96
"""Rows run through before the validation rows, so that the hidden state has settled by then."""


@dataclass(frozen=True)
class TrainingPlan:
    """Hyper-parameters of the training of a recurrent network.

    Attributes:
        epochs: passes over the rows, at most.
        learning_rate: of AdamW; the linear part has a tenth of it.
        lanes: contiguous stretches of the history that form a batch, at most.
        chunk: steps of truncated back-propagation; the hidden state is carried on into the next chunk.
        patience: passes without a better validation loss after which the search ends.
        weight_decay: of the cell and its head.
        memory: decay of the exponential moving average of the weights per update.
    """

    epochs: int = 40
    learning_rate: float = 5e-3
    lanes: int = 16
    chunk: int = 48
    patience: int = 8
    weight_decay: float = 0.01
    memory: float = 0.97


@dataclass(frozen=True)
class Epoch:
    """Losses of one pass over the training rows.

    Attributes:
        index: 0 is the linear start, before any pass.
        phase: "search" for the number of passes, then "refit" with that number on all rows.
        train_loss: mean pinball loss over the pass as a share of the mean load; NaN at the start.
        validation_loss: the same over the newest rows, which the search does not train on; NaN in the refit.
        updates: steps of the optimizer.
    """

    index: int
    phase: str
    train_loss: float
    validation_loss: float
    updates: int = 0


class TrainingRows(NamedTuple):
    """Training rows, oldest first: rows (T, width), anchor and unit (T,), outcomes (T, horizon) ÷ mean load.

    Anchor and unit are `windows.NewestRows.anchor` and `unit` over the root of the mean load. NaN outcomes are missing.
    """

    rows: Tensor
    anchor: Tensor
    unit: Tensor
    outcomes: Tensor

    def part(self, begin: int, end: int) -> TrainingRows:
        """Return the rows from index `begin` to before `end`."""
        return TrainingRows(*(column[begin:end] for column in self))

    def lanes(self, count: int) -> TrainingRows:
        """Reshape the newest rows to (count, T // count, ...) contiguous stretches; the oldest remainder is dropped.

        Raises:
            RuntimeError: torch's, where there are fewer rows than stretches.
        """
        length = len(self.rows) // count
        return TrainingRows(*(column[-count * length :].reshape(count, length, *column.shape[1:]) for column in self))


def train_network(
    network: Recurrent, view: PastWindow, history: Series, plan: TrainingPlan, generator: torch.Generator
) -> Iterator[Epoch]:
    """Train a network in place, yielding the losses of each pass; it is complete only when the iterator is exhausted.

    The newest 15 % of the rows with a known outcome choose the number of passes; with 0 only the linear part is fitted.
    Then the network starts again and trains that long on all rows. The same generator state gives the same weights.
    Nothing is saved.

    Args:
        network: with its first weights, built for `view`; for another view torch's RuntimeError comes through.
        view: what of the past it reads.
        history: records/s in the task's steps, at least 0, neither of which is checked; NaN: missing.
        plan: hyper-parameters.
        generator: draws where the history is cut into parallel stretches.

    Raises:
        SeriesError: at the first `next`: under `view.needs` + horizon steps of history, or no row with a known outcome.
    """
    every = _rows(view, history)
    levels = view.task.levels
    known = torch.isfinite(every.outcomes).any(dim=1).nonzero()[:, 0].tolist()
    held = int(len(known) * VALIDATION)
    cut = known[-held] if held else 0
    older = cut - view.task.horizon  # outcomes of training rows end before validation
    untrained = {name: value.clone() for name, value in network.state_dict().items()}
    best, losses = 0, [math.inf]
    if known[0] < older:
        newest, warmth = every.part(max(cut - WARMTH, 0), len(every.rows)), min(WARMTH, cut)
        _fit_linear_part(network, every.part(0, older), levels)
        losses = [_validation_loss(network, newest, warmth, levels)]
        yield Epoch(0, "search", math.nan, losses[0])
        passes = _passes(network, every.part(0, older), levels, plan, generator)
        for index, (loss, averaged, updates) in enumerate(passes, start=1):
            losses.append(_validation_loss(averaged, newest, warmth, levels))
            yield Epoch(index, "search", loss, losses[-1], updates)
            best = min(range(len(losses)), key=losses.__getitem__)
            if index - best >= plan.patience:
                break
    network.load_state_dict(untrained)
    _fit_linear_part(network, every, levels)
    passes = _passes(network, every, levels, plan, generator)
    for index in range(1, best + 1):
        loss, averaged, updates = next(passes)
        if index == best:
            network.load_state_dict(averaged.state_dict())
        yield Epoch(index, "refit", loss, math.nan, updates)


def fit_network(
    cell: Cell, task: Task, history: Series, plan: TrainingPlan | None = None, hidden: int = HIDDEN, seed: int = SEED,
    on_epoch: Callable[[Epoch], None] = lambda epoch: None,
) -> Network:  # fmt: skip
    """Train a network on a history and return it as a forecaster; blocks until done, saves nothing.

    It reads the same time last week where the history holds two weeks, else only yesterday's.

    Args:
        cell: "gru" or "lstm".
        task: what is forecast; its levels must contain 0.5.
        history: records/s in the task's steps, at least 0, neither of which is checked; NaN: missing.
        plan: hyper-parameters; None: the defaults.
        hidden: units of the cell.
        seed: of weights and batches; the same gives the same network.
        on_epoch: called with every `Epoch` (losses of one pass) as it ends; what it raises comes through.

    Raises:
        SeriesError: the history is under `PastWindow.needs` + horizon steps long, or gives no row with a known outcome.
        ValueError: the levels do not contain 0.5.
    """
    view, generator = PastWindow(task, season_of(task, len(history))), torch.Generator().manual_seed(seed)
    network = Recurrent(view, cell, hidden, generator)
    for epoch in train_network(network, view, history, plan or TrainingPlan(), generator):
        on_epoch(epoch)
    return as_forecaster(network, view, history.end)


def _rows(view: PastWindow, history: Series) -> TrainingRows:
    reading, outcomes = training_windows(view, history)
    mean = float(np.nanmean(outcomes)) or 1.0
    anchor, unit = (torch.from_numpy(x[0] / math.sqrt(mean)).float() for x in (reading.anchor, reading.unit))
    return TrainingRows(torch.from_numpy(reading.rows[0]), anchor, unit, torch.from_numpy(outcomes) / mean)


def _fit_linear_part(network: Recurrent, rows: TrainingRows, levels: tuple[float, ...]) -> None:
    targets = (rows.outcomes.sqrt() - rows.anchor[:, None]) / rows.unit[:, None]
    network.fit_linear_part(rows.rows, targets, levels)


def _passes(
    network: Recurrent, rows: TrainingRows, levels: tuple[float, ...], plan: TrainingPlan, generator: torch.Generator
) -> Iterator[tuple[float, nn.Module, int]]:
    """Train pass by pass; yield the loss, the network with averaged weights, and the number of updates."""
    count = max(min(plan.lanes, len(rows.rows) // (CHUNKS * plan.chunk)), 1)
    linear = [p for name, p in network.named_parameters() if not name.startswith(("rnn", "head"))]
    optimizers = (
        Adam([*network.rnn.parameters(), *network.head.parameters()], plan.learning_rate, plan.weight_decay),
        Adam(linear, plan.learning_rate * 0.1),  # already fitted: they follow slowly
    )
    averaging = torch.optim.swa_utils.get_ema_multi_avg_fn(plan.memory)  # type: ignore[no-untyped-call]
    averaged = torch.optim.swa_utils.AveragedModel(network, multi_avg_fn=averaging)
    ends = torch.zeros(count, network.carried)
    for _ in range(plan.epochs):
        shift = int(torch.randint(plan.chunk, (), generator=generator))
        lanes = rows.part(0, max(len(rows.rows) - shift, count)).lanes(count)
        hidden = torch.cat([torch.zeros(1, network.carried), ends[:-1]])  # a lane begins where the one before it ended
        total, length = 0.0, lanes.rows.shape[1]
        for begin in range(0, length, plan.chunk):
            chunk = TrainingRows(*(column[:, begin : begin + plan.chunk] for column in lanes))
            network.zero_grad()
            moves, hidden = network.run_rows(chunk.rows, hidden.detach())
            loss = _loss(moves, chunk, levels)
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            for optimizer in optimizers:
                optimizer.step()
            averaged.update_parameters(network)
            total += float(loss.detach()) * chunk.rows.shape[1] / length
        ends = hidden.detach()
        yield total, averaged.module, -(-length // plan.chunk)


@torch.no_grad()
def _validation_loss(network: nn.Module, rows: TrainingRows, warmth: int, levels: tuple[float, ...]) -> float:
    assert isinstance(network, Recurrent)
    moves = network.run_rows(rows.rows[None], torch.zeros(1, network.carried))[0][0]
    return float(_loss(moves[warmth:], rows.part(warmth, len(rows.rows)), levels))


def _loss(moves: Tensor, rows: TrainingRows, levels: tuple[float, ...]) -> Tensor:
    root = rows.anchor[..., None, None] + rows.unit[..., None, None] * moves
    return pinball_loss(root.clamp_min(0.0).square(), rows.outcomes, levels)


def pinball_loss(quantiles: Tensor, outcomes: Tensor, levels: tuple[float, ...]) -> Tensor:
    """Return the mean pinball loss as a tensor with a gradient, in the unit of the values.

    Args:
        quantiles: (..., horizon, levels) forecasts; shapes that do not fit: torch's RuntimeError.
        outcomes: (..., horizon); one that is not finite is left out.
        levels: (levels,) each in (0, 1).

    Returns:
        A scalar; 0 where no outcome is known (`scores.pinball` is NaN there).
    """
    known = torch.isfinite(outcomes)
    error = torch.where(known, outcomes, 0.0)[..., None] - quantiles
    level = torch.tensor(levels)
    losses = torch.maximum(level * error, (level - 1) * error).mean(dim=-1)
    return (losses * known).sum() / known.sum().clamp_min(1)
