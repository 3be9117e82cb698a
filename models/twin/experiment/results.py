"""Results of a comparison of policies: points per policy, and costs at equal violation with their range over seeds."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from models.policy.catalogue import entry
from models.policy.core.capacity import Floats
from models.twin.experiment.contenders import Setting
from models.twin.experiment.evaluation import Sheet, cheapest_at
from models.twin.experiment.scenario import Scenario

ALLOWED = (0.001, 0.01, 0.05)
"""Violations at which costs are compared."""
OPTIMUM, BOUND = "optimum", "bound"
AS_GOOD_AS_NONE = 1e-4
"""Smaller violations (shares of the seconds) count as this one."""


@dataclass(frozen=True, eq=False)
class TraceResult:
    """The results of all policies on one trace.

    Attributes:
        scenario: on which they ran.
        sheets: results by policy; the clairvoyant optimum's under "optimum", where it was computed.
        settings: chosen hyper-parameters by policy.
        bound: executor-hours that no policy can go below, by allowed violation (share of the seconds over the target).
    """

    scenario: Scenario
    sheets: dict[str, Sheet]
    settings: dict[str, Setting] = field(default_factory=dict)
    bound: dict[float, float] = field(default_factory=dict)

    def hours_at(self, name: str, allowed: float) -> float:
        """Interpolate a policy's mean executor-hours at an allowed violation; NaN where it violates more.

        Raises:
            KeyError: no policy of that name took part.
        """
        return self.sheets[name].hours_at(allowed)

    def seeds_at(self, name: str, allowed: float) -> Floats:
        """Interpolate a policy's executor-hours at an allowed violation, (seeds,); NaN where it violates more.

        Raises:
            KeyError: no policy of that name took part.
        """
        sheet = self.sheets[name]
        return np.array([cheapest_at(v, h, allowed) for v, h in zip(sheet.violation.T, sheet.hours.T, strict=True)])

    def between(self, name: str, allowed: float) -> tuple[float, float]:
        """Return the lowest and the highest of `seeds_at`, without NaN; both NaN where no seed has a cost.

        Raises:
            KeyError: no policy of that name took part.
        """
        known = [cost for cost in self.seeds_at(name, allowed).tolist() if math.isfinite(cost)]
        return min(known, default=math.nan), max(known, default=math.nan)

    def points(self, name: str) -> list[dict[str, Any]]:
        """List a policy's results, one dict per knob value, by rising value.

        Returns:
            Means over the seeds: "knob", "executor_hours", "violation" (share of the seconds over the target),
            "p99_latency_s" and "actions"; the maximum "worst_latency_s"; sums "clamped" and "not_a_number" (decisions);
            "ratio_to_optimum" at the same violation (NaN without an optimum); and "between", [least, most] of the
            seeds' hours and violation.

        Raises:
            KeyError: no policy of that name took part.
        """
        sheet = self.sheets[name]
        violation, hours = sheet.means
        return [
            {
                "knob": sheet.knobs[i], "executor_hours": hours[i], "violation": violation[i],
                "p99_latency_s": sheet.p99_s[i].mean(), "worst_latency_s": sheet.worst_s[i].max(),
                "actions": sheet.actions[i].mean(), "ratio_to_optimum": self._ratio(hours[i], violation[i]),
                "between": {"executor_hours": _range(sheet.hours[i]), "violation": _range(sheet.violation[i])},
                "clamped": sheet.clamped[i].sum(), "not_a_number": sheet.none[i].sum(),
            }
            for i in np.argsort(sheet.knobs, kind="stable")
        ]  # fmt: skip

    def shipped(self, name: str, rivals: list[str]) -> dict[str, Any] | None:
        """Return a policy at its vendor's default parameter, and what rivals cost at the same violation.

        Args:
            name: of the policy, as in the catalogue.
            rivals: names of policies that took part.

        Returns:
            "knob" (the default), "executor_hours" and "violation" there, and "others": executor-hours by rival, NaN
            where it violates more. A violation below 0.0001 counts as that. None where no vendor ships a default.

        Raises:
            SettingsError: the catalogue has no such policy.
            KeyError: the policy or a rival did not take part.
        """
        knob, sheet = entry(name).upstream, self.sheets[name]
        if knob is None:
            return None
        at = int(np.argmin(np.abs(sheet.knobs - knob)))
        violation, hours = (float(mean[at]) for mean in sheet.means)
        theirs = {rival: self.hours_at(rival, max(violation, AS_GOOD_AS_NONE)) for rival in rivals}
        return {"knob": knob, "executor_hours": hours, "violation": violation, "others": theirs}

    def _ratio(self, hours: float, violation: float) -> float:
        best = self.sheets.get(OPTIMUM)
        return hours / best.hours_at(max(violation, best.means[0].min())) if best else math.nan


def plain(value: Any) -> Any:
    """Convert nested dicts, lists and numpy scalars to JSON values: keys to strings, NaN and infinities to None."""
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _range(seeds: Floats) -> list[float]:
    return [seeds.min(), seeds.max()]
