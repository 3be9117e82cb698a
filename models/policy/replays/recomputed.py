"""What a decision's logged inputs come to again: the interval of the controller, the rate, what executors bring."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from models.contract.controller import ClosedInterval, admitted_now, close_interval
from models.contract.declared import build
from models.contract.signals import SharedPlan, Signals
from models.contract.state import ControllerState
from models.contract.terms import Terms, compile_terms
from models.policy.replays.further import Weighed, weigh_executors


def recompute_interval(inputs: Mapping[str, Any]) -> ClosedInterval:
    """Return the interval of the controller that follows from a decision's logged inputs, as it was closed then.

    Raises:
        KeyError, TermsError: they are not as `control.decide_rate` writes them.
    """
    return close_interval(*_built(inputs))


def recompute_rate(inputs: Mapping[str, Any]) -> float:
    """Return the rate that follows from a decision's logged inputs, to be equal to the logged one bit for bit.

    It is the interval's, or less where live records come faster since.

    Raises:
        KeyError, TermsError: as `recompute_interval`.
    """
    built = _built(inputs)
    return min(close_interval(*built).controls.replay_rps, admitted_now(*built))


def recompute_weighed(inputs: Mapping[str, Any]) -> Weighed | None:
    """Return what numbers of executors bring by a decision's logged inputs; None where none were weighed.

    Raises:
        KeyError, TermsError: as `recompute_interval`.
    """
    logged = inputs.get("weighed")
    if logged is None:
        return None
    of_each = {row["executors"]: row["certain_rps"] for row in logged["numbers"]}
    return weigh_executors(*_built(inputs), logged["backlog"], of_each)


def _built(inputs: Mapping[str, Any]) -> tuple[Terms, SharedPlan, ControllerState, Signals]:
    return (
        compile_terms(inputs["terms"]), build(SharedPlan, inputs["plan"]), build(ControllerState, inputs["state"]),
        build(Signals, inputs["signals"]),
    )  # fmt: skip
