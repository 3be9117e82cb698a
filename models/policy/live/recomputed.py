"""Who decides about a live job, and the audit of a log: the same inputs must give the same decisions, bit for bit."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from configs.bounds import DAY_S
from configs.contract import Contract
from configs.errors import SettingsError
from configs.policies import LEARNED
from models.policy.catalogue import build, build_steered
from models.policy.core.policy import Policy
from models.policy.live.granted import with_grant
from models.policy.live.plan import make_plan
from models.policy.received.observation import Observation
from models.policy.replays.total import ask_in_all
from models.policy.rules.fixed import Timetable

Contracts = Mapping[str, Contract]
"""Contracts by their hash, `Contract.hash`."""
Agents = Callable[[str, str], Callable[[str, Contract], Policy]]
"""Returns, by job and version of its agent, what builds a learned policy from its name and a contract; a LookupError
names the agent that is not to be had."""


def build_policy_at(
    name: str, contract: Contract, now_s: float, job_s: float, scale: float, steered: bool = True,
    start: float | None = None,
) -> Policy:  # fmt: skip
    """Build a policy that needs no agent, for one job at one moment.

    Args:
        name: of the catalogue.
        contract: of the job.
        now_s: epoch seconds.
        job_s: the job's own time at that moment, seconds since the epoch.
        scale: job seconds per wall second, above 0; a day of the timetable lasts 86,400 / scale wall seconds.
        steered: whether the promise moves its knob, where it has one; not so in older logs.
        start: value of that knob to begin with (a policy that has begun carries its place); None: the contract's.

    Raises:
        SettingsError: no policy has that name, it needs an agent (`dqn`), or it is `schedule` and the contract has no
            `planning.timetable_rps`.
        ZeroDivisionError: `schedule` at a scale of 0.
    """
    if name != "schedule":
        return build_steered(name, contract, start) if steered else build(name, contract)
    rps = contract.planning.timetable_rps
    if not rps:
        where = f"planning.timetable_rps of {contract.job}.yaml"
        raise SettingsError(f"{name} has no timetable: {where} is to hold a rate for each hour of the day")
    return build(name, contract, Timetable(np.array(rps), DAY_S / scale, job_s / scale - now_s))


def parse_contracts(texts: Iterable[Mapping[str, Any]]) -> dict[str, Contract]:
    """Parse the contracts of a log, by their hash.

    Args:
        texts: fields as in `tidecast.messages.ContractText`: `hash` and `text`.

    Raises:
        KeyError: a field is missing.
        ValueError: a text is not JSON or no valid contract.
    """
    return {text["hash"]: Contract.model_validate(json.loads(text["text"])) for text in texts}


def recompute_decision(
    decision: Mapping[str, Any], contracts: Contracts, agents: Agents | None = None
) -> tuple[int, str, list[str]] | None:
    """Decide again from a logged decision's inputs.

    Args:
        decision: "policy" (its name) and "inputs" (of `Observation.inputs`, and "contract_hash") are read, and "job"
            where the policy is a learned one.
        contracts: by hash. Inputs of older logs hold their "contract" themselves.
        agents: of learned policies; None: none is to be had.

    Returns:
        Executors, reason (a line for a person) and codes; None for a decision made without an observation.

    Raises:
        LookupError: contract or agent of the decision are not to be had, or (KeyError) a field is missing.
        SettingsError: the policy cannot be built by its name, as a learned one without `agents`.
        ValueError, TypeError: the inputs hold an invalid contract, or something that is no number.
        ZeroDivisionError: "tasks" is 0, or "scale" for `schedule`.
    """
    inputs = decision["inputs"]
    seen = Observation.from_inputs(inputs)
    if seen is None:
        return None
    if "contract" in inputs:
        contract = Contract.model_validate(inputs["contract"])
    elif (named := inputs["contract_hash"]) in contracts:
        contract = contracts[named]
    else:
        raise LookupError(f"contract {named} is not known; its text is on the topic `contracts` and in the lake")
    if seen.lead_s is not None:
        contract = contract.planned_for(seen.lead_s, seen.lead_growth, seen.down_delay_s)
    steered = seen.counted_s is not None
    if agents is not None and (name := decision["policy"]) in LEARNED:
        policy = agents(decision["job"], str(seen.version))(name, contract)
    else:
        policy = build_policy_at(decision["policy"], contract, seen.now_s, seen.job_s, seen.scale, steered)
    _, made = make_plan(seen, contract, policy)
    logged = inputs.get("replay"), inputs.get("relief")
    asked = ask_in_all(made.executors, made.reason, made.codes, *logged, seen, contract)
    standing = (logged[0] or {}).get("standing")
    return with_grant(made.executors, seen.target, *asked[:3], inputs.get("pool"), standing)
