"""The comparison that an agent must win before it may serve."""

from __future__ import annotations

import math
from collections.abc import Mapping

from models.forecast.gate import Verdict

RIVALS = ("forecast", "mpc")
"""Ours that need no training: an agent that is dearer than the better of them is not worth its risk."""
AGENT, CHAMPION = "dqn", "champion"


def verdict(hours: Mapping[str, float], budget: float) -> Verdict:
    """Judge executor-hours at equal violation on the same held-out load.

    The agent must keep the promise, must not be dearer than the cheapest of `RIVALS`, nor than the present champion.
    One that does not keep the promise has no hours (missing or NaN) and beats nobody.

    Args:
        hours: by policy.
        budget: share of the seconds over the latency target at which they were read.
    """
    known = {name: cost for name, cost in hours.items() if math.isfinite(cost)}
    at = f"at {budget:.3g} of the seconds over the target"
    if AGENT not in known:
        return Verdict(False, f"rejected: {at} the agent has no cost, it always breaks more")
    others = {name: known[name] for name in (*RIVALS, CHAMPION) if name in known}
    said = f"{at} it takes {known[AGENT]:.4g} executor-hours"
    if not others:
        return Verdict(True, f"promoted: {said}, and nobody of {', '.join(RIVALS)} keeps the promise")
    best = min(others, key=lambda name: others[name])
    theirs = f"{best} {others[best]:.4g}"
    if known[AGENT] <= others[best]:
        return Verdict(True, f"promoted: {said}, {theirs}")
    return Verdict(False, f"rejected: {said}, more than {theirs}")
