"""Says that the promise is being spent too fast, and why, long before it is broken."""

from __future__ import annotations

import math

import numpy as np

from configs.contract import Contract
from models.policy.core.capacity import Capacity
from models.policy.received.observation import Observation

FAST = 6.0
"""So many times as fast as allowed, in both windows: the Site Reliability Workbook's second page (chapter 5)."""
MOSTLY = 0.5
"""Share of late seconds that is fast for any promise: a large budget cannot go `FAST` times as fast as allowed."""
SLOW = 1.25
"""Times what the contract guesses: a service time above that is called slow."""


def fast_rate(error_budget: float) -> float:
    """Return the burn rate from which on, in both windows, a budget (share of late seconds, above 0) goes too fast."""
    return min(FAST, MOSTLY / error_budget)


def describe_burn(seen: Observation, contract: Contract, capacity: Capacity, target: int) -> str | None:
    """Say how fast the budget goes and what is in the way, if both windows are fast; else None.

    Such as "the budget goes 12 times as fast as allowed: for 9 s fewer executors run than are asked for, 2 of 4". Told
    is the first that holds of: executors for which the cluster has no room, executors that are missing, more arrives
    than those there sustain, and records that take longer than the contract guesses; and that there may be no more
    executors, where all there may be are there, and asked for.

    Args:
        seen: the job as observed; without burn rates (older logs, which thus replay) nothing is said.
        contract: of the job.
        capacity: of this one job, as learned so far.
        target: executors that are decided.
    """
    if seen.burn is None:
        return None
    burn = min(seen.burn)
    if not burn >= fast_rate(contract.error_budget):
        return None
    there = float(capacity.sustained_rps(np.array([seen.executors]))[0])
    slower, missing = seen.per_record_s / contract.planning.per_record_s, seen.target - seen.executors
    if seen.unmet is not None:
        cause = f"{seen.executors} executors are there, and the cluster has no room for more"
    elif seen.missing_s is not None:
        cause = f"for {seen.missing_s:.0f} s fewer executors run than are asked for, {seen.executors} of {seen.target}"
    elif missing > 0:  # as older logs say it, which do not know since when
        who, have = ("executor", "has") if missing == 1 else ("executors", "have")
        cause = f"{missing} {who} asked for {seen.since_change_s:.0f} s ago {have} not come"
    elif seen.arrival_rps > there:
        cause = f"{seen.arrival_rps:.0f} rec/s arrive, {seen.executors} executors sustain {there:.0f}"
    elif slower > SLOW:
        cause = f"a record takes {slower:.1f} times as long as the contract guesses"
    else:
        cause = f"{seen.lag_records} records wait"
    if min(seen.executors, target) >= contract.executors.max:
        cause += ", and there may be no more executors"
    return f"the budget goes {math.floor(burn)} times as fast as allowed: {cause}"
