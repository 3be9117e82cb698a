"""Who decides about a live job, and the audit of a log: the same inputs must give the same decisions, bit for bit."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from configs.contract import Contract
from configs.errors import SettingsError
from models.policy.catalogue import build
from models.policy.core.view import Policy
from models.policy.live.observation import Observation
from models.policy.live.plan import plan
from models.policy.rules.fixed import DAY_S, Timetable

Contracts = Mapping[str, Contract]
"""By the hash that decisions name them by."""


def policy_of(name: str, contract: Contract, now_s: float, job_s: float, scale: float) -> Policy:
    """A policy that needs no agent, at wall time `now_s`, which is `job_s` on the job's clock.

    A second on the wall is `scale` seconds of the job's time, so a timetable's day lasts 86,400 / scale on the wall.

    Raises:
        SettingsError: the policy needs something that the contract does not have.
    """
    if name != "schedule":
        return build(name, contract)
    rps = contract.planning.timetable_rps
    if not rps:
        where = f"planning.timetable_rps of {contract.job}.yaml"
        raise SettingsError(f"{name} has no timetable: {where} is to hold a rate for each hour of the day")
    return build(name, contract, Timetable(np.array(rps), DAY_S / scale, job_s / scale - now_s))


def contracts_of(texts: Iterable[Mapping[str, Any]]) -> dict[str, Contract]:
    """The contracts of a log by their hash (fields as in `tidecast.messages.ContractText`)."""
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
    if "contract" in inputs:
        contract = Contract.model_validate(inputs["contract"])
    elif (named := inputs["contract_hash"]) in contracts:
        contract = contracts[named]
    else:
        raise LookupError(f"contract {named} is not known; its text is on the topic `contracts` and in the lake")
    policy = policy or policy_of(decision["policy"], contract, seen.now_s, seen.job_s, seen.scale)
    _, made = plan(seen, contract, policy)
    return made.executors, made.reason, made.codes
