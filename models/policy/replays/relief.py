"""What the ladder of relief asks of a live job beyond the replay's stop: executors, and live records held back.

Live records are held back only where their contract names `controls.live_rps`, and only once the executors were asked
for in vain. What is held back waits on its topic, where its latency goes on to count; so at least as much is admitted
as the executors that run certainly serve: to hold back more would leave them idle, and what waits would never be gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from configs.contract import Contract
from models.contract.relief import ReliefStep
from models.contract.state import ControllerState
from models.contract.terms import Terms
from models.policy.replays.kept import ReplayControl


def may_hold_back(contract: Contract) -> bool:
    """Return whether a contract's ladder allows that live records are held back."""
    stated = contract.backpressure
    return stated is not None and stated.controls.live_rps is not None


def relief_of(terms: Terms, state: ControllerState) -> dict[str, Any] | None:
    """Return what the ladder asks for until the next interval, as JSON values for a decision's inputs; None: nothing.

    Args:
        terms: in force; their hash is in what is returned.
        state: of the controller, after its newest interval.

    Returns:
        `step`, `executors` (asked for at least; None: none), `live_rps` (most live records/s that are admitted; None:
        all), `weights` (of the topics that share them) and `terms`.
    """
    controls, step = state.controls, state.relief.step
    if not step and controls.live_rps is None:
        return None
    served = [(state.executors or 1) * known.certain_rps for known in state.operators.values()]
    held = None if controls.live_rps is None else max(controls.live_rps, min(served, default=0.0))
    weights = dict(terms.fairness.weights)
    return {"step": step, "executors": controls.executors, "live_rps": held, "weights": weights, "terms": terms.hash}


def with_relief(
    executors: int, reason: str, codes: list[str], relief: Mapping[str, Any] | None, most: int
) -> tuple[int, str, list[str]]:
    """Return how many executors to ask for, why, and the codes, where a job stands on the ladder.

    Args:
        executors: that are asked for without it.
        reason: one line for a person.
        codes: the same for programs; "relief" is added.
        relief: as `relief_of` returns it.
        most: that may be asked for.
    """
    if relief is None:
        return executors, reason, codes
    asked = max(executors, min(relief["executors"] or 0, most))
    told = f"relief step {relief['step']}, {ReliefStep(relief['step']).name.lower()}"
    if relief["step"] == ReliefStep.SHED or (relief["step"] == ReliefStep.THROTTLE and relief["live_rps"] is None):
        told = f"{told} (which reaches no query)"
    if asked > executors:
        told = f"{told}: {asked - executors} more executors"
    if relief["live_rps"] is not None:
        told = f"{told}, live records held back to {relief['live_rps']:.0f}/s"
    return asked, f"{reason}; {told}", [*codes, "relief"]


def keep_for_relief(
    executors: int, reason: str, control: ReplayControl, standing: int | None, most: int
) -> tuple[int, str]:
    """Return how many executors to ask for while nothing is measured, and why: none that relief asked for leaves.

    Args:
        executors: that are asked for without it.
        reason: one line for a person.
        control: with where the job stands on the ladder.
        standing: executors that the decision before asks for; None: not known.
        most: that may be asked for.
    """
    step = 0 if control.state is None else control.state["relief"]["step"]
    kept = 0 if standing is None or step < ReliefStep.CAPACITY else min(standing, most) - executors
    return (executors + kept, f"{reason}; {kept} kept for relief") if kept > 0 else (executors, reason)
