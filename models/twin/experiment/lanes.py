"""Who takes part in an evaluation, with which hyper-parameters, on which scenario."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from configs.policies import LISTENERS
from models.policy.core.capacity import Floats
from models.twin.experiment.scenario import Scenario

TRUTH = "truth"


@dataclass(frozen=True)
class Setting:
    """A policy's hyper-parameters.

    Attributes:
        fields: of the policy, by name.
        memory_steps: of the forecaster, after which a third of an error of now is left.
        level: quantile of the forecast that the policy hears; None for all of them.
    """

    fields: tuple[tuple[str, float], ...] = ()
    memory_steps: float = 1.0
    level: float | None = None

    def plus(self, values: dict[str, float]) -> Setting:
        """With other values; names that are no attribute are fields of the policy."""
        own = {name: value for name, value in values.items() if name in ("memory_steps", "level")}
        others = dict(self.fields) | {name: value for name, value in values.items() if name not in own}
        return replace(self, fields=tuple(sorted(others.items())), **own)


@dataclass(frozen=True, eq=False)
class Contender:
    """Who takes part.

    Attributes:
        name: in the results.
        policy: its name in the catalogue.
        hears: a forecaster of `foresight.FORECASTERS`, `TRUTH`, or empty for nothing.
        setting: hyper-parameters to begin with.
        axes: of hyper-parameters that are chosen on the tuning part, each a product, one after the other.
        learned: what the policy needs beside a contract; a timetable is learned from each trace.
    """

    name: str
    policy: str
    hears: str = ""
    setting: Setting = Setting()
    axes: tuple[dict[str, tuple[float, ...]], ...] = ()
    learned: Any = None

    @property
    def listens(self) -> bool:
        """Whether it hears anything."""
        return bool(self.hears) and self.policy in LISTENERS


@dataclass(frozen=True, eq=False)
class Lane:
    """A scenario, the setting that a policy has there, and (N,) values of its knob."""

    scenario: Scenario
    setting: Setting
    knobs: Floats
