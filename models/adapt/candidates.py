"""Every model that may serve a target with a short history: of its own rows, of a source's, or of both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from models.adapt import linear
from models.adapt.memory import rule
from models.adapt.network import CONTEXT, TravellingGru
from models.adapt.rows import DomainRows, DomainScale
from models.adapt.transfer import TransferPlan, alone, forecast, train, transfer, transfer_again
from models.forecast.core.series import Floats

ADAPT, SELECT = 0.6, 0.2
"""Shares of the target's history, in time order; the rest is the gate's."""
_SOURCE_RIDGE = 0.01  # of a source's rows: how much its regression is held back


@dataclass(frozen=True, eq=False)
class Target:
    """A load that is new, and what came after it was first served.

    Attributes:
        values: (T,) records/s without gaps: the history, then the days served.
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
        """(history,) what a model may learn from."""
        return self.values[: self.history]

    @property
    def gate(self) -> int:
        """The first step of the gate's part."""
        return int((ADAPT + SELECT) * self.history)

    @cached_property
    def naive(self) -> Floats:
        """(T, p) errors of repeating the last value."""
        return self.errors(np.repeat(self.values[CONTEXT - 1 :, None], self.horizon, axis=1))

    @cached_property
    def unit(self) -> Floats:
        """(p,) root mean squared error of the last value over the history, by which horizons are made comparable."""
        past = self.naive[: self.history - self.horizon]
        return np.asarray(np.maximum(np.sqrt(np.nanmean(past**2, axis=0)), 1e-9 * max(float(self.past.mean()), 1e-9)))

    def errors(self, forecasts: Floats) -> Floats:
        """(T, p) outcomes minus forecasts made after the newest (N, p) origins; NaN where either is missing."""
        steps, horizon = len(self.values), self.horizon
        padded = np.append(self.values, np.full(horizon, np.nan))
        came = np.lib.stride_tricks.sliding_window_view(padded[1:], horizon)[:steps]
        found = np.full((steps, horizon), np.nan)
        found[steps - len(forecasts) :] = came[steps - len(forecasts) :] - forecasts
        return found

    def loss(self, errors: Floats) -> Floats:
        """(T,) mean over horizons of squared errors in `unit`; NaN where an outcome is missing."""
        return np.asarray(((errors / self.unit) ** 2).mean(axis=1))


@dataclass(frozen=True, eq=False)
class CandidateErrors:
    """A model's errors on a target.

    Attributes:
        errors: (T, p) of the model fitted on the whole history; in the history as far as they are fair or at hand.
        judged: (T, p) of the same kind of model that has not seen the gate's part; NaN but there.
        fair: whether `errors` in the history are of forecasts whose own fit had not seen the outcome.
    """

    errors: Floats
    judged: Floats
    fair: bool = False


@dataclass(frozen=True, eq=False)
class TransferSource:
    """What a load with a long history has to teach.

    Attributes:
        network: pre-trained.
        rows: its training rows, in its own scale.
        weights: its regression's weights, in units of its own changes.
        rule: its daily habit, as `memory.rule`.
    """

    network: TravellingGru
    rows: DomainRows
    weights: Floats
    rule: Floats


def learn(values: Floats, day: int, horizon: int, plan: TransferPlan, seed: int) -> TransferSource:
    """Everything a source can teach, once for all targets.

    Raises:
        SeriesError: (T,) values are too few, or constant.
    """
    generator = torch.Generator().manual_seed(seed)
    rows = DomainRows.of(values, DomainScale.of(values), horizon)
    network = TravellingGru(horizon, plan.hidden, generator)
    for _ in train(network, rows, plan.pretraining, plan, generator):
        pass
    model = linear.fit(values, horizon, 0, _SOURCE_RIDGE * len(values))
    own = Target(values, len(values), day, horizon)
    errors = own.errors(model.forecast(values, np.arange(CONTEXT - 1, len(values))))
    return TransferSource(network, rows, model.weights, rule(errors, day))


def of_target(target: Target, plan: TransferPlan, seed: int) -> dict[str, CandidateErrors]:
    """`ridge`, `gru` and `last_value`, from the target's own history alone."""
    days = (0, target.day) if target.history >= 2 * target.day else (0,)
    return {
        "ridge": _linear(target, days, None),
        "gru": _alone(target, plan, seed),
        "last_value": CandidateErrors(target.naive, _only_gate(target, target.naive), fair=True),
    }


