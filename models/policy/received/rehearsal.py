"""What a job's past has taught its policies: how its peaks are forecast, and from where the promise is steered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from configs.contract import Contract
from models.policy.received import peak_calibrator
from models.policy.received.peak_calibrator import PeakCalibrator, PeakCalibratorError

_PROMISE = "latency_target_s", "error_budget", "least", "most"


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """What was learned by running policies on a job's past in its twin; kept beside a forecaster's version.

    Attributes:
        peaks: how its peaks are forecast; None where they could not be learned.
        starts: by policy, the value of its knob that the promise is steered from.
        promise: latency target (s), error budget and bounds of executors that the starts were found for.
    """

    peaks: PeakCalibrator | None = None
    starts: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    promise: tuple[float, ...] = ()

    def start(self, policy: str, contract: Contract) -> float | None:
        """Return the knob that a policy begins with; None if none was found for this promise and these bounds."""
        return self.starts.get(policy) if self.promise == promised(contract) else None


def promised(contract: Contract) -> tuple[float, ...]:
    """Return latency target (s), error budget and bounds of executors of a contract: what a start holds for."""
    bounds = contract.executors
    return contract.latency_target_s, contract.error_budget, float(bounds.min), float(bounds.max)


def describe(rehearsal: Rehearsal) -> dict[str, Any]:
    """Return a rehearsal as JSON values; `revive` is the inverse."""
    peaks = {} if rehearsal.peaks is None else peak_calibrator.describe(rehearsal.peaks)
    promise = dict(zip(_PROMISE, rehearsal.promise, strict=False))
    return {**peaks, "steering": {"starts": dict(rehearsal.starts), "promise": promise}}


def revive(data: Any) -> Rehearsal:
    """Rebuild a rehearsal from the JSON values that `describe` made, or from those of releases that kept peaks alone.

    Raises:
        PeakCalibratorError: neither, or a missing field, or one of a wrong type.
        ValueError: a text or list is no number.
    """
    try:
        steering = data.get("steering", {"starts": {}, "promise": {}})
        starts = {str(policy): float(knob) for policy, knob in steering["starts"].items()}
        promise = tuple(float(steering["promise"][name]) for name in _PROMISE) if starts else ()
        peaks = peak_calibrator.revive(data) if "levels" in data or not starts else None
        return Rehearsal(peaks, starts, promise)
    except (AttributeError, KeyError, TypeError) as error:
        raise PeakCalibratorError(f"no rehearsal of this code ({error!r}); train again") from None
