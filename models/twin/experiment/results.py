"""Results of a comparison of policies: points per policy, and costs at equal violation with their range over seeds."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from models.policy.catalogue import entry
from models.policy.core.capacity import Floats
from models.twin.experiment.contenders import Setting
from models.twin.experiment.evaluation import SweepResults
from models.twin.experiment.frontier import least_cost_at
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
        results: results by policy; the clairvoyant optimum's under "optimum", where it was computed.
        settings: chosen hyper-parameters by policy.
        bound: executor-hours that no policy can go below, by allowed violation (share of the seconds over the target).
    """

    scenario: Scenario
    results: dict[str, SweepResults]
    settings: dict[str, Setting] = field(default_factory=dict)
    bound: dict[float, float] = field(default_factory=dict)

    def hours_at(self, name: str, allowed: float) -> float:
        """Interpolate a policy's mean executor-hours at an allowed violation; NaN where it violates more.

        Raises:
            KeyError: no policy of that name took part.
        """
        return self.results[name].hours_at(allowed)

    def seeds_at(self, name: str, allowed: float) -> Floats:
        """Interpolate a policy's executor-hours at an allowed violation, (seeds,); NaN where it violates more.

        Raises:
            KeyError: no policy of that name took part.
        """
        result = self.results[name]
        return np.array([least_cost_at(v, h, allowed) for v, h in zip(result.violation.T, result.hours.T, strict=True)])

    def violation_with(self, name: str, knob: float) -> float:
        """Return a policy's mean violation with the tried knob value nearest to `knob`.

        Raises:
            KeyError: no policy of that name took part.
        """
        return float(self.results[name].means[0][self._nearest(name, knob)])

    def hours_with(self, name: str, knob: float, allowed: float) -> float:
        """Return a policy's mean executor-hours with the tried knob value nearest to `knob`; NaN if it violates more.

        Raises:
            KeyError: no policy of that name took part.
        """
        return float(self.seeds_with(name, knob, allowed).mean())

    def seeds_with(self, name: str, knob: float, allowed: float) -> Floats:
        """Return (seeds,) executor-hours of a policy at the tried knob value nearest to `knob`; all NaN if it is later.

        By the mean over the seeds, as a knob that serves is chosen: one seed is no more than a few days.

        Raises:
            KeyError: no policy of that name took part.
        """
        result, at = self.results[name], self._nearest(name, knob)
        return np.where(self.violation_with(name, knob) <= allowed, result.hours[at], np.nan)

    def _nearest(self, name: str, knob: float) -> int:
        return int(np.argmin(np.abs(self.results[name].knobs - knob)))

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
        result = self.results[name]
        violation, hours = result.means
        return [
            {
                "knob": result.knobs[i], "executor_hours": hours[i], "violation": violation[i],
                "p99_latency_s": result.p99_s[i].mean(), "worst_latency_s": result.worst_s[i].max(),
                "actions": result.actions[i].mean(), "ratio_to_optimum": self._ratio(hours[i], violation[i]),
                "between": {"executor_hours": _range(result.hours[i]), "violation": _range(result.violation[i])},
                "clamped": result.clamped[i].sum(), "not_a_number": result.none[i].sum(),
            }
            for i in np.argsort(result.knobs, kind="stable")
        ]  # fmt: skip

    def at_usual_setting(self, name: str, rivals: list[str]) -> dict[str, Any] | None:
        """Return a policy at its usual setting, and what rivals cost at the same violation.

        Args:
            name: of the policy, as in the catalogue.
            rivals: names of policies that took part.

        Returns:
            "knob" (the default), "executor_hours" and "violation" (share of the seconds over the latency target) there,
            means over the seeds, and "others": executor-hours by rival, NaN where it violates more. For them a
            violation below 0.0001 counts as that. None where it has no usual setting.

        Raises:
            SettingsError: the catalogue has no such policy.
            KeyError: the policy or a rival did not take part.
        """
        knob, result = entry(name).usual_setting, self.results[name]
        if knob is None:
            return None
        at = self._nearest(name, knob)
        violation, hours = (float(mean[at]) for mean in result.means)
        theirs = {rival: self.hours_at(rival, max(violation, AS_GOOD_AS_NONE)) for rival in rivals}
        return {"knob": knob, "executor_hours": hours, "violation": violation, "others": theirs}

    def _ratio(self, hours: float, violation: float) -> float:
        best = self.results.get(OPTIMUM)
        return hours / best.hours_at(max(violation, best.means[0].min())) if best else math.nan


def to_json_values(value: Any) -> Any:
    """Convert nested dicts, lists, tuples and numpy scalars to JSON values: keys to text, NaN and infinities to None.

    Other values, numpy arrays among them, stay as they are.
    """
    if isinstance(value, dict):
        return {str(key): to_json_values(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [to_json_values(part) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _range(seeds: Floats) -> list[float]:
    return [seeds.min(), seeds.max()]
