"""Transfer for a load with a short history: adapt the networks of other loads, and let the gate judge them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from configs.bounds import DAY_S
from models.adapt.candidates import (
    adapt_to_target,
    decide_on_gate_part,
    fit_own_candidates,
    pretrain_source,
    score_source_only,
)
from models.adapt.dtw import compare_shapes
from models.adapt.gate import TransferVerdict
from models.adapt.network import ForecastOnly
from models.adapt.target import LONG_DAYS, AdaptedForecaster
from models.adapt.target_load import TargetLoad
from models.adapt.training import TransferPlan
from models.forecast.core.forecaster import Task, fill_gaps
from models.forecast.core.series import GRAIN, Series, SeriesError

TRIED = 8
"""Sources that are tried, at most, the nearest in shape: each takes a quarter of a minute of CPU, twice a training."""
TOLD = 8
"""Sources that words tell of, at most: a model card has room for 5,000 characters."""


class NoSourceError(SeriesError):
    """No other load's network was accepted; the message says why of the nearest."""


@dataclass(frozen=True, eq=False)
class TransferResult:
    """Result of trying other loads as sources, each by name.

    Attributes:
        forecasters: adapted from the sources that were tried, accepted or not.
        verdicts: of the gate (`decide_transfer`), for the same sources.
        refused: why each other source was not tried.
        shapes: by source that is long enough, its distance from the load's shape as a share of that of a shuffled one;
            NaN where nothing could be compared.
    """

    forecasters: dict[str, AdaptedForecaster] = field(default_factory=dict)
    verdicts: dict[str, TransferVerdict] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    shapes: dict[str, float] = field(default_factory=dict)

    def nearest(self) -> tuple[set[str], str]:
        """Choose the sources to tell of, `TOLD` (8) at most: accepted ones first, then those nearest in shape.

        Returns:
            Their names; and in words how many more there are, "" for none.
        """

        def farness(name: str) -> tuple[bool, float]:
            shape = self.shapes.get(name, math.nan)
            return not (name in self.verdicts and self.verdicts[name].accepted), math.inf if shape != shape else shape

        every = sorted([*self.verdicts, *self.refused], key=farness)
        more = len(every) - TOLD
        return set(every[:TOLD]), f"and {more} more, farther in shape or too short" if more > 0 else ""

    def best(self) -> str:
        """Return the name of the accepted source whose adapted network has the least RMSE on the held-back rows.

        Raises:
            NoSourceError: none was accepted; the message says why of the nearest.
        """
        errors = {name: verdict.errors["adapted"] for name, verdict in self.verdicts.items() if verdict.accepted}
        if errors:
            return min(errors, key=errors.__getitem__)
        told, more = self.nearest()
        why = [f"{name}: {reason}" for name, reason in self.refused.items() if name in told]
        for name, verdict in self.verdicts.items():
            if name in told:
                why.append(f"{name}: adapted {verdict.errors['adapted']:.3g}, {verdict.served} does better")
        said = "; ".join(filter(None, [*why, more]))
        raise NoSourceError(f"no other load helps this one: {said or 'there is none'}")


def transfer_from_sources(
    task: Task, history: Series, others: Mapping[str, Series], plan: TransferPlan, seed: int
) -> TransferResult:
    """Adapt the network of every other load of similar shape to a new load, and decide by the gate which may serve.

    Blocks while several networks are trained per similar source; saves nothing. Loads that have other steps, less than
    14 days, a gap at the beginning, or another shape are refused, and of more than 8 (`TRIED`) all but the nearest. The
    gate is the RMSE on the history's newest 20 %; of other loads only what is `known_before` that part counts, and
    shapes are compared by what lies before it, too. Nothing later is learned from, not even by the network that is
    trained again on the whole history: whatever it is judged on, there or after the history, is new to it.

    Args:
        task: what is forecast.
        history: records/s of the new load in the task's steps; gaps are filled, but it must begin with a known value.
        others: loads that may be sources, records/s, by name.
        plan: sizes of networks and training.
        seed: the same gives the same networks.

    Returns:
        By source: adapted forecasters (accepted or not), verdicts, reasons of refusal, and distances of shape.

    Raises:
        SeriesError: once a source is long enough: the history has other steps than it, is too short, constant, or
            begins with a gap; or no model without transfer has a finite error on the gate's rows.
        ValueError: the plan's grid is empty.
    """
    known = Series(history.start, history.step_s, fill_gaps(history.values, task))
    target = TargetLoad(known.values, len(known), task.day, task.horizon)
    result, near = TransferResult(), dict[str, Series]()
    before, _ = known.split(len(known) - target.gate_begin)
    for name, other in others.items():
        source_load = _usable_source(name, known_before(other, before.end, known.end), before, task, seed, result)
        if source_load is not None:
            near[name] = source_load
    for name in sorted(near, key=result.shapes.__getitem__)[TRIED:]:
        del near[name]
        result.refused[name] = f"its shape is {result.shapes[name]:.2f}, {TRIED} others are nearer"
    own = fit_own_candidates(target, plan, seed) if near else {}
    for name, source_load in near.items():
        source = pretrain_source([source_load.values], task.horizon, plan, seed)
        network, scale, adapted = adapt_to_target(target, source, plan, seed)
        result.forecasters[name] = AdaptedForecaster(task, ForecastOnly(network).eval(), scale)
        result.verdicts[name] = decide_on_gate_part(target, own, score_source_only(target, source), adapted)
    return result


def known_before(other: Series, instant: float, end: float) -> Series:
    """Return the steps of another load that end by an instant; all of one that was recorded in another time.

    Jobs that run at the same time share holidays, matches and outages: a source that has lived through the steps that a
    forecaster is judged on tells it what comes. A load that begins `LONG_DAYS` after the history ends shares none of
    them, because a history and the steps held out after it are shorter together where other loads are asked.

    Args:
        other: records/s.
        instant: epoch seconds of job time.
        end: of the history that is helped, epoch seconds of job time.
    """
    if other.start >= end + LONG_DAYS * DAY_S:
        return other
    later = math.ceil((other.end - instant) / other.step_s - GRAIN)
    return other.split(max(later, 0))[0]


def _usable_source(
    name: str, other: Series, before: Series, task: Task, seed: int, result: TransferResult
) -> Series | None:
    """Return a load without gaps if it may be a source; else None, and why in `result.refused`.

    Its shape beside that of the history before the gate's part is kept in `result.shapes`.
    """
    if other.step_s != task.step_s or len(other) < LONG_DAYS * task.day:
        has = f"{len(other)} steps of {other.step_s:g} s before the gate's part"
        result.refused[name] = f"{has}, under {LONG_DAYS} days of {task.step_s:g} s"
        return None
    full = Series(other.start, other.step_s, fill_gaps(other.values, task))
    if not np.isfinite(full.values).all():
        result.refused[name] = "it begins with a gap"
        return None
    likeness = compare_shapes(full, before, np.random.default_rng(seed))
    result.shapes[name] = likeness.ratio
    if not likeness.near:
        result.refused[name] = f"its shape is {likeness.ratio:.2f} as far as no shape at all"
        return None
    return full
