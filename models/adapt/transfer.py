"""From a source to a target: pre-train, adapt both together, fine-tune; held-back target rows say what helps."""

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
    """λ₁ of MMD² and λ₂ of CMMD²; 0 leaves that part out."""

    marginal: float = 0.0
    conditional: float = 0.0


GRID = tuple(LossWeights(a, b) for a in (0.0, 0.1) for b in (0.0, 0.1))
"""Which weights are tried; 0 belongs to them, so that adaptation can switch itself off."""


@dataclass(frozen=True)
class TransferPlan:
    """How a network travels; the steps are batches."""

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
    """An adapted network.

    Attributes:
        network: for the target's scale.
        weights: which λ was chosen.
        select_rmse: scaled RMSE on the select rows.
        tuned: how many steps of fine-tuning helped.
    """

    network: TravellingGru
    weights: LossWeights
    select_rmse: float
    tuned: int


def batches(rows: DomainRows, size: int, generator: torch.Generator) -> Iterator[tuple[Tensor, Tensor]]:
    """Endless batches in random order, every row once per pass; a pass's last batch may be smaller."""
    while True:
        for drawn in torch.split(torch.randperm(len(rows), generator=generator), size):
            yield rows.x[drawn], rows.y[drawn]


def train(
    network: TravellingGru, rows: DomainRows, steps: int, plan: TransferPlan, generator: torch.Generator,
    learning_rate: float | None = None,
) -> Iterator[float]:  # fmt: skip
    """Plain training in place on one domain, of what is not frozen; yields the scaled squared loss of every step."""
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
    """Minimise MSE(source) + MSE(target) + λ₁·MMD² + λ₂·CMMD² in place, a batch of either domain per step.

    Each domain draws from its own generator, and the discrepancies draw nothing: with λ₁ = λ₂ = 0 this is plain
    training on both, bit for bit.

    Args:
        network: pre-trained on the source.
        source: all of its rows; the quartiles of its increments are the classes of both domains.
        target: the `adapt` part.
        weights: λ₁ and λ₂.
        plan: batch, steps and learning rate.
        generators: the source's and the target's.

    Returns:
        Of every step its loss, and the classes that CMMD² rested on; 0 where it was not asked for, or found none.
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
    """Train on target rows at a tenth of the rate, convolutions frozen; keeps the state that was best on `select`.

    Returns:
        How many steps helped, and the scaled RMSE on `select` after them.
    """
    return _best_on(select, network, _tuning(network, target, plan.tuning, plan, generator), plan.every)


def transfer(
    pretrained: TravellingGru, source: DomainRows, target: DomainRows, select: DomainRows, plan: TransferPlan, seed: int
) -> Travelled:
    """Adapt and fine-tune with every λ of the grid; the best on `select` is the result. A seed gives it again."""
    found: list[Travelled] = []
    for weights in plan.grid:
        network = _adapted(pretrained, source, target, weights, plan, seed)
        tuned, error = fine_tune(network, target, select, plan, torch.Generator().manual_seed(seed + 2))
        found.append(Travelled(network, weights, error, tuned))
    return min(found, key=lambda one: one.select_rmse)


def transfer_again(
    pretrained: TravellingGru, source: DomainRows, target: DomainRows, chosen: Travelled, plan: TransferPlan, seed: int
) -> TravellingGru:
    """The same with all of the target's rows, the λ and the number of steps that were chosen on held-back ones."""
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
    """The same network on the target's rows only, and the number of steps that was best on `select`."""
    generator = torch.Generator().manual_seed(seed)
    network = TravellingGru(rows.y.shape[1], plan.hidden, generator)
    return network, _best_on(select, network, train(network, rows, plan.alone, plan, generator), plan.every)[0]


def forecast(network: Callable[[Tensor], Tensor], values: Floats, scale: DomainScale) -> Floats:
    """(T − 23, p) records/s: what a `ForecastOnly` forecasts after every window of (T,) values."""
    with torch.no_grad():
        scaled: Floats = network(scale.scaled(values).unfold(0, CONTEXT, 1)).numpy().astype(np.float64)
    return scaled * scale.span + scale.low


def mse(forecasts: Tensor, outcomes: Tensor) -> Tensor:
    """Mean squared error, in the square of the tensors' unit."""
    return ((forecasts - outcomes) ** 2).mean()


@torch.no_grad()
def rmse(network: TravellingGru, rows: DomainRows) -> float:
    """Root mean squared error on (N, 24) rows in their scale, without dropout."""
    return math.sqrt(float(mse(network(rows.x)[1], rows.y)))


def _increments(x: Tensor, y: Tensor) -> Tensor:
    """(B,) by how much the load moves from its last value in the mean: what the head adds; features see no level.

    A class by the absolute level would pair rows whose features have nothing in common.
    """
    return y.mean(dim=1) - x[:, -1]


def _tuning(
    network: TravellingGru, rows: DomainRows, steps: int, plan: TransferPlan, generator: torch.Generator
) -> Iterator[float]:
    """Training at a tenth of the rate; the convolutions are frozen meanwhile."""
    for weight in network.convolutions():
        weight.requires_grad_(False)
    yield from train(network, rows, steps, plan, generator, plan.learning_rate / 10)
    network.requires_grad_(True)


def _best_on(select: DomainRows, network: TravellingGru, losses: Iterator[float], every: int) -> tuple[int, float]:
    """Train to the end, then take up the state that was best on `select`; after how many steps, and its scaled RMSE."""
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
