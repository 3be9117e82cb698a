"""Candidates for a load with a short history: models of its own rows, a source's network, and that network adapted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from models.adapt import linear
from models.adapt.gate import TransferVerdict, verdict
from models.adapt.network import CONTEXT, DomainRows, DomainScale, ForecastOnly, TravellingGru
from models.adapt.transfer import TransferPlan, alone, forecast, train, transfer, transfer_again
from models.forecast.core.series import Floats

ADAPT, SELECT = 0.6, 0.2
"""Shares of the target's history, in time order; the rest is the gate's."""


@dataclass(frozen=True, eq=False)
class Target:
    """A load with a short history, and what came after it where that is known.

    The history is split in time order: `ADAPT`, `SELECT`, and the rest for the gate, the final test of the candidates.

    Attributes:
        values: (T,) records/s without gaps.
        history: how many of them a model may learn from.
        day: steps per day.
        horizon: steps ahead, p.
    """

    values: Floats
    history: int
    day: int
    horizon: int

    @property
    def past(self) -> Floats:
        """(history,) records/s: what a model may learn from."""
        return self.values[: self.history]

    @property
    def gate(self) -> int:
        """Index of the first step of the gate's part."""
        return int((ADAPT + SELECT) * self.history)

    @cached_property
    def naive(self) -> Floats:
        """(T, p) records/s: errors of repeating the last value."""
        return self.errors(np.repeat(self.values[CONTEXT - 1 :, None], self.horizon, axis=1))

    @cached_property
    def unit(self) -> Floats:
        """(p,) records/s: RMSE of repeating the last value over the history, the unit of errors per step ahead."""
        past = self.naive[: self.history - self.horizon]
        return np.asarray(np.maximum(np.sqrt(np.nanmean(past**2, axis=0)), 1e-9 * max(float(self.past.mean()), 1e-9)))

    def errors(self, forecasts: Floats) -> Floats:
        """Return outcomes minus forecasts, aligned to the step each forecast was made after.

        Args:
            forecasts: (N, p) records/s, made after the newest N of the T steps.

        Returns:
            (T, p) records/s, a new array; NaN where the forecast or the outcome is missing.

        Raises:
            ValueError: numpy's, where N is above T or p is not the horizon.
        """
        padded = np.append(self.values, np.full(self.horizon, np.nan))
        found = np.lib.stride_tricks.sliding_window_view(padded[1:], self.horizon).copy()
        first = len(found) - len(forecasts)
        found[:first] = np.nan
        found[first:] -= forecasts
        return found

    def loss(self, errors: Floats) -> Floats:
        """Return (T,) means over horizons of squared errors in `unit`; NaN where one is missing."""
        return np.asarray(((errors / self.unit) ** 2).mean(axis=1))

    def judged(self, errors: Floats) -> Floats:
        """Return a copy of (T, p) errors that is NaN except where all p outcomes lie in the gate's part."""
        kept = np.full_like(errors, np.nan)
        rows = slice(self.gate - 1, self.history - self.horizon)
        kept[rows] = errors[rows]
        return kept


@dataclass(frozen=True, eq=False)
class CandidateErrors:
    """A model's forecast errors on a target, records/s.

    Attributes:
        errors: (T, p) of the model fitted on the whole history; NaN where there is none.
        judged: (T, p) of the same kind of model fitted without the gate's part; NaN elsewhere.
        fair: whether `errors` within the history are out-of-sample, of fits that had not seen the outcome.
    """

    errors: Floats
    judged: Floats
    fair: bool = False


@dataclass(frozen=True, eq=False)
class TransferSource:
    """A load with a long history: its pre-trained network, and the network's training rows in the source's scale."""

    network: TravellingGru
    rows: DomainRows


def learn(values: Floats, horizon: int, plan: TransferPlan, seed: int) -> TransferSource:
    """Pre-train a source's network on its load; blocks for `plan.pretraining` batches.

    Args:
        values: (T,) records/s without gaps, T at least 24 + `horizon`.
        horizon: steps ahead.
        plan: size of the network and of the training.
        seed: the same gives the same network.

    Raises:
        SeriesError: the values are too few, constant or contain NaN.
    """
    generator = torch.Generator().manual_seed(seed)
    rows = DomainRows.of(values, DomainScale.of(values), horizon)
    network = TravellingGru(horizon, plan.hidden, generator)
    for _ in train(network, rows, plan.pretraining, plan, generator):
        pass
    return TransferSource(network, rows)


def of_target(target: Target, plan: TransferPlan, seed: int) -> dict[str, CandidateErrors]:
    """Fit the candidates that need nothing but the target's own history.

    Returns:
        Errors of `ridge`, `gru` and `last_value`.

    Raises:
        SeriesError: the history is too short to be divided, or constant.
    """
    naive = CandidateErrors(target.naive, target.judged(target.naive), fair=True)
    return {"ridge": _ridge(target), "gru": _alone(target, plan, seed), "last_value": naive}