def of_source(target: Target, source: TransferSource) -> dict[str, CandidateErrors]:
    """`source_only`, its network in the target's scale, and `shrunk`, the target's regression drawn to the source's."""
    said = forecast(source.network, target.values, DomainScale.of(target.past))
    as_is = target.errors(said)
    return {
        "source_only": CandidateErrors(as_is, _only_gate(target, as_is)),
        "shrunk": _linear(target, (0,), source.weights),
    }


def adapted(target: Target, source: TransferSource, plan: TransferPlan, seed: int) -> CandidateErrors:
    """The source's network, adapted and fine-tuned with the first parts, judged on the gate's, then with all of it."""
    network, scale, judged = travel(target, source, plan, seed)
    return CandidateErrors(target.errors(forecast(network, target.values, scale)), judged)


def travel(
    target: Target, source: TransferSource, plan: TransferPlan, seed: int
) -> tuple[TravellingGru, DomainScale, Floats]:
    """The network adapted with all of the history, its scale, and (T, p) errors on the gate's part of one that was not.

    Raises:
        SeriesError: the history is too short to be divided, or constant.
    """
    horizon, scale = target.horizon, DomainScale.of(target.past[: int(ADAPT * target.history)])
    first, select = _parts(target, scale)
    chosen = transfer(source.network, source.rows, first, select, plan, seed)
    judged = _only_gate(target, target.errors(forecast(chosen.network, target.values, scale)))
    scale = DomainScale.of(target.past)
    rows = DomainRows.of(target.past, scale, horizon)
    return transfer_again(source.network, source.rows, rows, chosen, plan, seed), scale, judged


def best_of(target: Target, candidates: Mapping[str, CandidateErrors]) -> str:
    """Who is best of the target's own: over the whole history where errors are fair; the others on the gate's part.

    A fifth of a day is too little to tell ridge from last value; a network cannot be judged on more.
    """

    def loss(name: str, on_gate: bool) -> float:
        one = candidates[name]
        return float(np.nanmean(target.loss(one.judged if on_gate else one.errors[: target.history - target.horizon])))

    fair = [name for name, one in candidates.items() if one.fair]
    best = min(fair, key=lambda name: loss(name, False))
    others = [name for name in candidates if name not in fair]
    return min([best, *others], key=lambda name: loss(name, True))


def _alone(target: Target, plan: TransferPlan, seed: int) -> CandidateErrors:
    scale = DomainScale.of(target.past[: int(ADAPT * target.history)])
    first, select = _parts(target, scale)
    network, steps = alone(first, select, plan, seed)
    judged = target.errors(forecast(network, target.values, scale))
    scale = DomainScale.of(target.past)
    generator = torch.Generator().manual_seed(seed)
    final = TravellingGru(target.horizon, plan.hidden, generator)
    for _ in train(final, DomainRows.of(target.past, scale, target.horizon), steps, plan, generator):
        pass
    return CandidateErrors(target.errors(forecast(final, target.values, scale)), _only_gate(target, judged))


def _parts(target: Target, scale: DomainScale) -> tuple[DomainRows, DomainRows]:
    """Rows to adapt on and rows to select with; the select rows may read what came before, never the gate's part."""
    cut = int(ADAPT * target.history)
    first = DomainRows.of(target.past[:cut], scale, target.horizon)
    return first, DomainRows.of(target.past[cut - CONTEXT : target.gate], scale, target.horizon)


def _linear(target: Target, days: tuple[int, ...], prior: Floats | None) -> CandidateErrors:
    chosen = linear.choose(target.past, target.horizon, days, prior)
    before = linear.choose(target.past[: target.gate], target.horizon, days, prior)
    errors = _said_by(target, chosen.model)
    errors[: target.history] = np.nan
    errors[: target.history - target.horizon] = chosen.errors[: target.history - target.horizon]
    errors[target.history - 1] = _said_by(target, chosen.model)[target.history - 1]
    return CandidateErrors(errors, _only_gate(target, _said_by(target, before.model)), fair=True)


def _said_by(target: Target, model: linear.LinearTransfer) -> Floats:
    steps = len(target.values)
    first = (model.day + 3 if model.day else 0) + CONTEXT - 1
    return target.errors(model.forecast(target.values, np.arange(first, steps)))


def _only_gate(target: Target, errors: Floats) -> Floats:
    """Errors of forecasts whose outcomes all lie in the gate's part."""
    kept = np.full_like(errors, np.nan)
    rows = slice(target.gate - 1, target.history - target.horizon)
    kept[rows] = errors[rows]
    return kept
