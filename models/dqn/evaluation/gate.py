"""The comparison that an agent must win before it may serve."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from models.forecast.selection.gate import Verdict

RIVALS = ("forecast", "mpc")
"""Ours that need no training: an agent that is dearer than the better of them is not worth its risk."""
AGENT, CHAMPION = "dqn", "champion"


EASIER = (0.01, 0.05, 0.1, 0.2, 0.5)
"""Violations to compare at, where none of `RIVALS` keeps the promise: on some jobs nobody can."""


def level(hours_at: Callable[[str, float], float], budget: float) -> float:
    """The violation to compare at: the budget, else the lowest of `EASIER` that one of `RIVALS` keeps.

    Args:
        hours_at: executor-hours of a policy at a violation; NaN where it always breaks more.
        budget: the contract's.
    """
    easier = (budget, *(allowed for allowed in EASIER if allowed > budget))
    kept = (allowed for allowed in easier if any(math.isfinite(hours_at(name, allowed)) for name in RIVALS))
    return next(kept, budget)


def verdict(hours: Mapping[str, float], allowed: float, tolerance: float = 0.0) -> Verdict:
    """Judge executor-hours at equal violation on the same held-out load.

    The agent must keep to the violation, must not be dearer than the cheapest of `RIVALS`, nor than the present
    champion. One that always breaks more has no hours (missing or NaN) and beats nobody.

    Args:
        hours: by policy.
        allowed: share of the seconds over the latency target at which they were read.
        tolerance: share by which the agent may be dearer.
    """
    known = {name: cost for name, cost in hours.items() if math.isfinite(cost)}
    at = f"at {allowed:.3g} of the seconds over the target"
    if AGENT not in known:
        return Verdict(False, f"rejected: {at} the agent has no cost, it always breaks more")
    others = {name: known[name] for name in (*RIVALS, CHAMPION) if name in known}
    said = f"{at} it takes {known[AGENT]:.4g} executor-hours"
    if not others:
        return Verdict(True, f"promoted: {said}, and nobody of {', '.join(RIVALS)} keeps the promise")
    best = min(others, key=lambda name: others[name])
    theirs = f"{best} {others[best]:.4g}"
    if known[AGENT] <= others[best] * (1 + tolerance):
        return Verdict(True, f"promoted: {said}, {theirs}")
    return Verdict(False, f"rejected: {said}, more than {theirs}")
