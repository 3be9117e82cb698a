"""Transfer from a source to a target: pre-train, adapt to both together, fine-tune; chosen on held-back target rows."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from models.adapt.discrepancy import around_median, classes, cmmd2, mmd2_biased, quartiles
from models.adapt.network import CONTEXT, DomainRows, DomainScale, TravellingGru
from models.forecast.core.series import Floats


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
        batch: rows per batch, of either load.
        learning_rate: of Adam; fine-tuning has a tenth of it.
        pretraining: steps on the source.
        adapting: steps on both together.
        tuning: steps of fine-tuning on the target, at most.
        alone: steps of a network on the target only, at most.
        every: steps between two looks at the held-back rows.
        grid: the λ that are tried.
    """

    hidden: int = 32
    batch: int = 64
    learning_rate: float = 3e-3
    pretraining: int = 150
    adapting: int = 20
    tuning: int = 20
    alone: int = 80
    every: int = 10
    grid: tuple[LossWeights, ...] = GRID


@dataclass(frozen=True, eq=False)
class Travelled:
    """An adapted and fine-tuned network.

    Attributes:
        network: for the target's scale.
        weights: the λ it was adapted with.
        select_rmse: scaled RMSE on the select rows.
        tuned: how many steps of fine-tuning were best.
    """

    network: TravellingGru
    weights: LossWeights
    select_rmse: float
    tuned: int


