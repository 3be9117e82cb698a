"""Training of the network that is transferred: on one load, chosen on held-back rows, and its forecasts and errors."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from models.adapt.network import DomainRows, TransferGru
from models.adapt.scale import CONTEXT, DomainScale
from models.forecast.core.series import Floats
from models.forecast.neural.adam import Adam


@dataclass(frozen=True)
class LossWeights:
    """Weights of the discrepancy losses: λ₁ (`marginal`) of MMD² and λ₂ (`conditional`) of CMMD²; 0 leaves one out."""

    marginal: float = 0.0
    conditional: float = 0.0


GRID = tuple(LossWeights(a, b) for a in (0.0, 0.1) for b in (0.0, 0.1))
"""Weights that are tried; both 0 among them, so that the discrepancies can drop out."""


@dataclass(frozen=True)
class TransferPlan:
    """Hyper-parameters of the transfer; steps of training are batches.

    Attributes:
        hidden: channels and units of the network.
        batch: rows per batch, of either load, at least 1.
        learning_rate: of Adam; fine-tuning has a tenth of it.
        pretraining: steps on the source.
        adapting: steps on both together.
        tuning: steps of fine-tuning on the target, at most.
        target_only: steps of a network on the target only, at most.
        every: steps between two measurements on the held-back rows, at least 1.
        grid: the λ that are tried.
    """

    hidden: int = 32
    batch: int = 64
    learning_rate: float = 3e-3
    pretraining: int = 150
    adapting: int = 20
    tuning: int = 20
    target_only: int = 80
    every: int = 10
    grid: tuple[LossWeights, ...] = GRID


def batches(rows: DomainRows, size: int, generator: torch.Generator) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield endless batches (x, y) of up to `size` rows in random order, every row once per pass.

    A pass's last batch may be smaller.
    """
    while True:
        for drawn in torch.split(torch.randperm(len(rows), generator=generator), size):
            yield rows.x[drawn], rows.y[drawn]


def train(
    network: TransferGru, rows: DomainRows, steps: int, plan: TransferPlan, generator: torch.Generator,
    learning_rate: float | None = None,
) -> Iterator[float]:  # fmt: skip
    """Train a network on one load by Adam, a batch per `next`; parameters that do not require a gradient stay.

    Nothing happens until it is iterated; nothing is saved.

    Args:
        network: changed in place.
        rows: in the load's scale, at least one.
        steps: batches.
        plan: batch size and learning rate.
        generator: draws batches and dropout.
        learning_rate: in place of the plan's; None or 0: the plan's.

    Yields:
        The mean squared error of every batch before its step, in squares of the load's scale.
    """
    trainable = [weight for weight in network.parameters() if weight.requires_grad]
    optimizer = Adam(trainable, learning_rate or plan.learning_rate)
    for _, (x, y) in zip(range(steps), batches(rows, plan.batch, generator), strict=False):
        yield descend(network, optimizer, mse(network(x, generator)[1], y))


def train_target_only(rows: DomainRows, select: DomainRows, plan: TransferPlan, seed: int) -> tuple[TransferGru, int]:
    """Train a new network on the target's rows for `plan.target_only` batches, and keep the state best on `select`.

    Returns:
        The network, and how many batches were best; 0: none helped.
    """
    generator = torch.Generator().manual_seed(seed)
    network = TransferGru(rows.y.shape[1], plan.hidden, generator)
    return network, best_on(select, network, train(network, rows, plan.target_only, plan, generator), plan.every)[0]


def best_on(select: DomainRows, network: TransferGru, losses: Iterator[float], every: int) -> tuple[int, float]:
    """Exhaust a training, then put the network back into the state that had the least RMSE on held-back rows.

    Args:
        select: the held-back rows, in the network's scale.
        network: that the training changes.
        losses: the training, as `train` returns it.
        every: steps between two measurements on the held-back rows; 0 raises ZeroDivisionError.

    Returns:
        The step of that state (0: before the first), and its RMSE in the scale of the rows.
    """
    best, kept, least = 0, copy.deepcopy(network.state_dict()), rmse(network, select)
    for step, _ in enumerate(losses, start=1):
        if step % every == 0 and (now := rmse(network, select)) < least:
            best, kept, least = step, copy.deepcopy(network.state_dict()), now
    network.load_state_dict(kept)
    return best, least


def descend(network: TransferGru, optimizer: Adam, loss: Tensor) -> float:
    """Change the network by one step down the gradient, clipped to norm 1; return the loss before it."""
    network.zero_grad()  # of frozen weights, too: what a step before left there would count in the clipping
    loss.backward()  # type: ignore[no-untyped-call]
    nn.utils.clip_grad_norm_(network.parameters(), 1.0)
    optimizer.step()
    return float(loss.detach())


def forecast(network: Callable[[Tensor], Tensor], values: Floats, scale: DomainScale) -> Floats:
    """Forecast after every window of 24 values, without dropout where the network is a `ForecastOnly`.

    Args:
        network: (B, 24) to (B, p), scaled.
        values: (T,) records/s without gaps, T at least 24.
        scale: the network's.

    Returns:
        (T − 23, p) records/s, which may be negative; the first row follows value 23 (counted from 0).

    Raises:
        RuntimeError: torch's, with fewer than 24 values.
    """
    with torch.no_grad():
        scaled: Floats = network(scale.scaled(values).unfold(0, CONTEXT, 1)).numpy().astype(np.float64)
    return scaled * scale.span + scale.low


def mse(forecasts: Tensor, outcomes: Tensor) -> Tensor:
    """Return the mean squared error as a scalar tensor, in the square of the tensors' unit."""
    return ((forecasts - outcomes) ** 2).mean()


@torch.no_grad()
def rmse(network: TransferGru, rows: DomainRows) -> float:
    """Return the root mean squared error on (N, 24) rows in their scale, without dropout."""
    return math.sqrt(float(mse(network(rows.x)[1], rows.y)))
