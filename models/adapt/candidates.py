"""Candidates for a load with a short history: models of its own rows, a source's network, and that network adapted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from models.adapt import linear
from models.adapt.gate import TransferVerdict, decide_transfer
from models.adapt.network import DomainRows, ForecastOnly, TransferGru
from models.adapt.scale import CONTEXT, DomainScale
from models.adapt.target_load import ADAPT, CandidateErrors, TargetLoad
from models.adapt.training import TransferPlan, forecast, train, train_target_only
from models.adapt.transfer import refit_transfer, search_transfer
from models.forecast.core.series import Floats


@dataclass(frozen=True, eq=False)
class TransferSource:
    """Loads with a long history: the network pre-trained on them, and its training rows, each in its load's scale."""

    network: TransferGru
    rows: DomainRows


def pretrain_source(loads: Sequence[Floats], horizon: int, plan: TransferPlan, seed: int) -> TransferSource:
    """Train a network on one load or several and return it with its rows; blocks for `plan.pretraining` batches.

    Args:
        loads: each (T,) records/s without gaps, T at least 24 + `horizon`; infinite ones are not noticed.
        horizon: steps ahead.
        plan: size of the network and of the training.
        seed: the same gives the same network.

    Raises:
        SeriesError: the values of a load are too few, constant or contain NaN.
        ValueError: numpy's, where one has no value; torch's RuntimeError without any load.
    """
    generator = torch.Generator().manual_seed(seed)
    cut = [DomainRows.cut(values, DomainScale.fit(values), horizon) for values in loads]
    rows = DomainRows(torch.cat([one.x for one in cut]), torch.cat([one.y for one in cut]))
    network = TransferGru(horizon, plan.hidden, generator)
    for _ in train(network, rows, plan.pretraining, plan, generator):
        pass
    return TransferSource(network, rows)


def fit_own_candidates(target: TargetLoad, plan: TransferPlan, seed: int) -> dict[str, CandidateErrors]:
    """Fit the candidates that need nothing but the target's own history; blocks while a network is trained twice.

    Returns:
        Errors, (T, p) records/s, of `ridge`, `gru` and `last_value`, by these names.

    Raises:
        SeriesError: the history is too short to be divided (`adapt_to_target`, `linear.choose_ridge`), or constant.
    """
    last_value = target.last_value_errors
    naive = CandidateErrors(last_value, target.gate_rows(last_value), out_of_sample=True)
    return {"ridge": _ridge(target), "gru": _target_only(target, plan, seed), "last_value": naive}


def score_source_only(target: TargetLoad, source: TransferSource) -> CandidateErrors:
    """Return the errors, (T, p) records/s, of the source's network as it is, applied in the target's scale.

    On the gate's part the scale is that of the oldest 60 %, by which the networks beside it are judged there, too.

    Raises:
        SeriesError: 60 % of the target's history are constant, or contain NaN.
    """
    known = DomainScale.fit(target.past[: int(ADAPT * target.history)])
    gate = target.gate_rows(_network_errors(target, source.network, known))
    return CandidateErrors(_network_errors(target, source.network, DomainScale.fit(target.past)), gate)


def adapt_to_target(
    target: TargetLoad, source: TransferSource, plan: TransferPlan, seed: int
) -> tuple[TransferGru, DomainScale, CandidateErrors]:
    """Adapt a source's network to the target and fine-tune it; blocks while it trains once per λ of the plan and again.

    The weights λ of the discrepancy losses and the batches of fine-tuning are chosen on the older 80 % of the history.
    The network so chosen gives the errors on the rest (`gate`); the one returned is trained again with these on all of
    it.

    Args:
        target: the load with the short history.
        source: as `pretrain_source` made it; its network is copied, not changed.
        plan: the λ that are tried, and the sizes of the training.
        seed: the same gives the same network.

    Returns:
        The network, the scale of its inputs and outputs, and its errors, (T, p) records/s each.

    Raises:
        SeriesError: 60 % of the history are under 24 + horizon steps or constant, or 20 % are under the horizon.
        ValueError: the plan's grid of λ is empty, or (numpy's) the history is.
    """
    scale, adapt_rows, select_rows = _split_rows(target)
    chosen = search_transfer(source.network, source.rows, adapt_rows, select_rows, plan, seed)
    gate = target.gate_rows(_network_errors(target, chosen.network, scale))
    scale = DomainScale.fit(target.past)
    all_rows = DomainRows.cut(target.past, scale, target.horizon)
    network = refit_transfer(source.network, source.rows, all_rows, chosen, plan, seed)
    return network, scale, CandidateErrors(_network_errors(target, network, scale), gate)