def source_only(target: Target, source: TransferSource) -> CandidateErrors:
    """Return the errors of the source's network as it is, applied in the target's scale.

    Raises:
        SeriesError: the target's history is constant or contains NaN.
    """
    errors = _errors(target, source.network, DomainScale.of(target.past))
    return CandidateErrors(errors, target.judged(errors))


def adapted(
    target: Target, source: TransferSource, plan: TransferPlan, seed: int
) -> tuple[TravellingGru, DomainScale, CandidateErrors]:
    """Adapt a source's network to the target and fine-tune it; blocks for as many batches as the plan's grid asks.

    λ and the steps of fine-tuning are chosen without the gate's part, on which that network is judged. The network that
    is returned is trained again with these on the whole history.

    Args:
        target: the load with the short history.
        source: as `learn` made it; its network is copied, not changed.
        plan: the λ that are tried, and the sizes of the training.
        seed: the same gives the same network.

    Returns:
        The network, the scale of its inputs and outputs, and its errors.

    Raises:
        SeriesError: the history is too short to be divided, or constant.
    """
    scale, first, select = _parts(target)
    chosen = transfer(source.network, source.rows, first, select, plan, seed)
    judged = target.judged(_errors(target, chosen.network, scale))
    scale = DomainScale.of(target.past)
    rows = DomainRows.of(target.past, scale, target.horizon)
    network = transfer_again(source.network, source.rows, rows, chosen, plan, seed)
    return network, scale, CandidateErrors(_errors(target, network, scale), judged)


def best_of(target: Target, candidates: Mapping[str, CandidateErrors]) -> str:
    """Return the name of the best of the target's own candidates, by mean squared error in `Target.unit`.

    Candidates with `fair` errors are compared on the whole history; the best of them and all others then on the gate's
    part.

    Raises:
        ValueError: no candidate is fair.
    """

    def loss(name: str, on_gate: bool) -> float:
        """Return the mean squared loss of a candidate, on the gate's part or over the history."""
        one = candidates[name]
        return float(np.nanmean(target.loss(one.judged if on_gate else one.errors[: target.history - target.horizon])))

    fair = [name for name, one in candidates.items() if one.fair]
    best = min(fair, key=lambda name: loss(name, False))
    return min([best, *(name for name in candidates if name not in fair)], key=lambda name: loss(name, True))


def four_way(
    target: Target, own: Mapping[str, CandidateErrors], as_is: CandidateErrors, moved: CandidateErrors
) -> TransferVerdict:
    """Apply the gate of `verdict` to the gate's part of the history.

    The errors in the verdict are RMSE over all steps ahead, in `Target.unit`.

    Args:
        target: whose history it is.
        own: errors of the target's own candidates, `last_value` among them.
        as_is: of the source's network without adaptation.
        moved: of the adapted network.

    Raises:
        SeriesError: none of the four errors is finite.
        KeyError: `last_value` is missing.
    """
    four = (moved, as_is, own[best_of(target, own)], own["last_value"])
    return verdict(*(float(np.sqrt(np.nanmean(target.loss(one.judged)))) for one in four))


def _alone(target: Target, plan: TransferPlan, seed: int) -> CandidateErrors:
    scale, first, select = _parts(target)
    network, steps = alone(first, select, plan, seed)
    judged = target.judged(_errors(target, network, scale))
    scale = DomainScale.of(target.past)
    generator = torch.Generator().manual_seed(seed)
    final = TravellingGru(target.horizon, plan.hidden, generator)
    for _ in train(final, DomainRows.of(target.past, scale, target.horizon), steps, plan, generator):
        pass
    return CandidateErrors(_errors(target, final, scale), judged)


def _parts(target: Target) -> tuple[DomainScale, DomainRows, DomainRows]:
    """Return the scale, the rows to adapt on, and the rows to select with; none of the gate's part.

    Inputs of the rows to select with may reach back into the first part.
    """
    cut = int(ADAPT * target.history)
    scale = DomainScale.of(target.past[:cut])
    first = DomainRows.of(target.past[:cut], scale, target.horizon)
    return scale, first, DomainRows.of(target.past[cut - CONTEXT : target.gate], scale, target.horizon)


def _errors(target: Target, network: TravellingGru, scale: DomainScale) -> Floats:
    return target.errors(forecast(ForecastOnly(network), target.values, scale))


def _ridge(target: Target) -> CandidateErrors:
    days = (0, target.day) if target.history >= 2 * target.day else (0,)
    chosen = linear.choose(target.past, target.horizon, days)
    before = linear.choose(target.past[: target.gate], target.horizon, days)
    errors = _of_linear(target, chosen.model)
    errors[: target.history - 1] = chosen.errors[:-1]
    return CandidateErrors(errors, target.judged(_of_linear(target, before.model)), fair=True)


def _of_linear(target: Target, model: linear.ShortRidge) -> Floats:
    first = (model.day + 3 if model.day else 0) + CONTEXT - 1
    return target.errors(model.forecast(target.values, np.arange(first, len(target.values))))
