"""The audit of a log: the same inputs must give the same decisions, bit for bit."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from configs.contract import Contract
from models.policy.core.view import Policy
from models.policy.live.build import policy_of
from models.policy.live.observation import Observation
from models.policy.live.plan import plan

Contracts = Mapping[str, Contract]
"""By the hash that decisions name them by."""


def contracts_of(texts: Iterable[Mapping[str, Any]]) -> dict[str, Contract]:
    """The contracts of a log (fields as in `tidecast.messages.ContractText`)."""
    return {text["hash"]: Contract.model_validate(json.loads(text["text"])) for text in texts}


def replayed(
    decision: Mapping[str, Any], contracts: Contracts, policy: Policy | None = None
) -> tuple[int, str, list[str]] | None:
    """Executors, reason and codes that a logged decision's inputs give; None for one made without an observation.

    Args:
        decision: fields as in `tidecast.messages.Decision`.
        contracts: those that the log's decisions name. Decisions of older logs bring the text of their own.
        policy: the one that decided; needed for a learned one, of the version that the inputs name.

    Raises:
        LookupError: the decision's contract is not among them.
    """
    inputs = decision["inputs"]
    seen = Observation.of(inputs)
    if seen is None:
        return None
    contract = _contract(inputs, contracts)
    policy = policy or policy_of(decision["policy"], contract, seen.now_s, seen.job_s, seen.scale)
    _, made = plan(seen, contract, policy)
    return made.executors, made.reason, made.codes


def _contract(inputs: Mapping[str, Any], contracts: Contracts) -> Contract:
    if "contract" in inputs:
        return Contract.model_validate(inputs["contract"])
    named = inputs["contract_hash"]
    if named not in contracts:
        raise LookupError(f"contract {named} is not known; its text is on the topic `contracts` and in the lake")
    return contracts[named]
