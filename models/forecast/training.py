"""Fitting the network: the loop yields, the caller logs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from models.forecast.network import GruQuantiles, Network
from models.forecast.series import Series
from models.forecast.windows import View, windows

VALIDATION = 0.15
"""Share of the newest rows on which the number of epochs is chosen."""


@dataclass(frozen=True)
class Plan:
    """How a network is fitted."""

    epochs: int = 20
    learning_rate: float = 1e-3
    batch: int = 64
    patience: int = 8
    weight_decay: float = 0.01


@dataclass(frozen=True)
class Epoch:
    """One pass over the rows.

    Attributes:
        index: 0 is the linear start, before any pass.
        phase: "search" for the number of epochs, then "refit" with that number on all rows.
        train_loss: mean pinball loss over the pass as a share of the mean load; NaN at the start.
        validation_loss: the same over the newest rows, which the search does not train on; NaN in the refit.
    """

    index: int
    phase: str
    train_loss: float
    validation_loss: float


def build(view: View, history: Series, hidden: int, generator: torch.Generator) -> GruQuantiles:
    """An untrained network in the scale of a history: its mean rate."""
    known = history.values[np.isfinite(history.values)]
    scale = float(known.mean()) if known.any() else 1.0
    return GruQuantiles(view, hidden, scale, generator)


def fit(network: GruQuantiles, view: View, history: Series, plan: Plan, generator: torch.Generator) -> Iterator[Epoch]:
    """Train in place; the network is complete when the iterator ends.

    The newest rows choose how many epochs help (none may be the answer); then the network starts again and trains that
    long on all rows, so that the newest days are not lost to it. The same generator state gives the same weights.

    Raises:
        SeriesError: the history is too short for one row.
    """
    packed, outcomes = (torch.from_numpy(part) for part in windows(view, history))
    held = int(len(packed) * VALIDATION)
    older = len(packed) - held - (view.task.horizon if held else 0)  # outcomes of training rows end before validation
    untrained = {name: value.clone() for name, value in network.state_dict().items()}
    best, losses = 0, [math.inf]
    if older >= 1 and held >= 1:
        newest = packed[-held:], outcomes[-held:]
        network.start(packed[:older], outcomes[:older], view.task.levels)
        losses = [_loss(network, *newest, view)]
        yield Epoch(0, "search", math.nan, losses[0])
        for index, loss in enumerate(
            _passes(network, packed[:older], outcomes[:older], view, plan, generator), start=1
        ):
            losses.append(_loss(network, *newest, view))
            yield Epoch(index, "search", loss, losses[-1])
            best = min(range(len(losses)), key=losses.__getitem__)
            if index - best >= plan.patience:
                break
    network.load_state_dict(untrained)
    network.start(packed, outcomes, view.task.levels)
    passes = _passes(network, packed, outcomes, view, plan, generator)
    for index in range(1, best + 1):
        yield Epoch(index, "refit", next(passes), math.nan)


def trained(network: GruQuantiles, view: View) -> Network:
    """The fitted network as a forecaster."""
    return Network(view, network.eval())


def _passes(
    network: GruQuantiles, packed: Tensor, outcomes: Tensor, view: View, plan: Plan, generator: torch.Generator
) -> Iterator[float]:
    linear = [network.past, network.ahead, network.width]  # already fitted: they follow the GRU slowly
    options = [
        {"params": [*network.gru.parameters(), *network.head.parameters()], "weight_decay": plan.weight_decay},
        {"params": linear, "lr": plan.learning_rate * 0.1, "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(options, lr=plan.learning_rate)
    for _ in range(plan.epochs):
        total = 0.0
        for rows in torch.split(torch.randperm(len(packed), generator=generator), plan.batch):
            optimizer.zero_grad()
            loss = pinball(network(packed[rows]), outcomes[rows], view.task.levels) / network.scale
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            total += float(loss.detach()) * len(rows)
        yield total / len(packed)


def _loss(network: GruQuantiles, packed: Tensor, outcomes: Tensor, view: View) -> float:
    with torch.no_grad():
        return float(pinball(network(packed), outcomes, view.task.levels) / network.scale)


def pinball(quantiles: Tensor, outcomes: Tensor, levels: tuple[float, ...]) -> Tensor:
    """Mean pinball loss of (B, horizon, levels) against (B, horizon); as `scores.pinball`, with a gradient."""
    known = torch.isfinite(outcomes)
    error = torch.where(known, outcomes, 0.0)[..., None] - quantiles
    level = torch.tensor(levels)
    losses = torch.maximum(level * error, (level - 1) * error).mean(dim=-1)
    return (losses * known).sum() / known.sum().clamp_min(1)
