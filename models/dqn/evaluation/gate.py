"""The comparison that an agent must win before it may serve."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

from models.forecast.selection.gate import Rival, Verdict, verdict
from models.policy.core.capacity import Floats

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


def against(costs: Callable[[str], Floats], names: Iterable[str], tolerance: float) -> dict[str, Rival]:
    """Whom an agent is held against, of `RIVALS` and the champion: those that keep the promise.

    Args:
        costs: (seeds,) executor-hours of a policy at the violation of the gate; NaN where it breaks more.
        names: of the policies that took part.
        tolerance: share by which the agent may be dearer.
    """
    there = [name for name in (*RIVALS, CHAMPION) if name in names]
    return {name: Rival.of(costs(AGENT), costs(name), 1 + tolerance, len(there)) for name in there}


def judged(cost: float, rivals: Mapping[str, Rival], allowed: float) -> Verdict:
    """Judge executor-hours at equal violation on the same held-out load: surely no dearer than anybody of `against`."""
    return verdict(cost, rivals, f"executor-hours at {allowed:.3g} of the seconds over the target, ")
