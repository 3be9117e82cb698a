"""The audit of a log: the same inputs must give the same decisions, bit for bit."""

from __future__ import annotations

from typing import Any

from configs.contract import Contract
from models.policy.core.view import Policy
from models.policy.live.build import policy_of
from models.policy.live.observation import Observation
from models.policy.live.plan import plan


def replayed(decision: dict[str, Any], policy: Policy | None = None) -> tuple[int, str, list[str]] | None:
    """Executors, reason and codes that a logged decision's inputs give; None for one made without an observation.

    Args:
        decision: fields as in `tidecast.messages.Decision`.
        policy: the one that decided; needed for a learned one, of the version that the inputs name.
    """
    inputs = decision["inputs"]
    seen = Observation.of(inputs) if "contract" in inputs else None
    if seen is None:
        return None
    contract = Contract.model_validate(inputs["contract"])
    policy = policy or policy_of(decision["policy"], contract, seen.now_s, seen.job_s, seen.scale)
    _, made = plan(seen, contract, policy)
    return made.executors, made.reason, made.codes
