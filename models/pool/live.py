"""What one live job asks of its pool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from configs.contract import Contract
from models.policy.core.budget import Promise
from models.policy.live.memory import Memory
from models.policy.live.plan import Plan
from models.policy.received.observation import Observation
from models.pool.late import late_seconds
from models.pool.wants import Want, executors_needed

LEVEL = 0.9
"""Quantile of the forecast by which a job's later needs are told."""
DIGITS = 4


def want_of(
    seen: Observation, plan: Plan, contract: Contract, memory: Memory, replay: int, acts: bool
) -> Want:  # fmt: skip
    """Return what a job asks for after an evaluation; one that is not scaled keeps, and needs, what it has.

    Args:
        seen: the job as observed.
        plan: of its policy.
        contract: of the job, with the lead time that is planned for.
        memory: after the evaluation, with the forecast that is held.
        replay: executors that its replays ask for.
        acts: whether its executors are scaled.
    """
    view, planning = seen.to_view(contract), contract.planning
    late_s = late_seconds(view, contract.latency_target_s, planning.lead_s, planning.hold_s)[0]
    left = memory.account.standing(Promise.of(contract), memory.time_scale)["budget_left"]
    asked = plan.executors if acts else seen.executors
    running = seen.executors if memory.executors is None else memory.executors  # those that replays have, too
    needed = executors_needed(plan.needed_observed, plan.needed_forecast, contract.executors.max)
    return Want(
        contract.job, seen.now_s, asked, running, contract.executors.cores,
        min(contract.executors.min, asked) if acts else asked,
        tuple(float(f"{value:.{DIGITS}g}") for value in late_s), 1.0 if left is None else left,
        _ahead(memory.forecast, seen, contract) if acts else (), replay if acts else 0, needed if acts else 0,
        min(memory.metric_at or seen.now_s, seen.now_s),  # by the job's own clock, which may be ahead
    )  # fmt: skip


def _ahead(held: Mapping[str, Any], seen: Observation, contract: Contract) -> tuple[tuple[float, int], ...]:
    """Until when, epoch seconds, the forecast that counts now asks for how many executors, step by step."""
    if not held or seen.ahead is None:
        return ()
    levels, step_s = np.array(held["levels"]), held["step_s"] / seen.scale
    rates = np.array(held["quantiles"], float)[:, int(np.argmin(np.abs(levels - LEVEL)))]
    view = seen.to_view(contract)
    bounds = contract.executors
    asked, _ = view.capacity.executors_for(rates[:, None], np.array([float(bounds.min)]), np.array([float(bounds.max)]))
    begins = seen.now_s + (held["time"] - seen.job_s) / seen.scale
    steps = ((begins + (step + 1) * step_s, int(many)) for step, many in enumerate(asked[:, 0]))
    return tuple(step for step in steps if step[0] > seen.now_s)
