"""A decision about one live job, from numbers that a log can hold: the same numbers give the same decision."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from configs.contract import Contract
from models.policy.core import carried
from models.policy.core.view import Floats, Memory, Policy, decide
from models.policy.live.explanation import explanation
from models.policy.live.observation import Observation


@dataclass(frozen=True)
class Plan:
    """Executors to run, why, and what the plan counts on; `needed_*` are None where the policy does not say."""

    executors: int
    reason: str
    codes: list[str]
    needed_observed: int | None
    needed_forecast: int | None
    capacity_rps: float
    current_capacity_rps: float
    utilisation: float | None


def plan(seen: Observation, contract: Contract, policy: Policy) -> tuple[Memory, Plan]:
    """What the policy carries afterwards, and its decision."""
    view = seen.view(contract)
    memory, choice = decide(policy, carried.restore(seen.carried, policy), view)
    target = int(choice.target[0])
    capacity = float(view.capacity.rps(choice.target)[0])
    reason, codes = explanation(policy, view, choice, contract, seen)
    return memory, Plan(
        target, reason, codes, _whole(choice.observed), _whole(choice.forecast), capacity,
        float(view.capacity.rps(view.executors)[0]), seen.arrival_rps / capacity if capacity > 0 else None,
    )  # fmt: skip


def _whole(values: Floats) -> int | None:
    return int(values[0]) if np.isfinite(values[0]) else None
