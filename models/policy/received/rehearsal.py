"""What a job's past has taught its policies: how its peaks are forecast, and from where the promise is steered."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from configs.contract import Contract
from models.policy.received import peak_calibrator
from models.policy.received.peak_calibrator import PeakCalibrator, PeakCalibratorError

REACTIVE = "reactive"
"""The policy that hears no forecast, against which those that do are held."""
_PROMISE = "latency_target_s", "error_budget", "least", "most"


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """What was learned by running policies on a job's past in its twin; kept beside a forecaster's version.

    Attributes:
        peaks: how its peaks are forecast; None where they could not be learned.
        starts: by policy, the value of its knob that the promise is steered from.
        hours: by policy, executor-hours a day of the wall's clock with that value.
        promise: latency target (s), error budget and bounds of executors that the starts were found for.
    """

    peaks: PeakCalibrator | None = None
    starts: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    hours: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    promise: tuple[float, ...] = ()

    def start(self, policy: str, contract: Contract) -> float | None:
        """Return the knob that a policy begins with; None if none was found for this promise and these bounds."""
        return self.starts.get(policy) if self.promise == promised(contract) else None

    def saved(self, policy: str, contract: Contract) -> float | None:
        """Return the share of executor-hours, below 1, that a policy saved beside `reactive` at the same promise.

        Below 0 it took more. None if it was not tried under this promise and these bounds, or `reactive` kept it not.
        """
        known = self.promise == promised(contract) and REACTIVE in self.hours and policy in self.hours
        return 1 - self.hours[policy] / self.hours[REACTIVE] if known else None


def promised(contract: Contract) -> tuple[float, ...]:
    """Return latency target (s), error budget and bounds of executors of a contract: what a start holds for."""
    bounds = contract.executors
    return contract.latency_target_s, contract.error_budget, float(bounds.min), float(bounds.max)


def describe(rehearsal: Rehearsal) -> dict[str, Any]:
    """Return a rehearsal as JSON values; `revive` is the inverse."""
    peaks = {} if rehearsal.peaks is None else peak_calibrator.describe(rehearsal.peaks)
    promise = dict(zip(_PROMISE, rehearsal.promise, strict=False))
    return {**peaks, "steering": {"starts": dict(rehearsal.starts), "hours": dict(rehearsal.hours), "promise": promise}}


def revive(data: Any) -> Rehearsal:
    """Rebuild a rehearsal from the JSON values that `describe` made, or from those of releases that kept peaks alone.

    Raises:
        PeakCalibratorError: neither, a missing field, one of a wrong type, no hours, or peaks that tell nothing.
        ValueError: a text or list is no number.
    """
    try:
        steering = data.get("steering", {"starts": {}, "hours": {}, "promise": {}})
        starts, hours = (
            {str(policy): float(value) for policy, value in steering[name].items()} for name in ("starts", "hours")
        )
        if wrong := {policy: value for policy, value in hours.items() if not 0 < value < math.inf}:
            raise PeakCalibratorError(f"executor-hours a day {wrong}: above 0 is expected; train again")
        promise = tuple(float(steering["promise"][name]) for name in _PROMISE) if starts else ()
        peaks = peak_calibrator.revive(data) if "levels" in data or not starts else None
        return Rehearsal(peaks, starts, hours, promise)
    except (AttributeError, KeyError, TypeError) as error:
        raise PeakCalibratorError(f"no rehearsal of this code ({error!r}); train again") from None