def best_own_candidate(target: TargetLoad, candidates: Mapping[str, CandidateErrors]) -> str:
    """Return the name of the candidate with the least mean squared error, in squares of `TargetLoad.unit`.

    Those with out-of-sample errors are first compared over the whole history; the best of them and all others are then
    compared on the gate's part, its newest 20 %. The unit is the RMSE of the last value, per step ahead.

    Args:
        target: whose history it is.
        candidates: by name, as `fit_own_candidates` returns them: (T, p) errors in records/s.

    Raises:
        ValueError: no candidate has out-of-sample errors.
    """

    def mean_loss(name: str, on_gate: bool) -> float:
        """Return the mean loss of a candidate, on the gate's part or over the history."""
        candidate = candidates[name]
        errors = candidate.gate if on_gate else candidate.errors[: target.history - target.horizon]
        return float(np.nanmean(target.loss(errors)))

    out_of_sample = [name for name, candidate in candidates.items() if candidate.out_of_sample]
    best = min(out_of_sample, key=lambda name: mean_loss(name, False))
    others = [name for name in candidates if name not in out_of_sample]
    return min([best, *others], key=lambda name: mean_loss(name, True))


def decide_on_gate_part(
    target: TargetLoad, own: Mapping[str, CandidateErrors], source_only: CandidateErrors, adapted: CandidateErrors
) -> TransferVerdict:
    """Decide by `decide_transfer` on the gate's part of the history whether the adapted network serves.

    The errors in the verdict are RMSE over all steps ahead, in `TargetLoad.unit`.

    Args:
        target: whose history it is.
        own: errors of the target's own candidates, `last_value` among them.
        source_only: of the source's network without adaptation.
        adapted: of the adapted network.

    Raises:
        SeriesError: no candidate but the adapted network has a finite error.
        KeyError: `last_value` is missing.
        ValueError: no own candidate has out-of-sample errors.
    """
    four = (adapted, source_only, own[best_own_candidate(target, own)], own["last_value"])
    return decide_transfer(*(float(np.sqrt(np.nanmean(target.loss(candidate.gate)))) for candidate in four))


def _target_only(target: TargetLoad, plan: TransferPlan, seed: int) -> CandidateErrors:
    """Train a network on the target alone: without the gate's part for the gate errors, then on all for the errors."""
    scale, adapt_rows, select_rows = _split_rows(target)
    network, steps = train_target_only(adapt_rows, select_rows, plan, seed)
    gate = target.gate_rows(_network_errors(target, network, scale))
    scale = DomainScale.fit(target.past)
    generator = torch.Generator().manual_seed(seed)
    final = TransferGru(target.horizon, plan.hidden, generator)
    for _ in train(final, DomainRows.cut(target.past, scale, target.horizon), steps, plan, generator):
        pass
    return CandidateErrors(_network_errors(target, final, scale), gate)


def _split_rows(target: TargetLoad) -> tuple[DomainScale, DomainRows, DomainRows]:
    """Return the scale, the rows to adapt on, and the rows to select with; none of the gate's part.

    Inputs of the rows to select with may reach back into the first part.
    """
    cut = int(ADAPT * target.history)
    scale = DomainScale.fit(target.past[:cut])
    adapt_rows = DomainRows.cut(target.past[:cut], scale, target.horizon)
    return scale, adapt_rows, DomainRows.cut(target.past[cut - CONTEXT : target.gate_begin], scale, target.horizon)


def _network_errors(target: TargetLoad, network: TransferGru, scale: DomainScale) -> Floats:
    return target.forecast_errors(forecast(ForecastOnly(network), target.values, scale))


def _ridge(target: TargetLoad) -> CandidateErrors:
    """Fit a ridge regression; its errors over the history are cross-validated, after it those of the final fit."""
    days = (0, target.day) if target.history >= 2 * target.day else (0,)
    chosen = linear.choose_ridge(target.past, target.horizon, days)
    before_gate = linear.choose_ridge(target.past[: target.gate_begin], target.horizon, days)
    errors = _ridge_errors(target, chosen.model)
    errors[: target.history - 1] = chosen.errors[:-1]
    return CandidateErrors(errors, target.gate_rows(_ridge_errors(target, before_gate.model)), out_of_sample=True)


def _ridge_errors(target: TargetLoad, model: linear.ShortRidge) -> Floats:
    first = (model.day + 3 if model.day else 0) + CONTEXT - 1
    return target.forecast_errors(model.forecast(target.values, np.arange(first, len(target.values))))
