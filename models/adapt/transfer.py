"""Transfer from a source to a target: adapt to both together, fine-tune; weights chosen on held-back target rows."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from models.adapt.discrepancy import around_median, classes, cmmd2, mmd2_biased, quartiles
from models.adapt.network import DomainRows, TransferGru
from models.adapt.training import LossWeights, TransferPlan, batches, best_on, descend, mse, train
from models.forecast.neural.adam import Adam


@dataclass(frozen=True, eq=False)
class TunedTransfer:
    """An adapted and fine-tuned network.

    Attributes:
        network: for the target's scale.
        weights: the λ (of MMD² and CMMD²) it was adapted with.
        select_rmse: RMSE on the select rows, in the target's scale.
        tuning_steps: how many batches of fine-tuning were best; 0: none helped.
    """

    network: TransferGru
    weights: LossWeights
    select_rmse: float
    tuning_steps: int


def adapt(
    network: TransferGru,
    source: DomainRows,
    target: DomainRows,
    weights: LossWeights,
    plan: TransferPlan,
    generators: tuple[torch.Generator, torch.Generator],
) -> Iterator[tuple[float, int]]:
    """Minimise MSE(source) + MSE(target) + λ₁·MMD² + λ₂·CMMD² in place, one batch of either load per `next`.

    Nothing happens until it is iterated. Each load draws from its own generator and the discrepancies draw nothing:
    with λ₁ = λ₂ = 0 this is plain training on both, bit for bit.

    Args:
        network: pre-trained on the source; changed in place.
        source: all of its rows; the quartiles of mean outcome less last value part the classes of both loads.
        target: the rows to adapt on.
        weights: λ₁ and λ₂.
        plan: batch size, steps and learning rate.
        generators: the source's and the target's.

    Yields:
        Of every step its loss (scaled, squared), and the number of classes (0 to 4) CMMD² rests on; 0 where λ₂ is 0.
    """
    edges = quartiles(_increments(source.x, source.y))
    optimizer = Adam(network.parameters(), plan.learning_rate)
    pairs = zip(*(batches(r, plan.batch, g) for r, g in zip((source, target), generators, strict=True)), strict=True)
    for _, ((xs, ys), (xt, yt)) in zip(range(plan.adapting), pairs, strict=False):
        (features_s, forecast_s), (features_t, forecast_t) = network(xs, generators[0]), network(xt, generators[1])
        loss, shared = mse(forecast_s, ys) + mse(forecast_t, yt), 0
        if weights.marginal or weights.conditional:
            kernel = around_median(features_s, features_t)
        if weights.marginal:
            loss = loss + weights.marginal * mmd2_biased(features_s, features_t, kernel)
        if weights.conditional:
            class_s, class_t = (classes(_increments(x, y), edges) for x, y in ((xs, ys), (xt, yt)))
            conditional, shared = cmmd2(features_s, features_t, class_s, class_t, kernel)
            loss = loss + weights.conditional * conditional
        yield descend(network, optimizer, loss), shared


def fine_tune(
    network: TransferGru, target: DomainRows, select: DomainRows, plan: TransferPlan, generator: torch.Generator
) -> tuple[int, float]:
    """Train on target rows at a tenth of the learning rate, convolutions frozen; keep the state best on `select`.

    The network is changed in place; its convolutions are trainable again afterwards.

    Returns:
        How many steps were best (0: none helped), and the RMSE on `select` after them, in the target's scale.
    """
    return best_on(select, network, _tuning(network, target, plan.tuning, plan, generator), plan.every)


def search_transfer(
    pretrained: TransferGru, source: DomainRows, target: DomainRows, select: DomainRows, plan: TransferPlan, seed: int
) -> TunedTransfer:
    """Adapt and fine-tune a copy of a network with every λ of the plan's grid; return that of least RMSE on `select`.

    Args:
        pretrained: the source's network; not changed.
        source: the source's rows, in its scale.
        target: the target's rows to adapt on, in its scale.
        select: held-back rows of the target, in the same scale, in which the RMSE is returned.
        plan: grid of λ (weights of MMD² and CMMD²), steps and batch size.
        seed: the same gives the same network.

    Raises:
        ValueError: the plan's grid is empty.
    """
    tried: list[TunedTransfer] = []
    for weights in plan.grid:
        network = _adapted_copy(pretrained, source, target, weights, plan, seed)
        steps, error = fine_tune(network, target, select, plan, torch.Generator().manual_seed(seed + 2))
        tried.append(TunedTransfer(network, weights, error, steps))
    return min(tried, key=lambda transfer: transfer.select_rmse)


def refit_transfer(
    pretrained: TransferGru,
    source: DomainRows,
    target: DomainRows,
    chosen: TunedTransfer,
    plan: TransferPlan,
    seed: int,
) -> TransferGru:
    """Adapt and fine-tune a copy of a network on all of the target's rows, with λ and tuning steps already chosen.

    Args:
        pretrained: the source's network; not changed.
        source: the source's rows, in its scale.
        target: all of the target's rows, in its scale.
        chosen: what `search_transfer` returned: its λ and its number of tuning steps are used.
        plan: steps of adapting, batch size and learning rate.
        seed: the same gives the same network.
    """
    network = _adapted_copy(pretrained, source, target, chosen.weights, plan, seed)
    for _ in _tuning(network, target, chosen.tuning_steps, plan, torch.Generator().manual_seed(seed + 2)):
        pass
    return network


def _adapted_copy(
    pretrained: TransferGru,
    source: DomainRows,
    target: DomainRows,
    weights: LossWeights,
    plan: TransferPlan,
    seed: int,
) -> TransferGru:
    network = copy.deepcopy(pretrained)
    generators = torch.Generator().manual_seed(seed), torch.Generator().manual_seed(seed + 1)
    for _ in adapt(network, source, target, weights, plan, generators):
        pass
    return network


def _increments(x: Tensor, y: Tensor) -> Tensor:
    """Return (B,) the mean outcome less the last value: what the head adds, and what the features can know.

    Classes by the absolute level would pair rows whose features have nothing in common.
    """
    return y.mean(dim=1) - x[:, -1]


def _tuning(
    network: TransferGru, rows: DomainRows, steps: int, plan: TransferPlan, generator: torch.Generator
) -> Iterator[float]:
    """Train at a tenth of the learning rate with the convolutions frozen, and unfreeze all afterwards."""
    for weight in network.convolutions():
        weight.requires_grad_(False)
    yield from train(network, rows, steps, plan, generator, plan.learning_rate / 10)
    network.requires_grad_(True)
