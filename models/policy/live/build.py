"""The policy that decides about a live job: as the catalogue builds it, with what the job's contract and clock add."""

from __future__ import annotations

import numpy as np

from configs.contract import Contract
from configs.errors import SettingsError
from models.policy.catalogue import build
from models.policy.core.view import Policy
from models.policy.rules.schedule import DAY_S, Timetable


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
