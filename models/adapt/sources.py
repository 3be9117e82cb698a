"""Transfer for a load with a short history: adapt the networks of other loads, and let the gate judge them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from models.adapt.candidates import CandidateErrors, Target, adapted, four_way, learn, of_target, source_only
from models.adapt.dtw import compare
from models.adapt.gate import TransferVerdict
from models.adapt.network import ForecastOnly
from models.adapt.target import LONG_DAYS, TransferTarget
from models.adapt.transfer import TransferPlan
from models.forecast.core.forecaster import Task, fill
from models.forecast.core.series import Series, SeriesError


class NoSourceError(SeriesError):
    """No other load's network was accepted; the message says why of each."""


@dataclass(frozen=True, eq=False)
class TransferResult:
    """Result of trying other loads as sources, each by name.

    Attributes:
        targets: the adapted forecaster of every source whose shape was near enough, accepted or not.
        verdicts: of the four-way gate, for the same sources.
        refused: why each other source was not tried.
        shapes: `dtw.ShapeDistance.ratio` of every source that is long enough; NaN where nothing could be compared.
    """

    targets: dict[str, TransferTarget] = field(default_factory=dict)
    verdicts: dict[str, TransferVerdict] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    shapes: dict[str, float] = field(default_factory=dict)

    def best(self) -> str:
        """Return the name of the accepted source whose adapted network has the least error on the gate rows.

        Raises:
            NoSourceError: none was accepted.
        """
        errors = {name: verdict.errors["adapted"] for name, verdict in self.verdicts.items() if verdict.accepted}
        if errors:
            return min(errors, key=errors.__getitem__)
        why = [f"{name}: {reason}" for name, reason in self.refused.items()]
        for name, verdict in self.verdicts.items():
            why.append(f"{name}: adapted {verdict.errors['adapted']:.3g}, {verdict.served} does better")
        raise NoSourceError(f"no other load helps this one: {'; '.join(why) or 'there is none'}")


def ask(task: Task, history: Series, others: Mapping[str, Series], plan: TransferPlan, seed: int) -> TransferResult:
    """Adapt the network of every other load of similar shape to a new load, and judge each by the four-way gate.

    Per similar source a network is trained several times, which takes long. Loads that have other steps, less than
    `LONG_DAYS` days, a gap at the beginning, or another shape are refused.

    Args:
        task: what is forecast.
        history: of the new load, in the task's steps; gaps are filled, but it must begin with a known value.
        others: loads that may be sources, by name.
        plan: sizes of networks and training.
        seed: the same gives the same networks.

    Raises:
        SeriesError: the history has other steps than a source or is too short or constant.
    """
    known = Series(history.start, history.step_s, fill(history.values, task))
    target = Target(known.values, len(known), task.day, task.horizon)
    own: dict[str, CandidateErrors] = {}
    found = TransferResult()
    for name, other in others.items():
        if other.step_s != task.step_s or len(other) < LONG_DAYS * task.day:
            found.refused[name] = (
                f"{len(other)} steps of {other.step_s:g} s, under {LONG_DAYS} days of {task.step_s:g} s"
            )
            continue
        full = Series(other.start, other.step_s, fill(other.values, task))
        if not np.isfinite(full.values).all():
            found.refused[name] = "it begins with a gap"
            continue
        likeness = compare(full, known, np.random.default_rng(seed))
        found.shapes[name] = likeness.ratio
        if not likeness.kept:
            found.refused[name] = f"its shape is {likeness.ratio:.2f} as far as no shape at all"
            continue
        own = own or of_target(target, plan, seed)
        source = learn(full.values, task.horizon, plan, seed)
        network, scale, moved = adapted(target, source, plan, seed)
        found.targets[name] = TransferTarget(task, ForecastOnly(network).eval(), scale)
        found.verdicts[name] = four_way(target, own, source_only(target, source), moved)
    return found