def batches(rows: DomainRows, size: int, generator: torch.Generator) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield endless batches (x, y) of up to `size` rows in random order, every row once per pass.

    A pass's last batch may be smaller.
    """
    while True:
        for drawn in torch.split(torch.randperm(len(rows), generator=generator), size):
            yield rows.x[drawn], rows.y[drawn]


def train(
    network: TravellingGru, rows: DomainRows, steps: int, plan: TransferPlan, generator: torch.Generator,
    learning_rate: float | None = None,
) -> Iterator[float]:  # fmt: skip
    """Train in place on one load by Adam, what is not frozen; yields the scaled mean squared error of every batch.

    Nothing happens until it is iterated.

    Args:
        network: changed in place.
        rows: in the load's scale.
        steps: batches.
        plan: batch size and learning rate.
        generator: draws batches and dropout.
        learning_rate: in place of the plan's.
    """
    free = [weight for weight in network.parameters() if weight.requires_grad]
    optimizer = torch.optim.Adam(free, lr=learning_rate or plan.learning_rate)
    for _, (x, y) in zip(range(steps), batches(rows, plan.batch, generator), strict=False):
        yield _descend(network, optimizer, mse(network(x, generator)[1], y))


def adapt(
    network: TravellingGru,
    source: DomainRows,
    target: DomainRows,
    weights: LossWeights,
    plan: TransferPlan,
    generators: tuple[torch.Generator, torch.Generator],
) -> Iterator[tuple[float, int]]:
    """Minimise MSE(source) + MSE(target) + λ₁·MMD² + λ₂·CMMD² in place, one batch of either load per step.

    Nothing happens until it is iterated. Each load draws from its own generator and the discrepancies draw nothing:
    with λ₁ = λ₂ = 0 this is plain training on both, bit for bit.

    Args:
        network: pre-trained on the source; changed in place.
        source: all of its rows; the quartiles of its increments are the edges of the classes of both loads.
        target: the rows to adapt on.
        weights: λ₁ and λ₂.
        plan: batch size, steps and learning rate.
        generators: the source's and the target's.

    Yields:
        Of every step its loss, and the number of classes that CMMD² rests on; 0 where λ₂ is 0 or no class was shared.
    """
    edges = quartiles(_increments(source.x, source.y))
    optimizer = torch.optim.Adam(network.parameters(), lr=plan.learning_rate)
    pairs = zip(*(batches(r, plan.batch, g) for r, g in zip((source, target), generators, strict=True)), strict=True)
    for _, ((xs, ys), (xt, yt)) in zip(range(plan.adapting), pairs, strict=False):
        (a, made_s), (b, made_t) = network(xs, generators[0]), network(xt, generators[1])
        loss, shared = mse(made_s, ys) + mse(made_t, yt), 0
        if weights.marginal or weights.conditional:
            kernel = around_median(a, b)
        if weights.marginal:
            loss = loss + weights.marginal * mmd2_biased(a, b, kernel)
        if weights.conditional:
            class_s, class_t = (classes(_increments(x, y), edges) for x, y in ((xs, ys), (xt, yt)))
            conditional, shared = cmmd2(a, b, class_s, class_t, kernel)
            loss = loss + weights.conditional * conditional
        yield _descend(network, optimizer, loss), shared


def fine_tune(
    network: TravellingGru, target: DomainRows, select: DomainRows, plan: TransferPlan, generator: torch.Generator
) -> tuple[int, float]:
    """Train on target rows at a tenth of the learning rate, convolutions frozen; keep the state best on `select`.

    The network is changed in place; its convolutions are trainable again afterwards.

    Returns:
        How many steps were best (0: none helped), and the scaled RMSE on `select` after them.
    """
    return _best_on(select, network, _tuning(network, target, plan.tuning, plan, generator), plan.every)


def transfer(
    pretrained: TravellingGru, source: DomainRows, target: DomainRows, select: DomainRows, plan: TransferPlan, seed: int
) -> Travelled:
    """Adapt and fine-tune a copy of a network with every λ of the plan's grid, and return the best on `select`.

    Args:
        pretrained: the source's network; not changed.
        source: the source's rows, in its scale.
        target: the target's rows to adapt on, in its scale.
        select: held-back rows of the target, in the same scale.
        plan: grid, steps and batch size.
        seed: the same gives the same network.

    Raises:
        ValueError: the plan's grid is empty.
    """
    found: list[Travelled] = []
    for weights in plan.grid:
        network = _adapted(pretrained, source, target, weights, plan, seed)
        tuned, error = fine_tune(network, target, select, plan, torch.Generator().manual_seed(seed + 2))
        found.append(Travelled(network, weights, error, tuned))
    return min(found, key=lambda one: one.select_rmse)


def transfer_again(
    pretrained: TravellingGru, source: DomainRows, target: DomainRows, chosen: Travelled, plan: TransferPlan, seed: int
) -> TravellingGru:
    """Adapt and fine-tune a copy of a network on all of the target's rows, with λ and tuning steps already chosen.

    Args:
        pretrained: the source's network; not changed.
        source: the source's rows, in its scale.
        target: all of the target's rows, in its scale.
        chosen: what `transfer` returned.
        plan: steps and batch size.
        seed: the same as for `transfer`.
    """
    network = _adapted(pretrained, source, target, chosen.weights, plan, seed)
    for _ in _tuning(network, target, chosen.tuned, plan, torch.Generator().manual_seed(seed + 2)):
        pass
    return network


def _adapted(
    pretrained: TravellingGru,
    source: DomainRows,
    target: DomainRows,
    weights: LossWeights,
    plan: TransferPlan,
    seed: int,
) -> TravellingGru:
    network = copy.deepcopy(pretrained)
    generators = torch.Generator().manual_seed(seed), torch.Generator().manual_seed(seed + 1)
    for _ in adapt(network, source, target, weights, plan, generators):
        pass
    return network


def alone(rows: DomainRows, select: DomainRows, plan: TransferPlan, seed: int) -> tuple[TravellingGru, int]:
    """Train a new network on the target's rows only, up to `plan.alone` batches, and keep the state best on `select`.

    Returns:
        The network, and how many batches were best.
    """
    generator = torch.Generator().manual_seed(seed)
    network = TravellingGru(rows.y.shape[1], plan.hidden, generator)
    return network, _best_on(select, network, train(network, rows, plan.alone, plan, generator), plan.every)[0]


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
def rmse(network: TravellingGru, rows: DomainRows) -> float:
    """Return the root mean squared error on (N, 24) rows in their scale, without dropout."""
    return math.sqrt(float(mse(network(rows.x)[1], rows.y)))


def _increments(x: Tensor, y: Tensor) -> Tensor:
    """Return (B,) the mean outcome less the last value: what the head adds, and what the features can know.

    Classes by the absolute level would pair rows whose features have nothing in common.
    """
    return y.mean(dim=1) - x[:, -1]


def _tuning(
    network: TravellingGru, rows: DomainRows, steps: int, plan: TransferPlan, generator: torch.Generator
) -> Iterator[float]:
    """Train at a tenth of the learning rate with the convolutions frozen, and unfreeze all afterwards."""
    for weight in network.convolutions():
        weight.requires_grad_(False)
    yield from train(network, rows, steps, plan, generator, plan.learning_rate / 10)
    network.requires_grad_(True)


def _best_on(select: DomainRows, network: TravellingGru, losses: Iterator[float], every: int) -> tuple[int, float]:
    """Exhaust the training, then restore the state best on `select`; return its step and its scaled RMSE."""
    best, kept, least = 0, copy.deepcopy(network.state_dict()), rmse(network, select)
    for step, _ in enumerate(losses, start=1):
        if step % every == 0 and (now := rmse(network, select)) < least:
            best, kept, least = step, copy.deepcopy(network.state_dict()), now
    network.load_state_dict(kept)
    return best, least


def _descend(network: TravellingGru, optimizer: torch.optim.Optimizer, loss: Tensor) -> float:
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    nn.utils.clip_grad_norm_(network.parameters(), 1.0)
    optimizer.step()
    return float(loss.detach())
