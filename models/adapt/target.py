"""A load with a short history, taught by one with a long history, as a forecaster like every other."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from models.adapt.candidates import Target, best_of, learn, of_source, of_target, travel
from models.adapt.dtw import compare
from models.adapt.gate import TransferVerdict
from models.adapt.network import CONTEXT, TravellingGru
from models.adapt.rows import DomainScale
from models.adapt.served import four_way
from models.adapt.transfer import TransferPlan
from models.forecast.core.conformal import Conformal, ConformalState
from models.forecast.core.forecaster import Carrying, State, Task, begin, check_load, fill
from models.forecast.core.series import Floats, Series, SeriesError

LONG_DAYS = 14
"""A source teaches from so many days on; a load with fewer is a pupil."""
_KEPT = 2016  # newest steps of a history whose errors say how wide the quantiles are


class Voice(nn.Module):
    """What a travelled network says, without its features and its dropout: what is exported."""

    def __init__(self, network: TravellingGru) -> None:
        super().__init__()
        self.first, self.second = network.first, network.second
        self.gru, self.head = network.gru, network.head

    def forward(self, x: Tensor) -> Tensor:
        """(B, 24) scaled load, newest last, to (B, p)."""
        z = x[:, None, :] - x[:, None, -1:]
        for convolution in (self.first, self.second):
            z = torch.relu(convolution(pad(z, (2, 0))))
        states, _ = self.gru(z.transpose(1, 2))
        said: Tensor = x[:, -1:] + self.head(states[:, -1])
        return said


class TargetState(NamedTuple):
    """What is carried from step to step: what is known of the errors, and the newest quantiles."""

    spread: ConformalState
    quantiles: Floats


@dataclass(frozen=True)
class TransferTarget(Carrying):
    """An adapted network with conformal quantiles around it; the last value stands in for the first 24 steps.

    Attributes:
        task: what is forecast.
        module: (B, 24) to (B, p) in the target's scale; a `Voice` or what was exported from one.
        scale: the target's.
    """

    task: Task
    module: Callable[[Tensor], Tensor]
    scale: DomainScale
    kind: str = "adapted"
    carries: ClassVar[Any] = TargetState

    @cached_property
    def _conformal(self) -> Conformal:
        return Conformal(self.horizon, self.levels, self.task.day)

    def init(self, history: Series) -> State:
        """The state after a history, which may be empty."""
        state = begin(self.task, history)
        if not state.seen:
            return state
        values = fill(check_load(history.values), self.task)[-state.seen :]
        known = np.isfinite(history.values)[-state.seen :]
        centres = self._centres(values)
        carried = TargetState(self._conformal.start(), np.empty(0))
        for at in range(max(len(values) - _KEPT, 0), len(values)):
            newest = values[max(at + 1 - CONTEXT, 0) : at + 1]
            carried = self._moved(carried, centres[at], newest, float(values[at]) if known[at] else math.nan, at + 1)
        return replace(state, carried=carried)

    def carry(self, before: State, after: State, value: float) -> TargetState:
        """What is carried one step later; `step` asks for it."""
        newest = after.values[-min(after.seen, CONTEXT) :]
        carried = before.carried or TargetState(self._conformal.start(), np.empty(0))
        return self._moved(carried, self._centres(newest)[-1], newest, value, after.seen)

    def trust(self, state: State) -> str:
        """`adapted`, "last value" for the first 24 steps, or "none"."""
        if state.carried is None:
            return "none"
        return self.kind if state.seen >= CONTEXT else "last value"

    def _centres(self, values: Floats) -> Floats:
        """(T, p) records/s after each of (T,) steps."""
        centres = np.repeat(values[:, None], self.horizon, axis=1)
        if len(values) >= CONTEXT:
            scaled = torch.from_numpy(((values - self.scale.low) / self.scale.span).astype(np.float32))
            with torch.no_grad():
                said = self.module(scaled.unfold(0, CONTEXT, 1)).numpy().astype(np.float64)
            centres[CONTEXT - 1 :] = np.maximum(said * self.scale.span + self.scale.low, 0.0)
        return centres

    def _moved(self, carried: TargetState, centre: Floats, newest: Floats, value: float, seen: int) -> TargetState:
        spread = carried.spread if math.isnan(value) else self._conformal.score(carried.spread, value)
        return TargetState(*self._conformal.quantiles(spread, centre, float(newest.mean()), seen))


@dataclass(frozen=True, eq=False)
class TransferResult:
    """What came of asking other loads.

    Attributes:
        source: the name of the one whose adapted network won.
        pupil: the forecaster.
        verdicts: of the four-way gate, of every source whose shape was near enough.
        refused: why each other source was not asked.
        shapes: `dtw.Candidate.ratio` of every source that is long enough.
    """

    source: str
    pupil: TransferTarget
    verdicts: dict[str, TransferVerdict]
    refused: dict[str, str]
    shapes: dict[str, float]


class UntaughtError(SeriesError):
    """No other load teaches this one; `verdicts`, `refused` and `shapes` are those of a `TransferResult`."""

    def __init__(self, verdicts: dict[str, TransferVerdict], refused: dict[str, str], shapes: dict[str, float]) -> None:
        self.verdicts, self.refused, self.shapes = verdicts, refused, shapes
        why = [f"{name}: {reason}" for name, reason in refused.items()]
        why += [f"{name}: adapted {v.errors['adapted']:.3g}, {v.served} does better" for name, v in verdicts.items()]
        super().__init__(f"no other load teaches this one: {'; '.join(why) or 'there is none'}")


def teach(task: Task, history: Series, others: Mapping[str, Series], plan: TransferPlan, seed: int) -> TransferResult:
    """Adapt the network of every load of near enough shape; the best that the four-way gate accepts is the result.

    Args:
        task: what is forecast.
        history: of the load that is new.
        others: loads that may teach, by name.
        plan: how networks travel.
        seed: the same gives the same network.

    Raises:
        UntaughtError: no source is long and near enough, or none wins.
        SeriesError: the history is too short to tell.
    """
    known = Series(history.start, history.step_s, fill(history.values, task))
    target = Target(known.values, len(known), task.day, task.horizon)
    verdicts: dict[str, TransferVerdict] = {}
    refused: dict[str, str] = {}
    shapes: dict[str, float] = {}
    found: dict[str, TransferTarget] = {}
    for name, other in others.items():
        if other.step_s != task.step_s or len(other) < LONG_DAYS * task.day:
            refused[name] = f"{len(other)} steps of {other.step_s:g} s, under {LONG_DAYS} days of {task.step_s:g} s"
            continue
        full = Series(other.start, other.step_s, fill(other.values, task))
        likeness = compare(full, known, np.random.default_rng(seed))
        shapes[name] = likeness.ratio
        if not likeness.kept:
            refused[name] = f"its shape is {likeness.ratio:.2f} as far as no shape at all"
            continue
        source = learn(full.values, task.day, task.horizon, plan, seed)
        own = of_target(target, plan, seed)
        network, scale, gate = travel(target, source, plan, seed)
        judged = {key: target.loss(one.judged) for key, one in {**own, **of_source(target, source)}.items()}
        judged["adapted"] = target.loss(gate)
        first = best_of(target, own)
        verdicts[name] = four_way(judged, first, ~np.isnan(judged[first]))
        if verdicts[name].accepted:
            found[name] = TransferTarget(task, Voice(network).eval(), scale)
    if not found:
        raise UntaughtError(verdicts, refused, shapes)
    best = min(found, key=lambda name: verdicts[name].errors["adapted"])
    return TransferResult(best, found[best], verdicts, refused, shapes)
