"""Who decides about a job: its policy, with the newest agent where it needs one, or who stands in."""

from __future__ import annotations

from typing import NamedTuple

from configs.contract import Contract
from configs.errors import SettingsError
from configs.policies import LEARNED
from models.policy.core.view import Policy
from models.policy.live.build import policy_of
from pipelines.scale.artifact_sync import SyncedArtifacts

STAND_IN = "forecast"
"""Who decides while a policy lacks its agent or its timetable."""


class Clock(NamedTuple):
    """Wall time, the job's own time, and how many seconds of the second pass in one of the first."""

    now_s: float
    job_s: float
    scale: float


class Decider(NamedTuple):
    """Who decides now: the policy, the version of its agent, and why it stands in for another (empty: it does not)."""

    policy: Policy
    version: str | None = None
    stand_in: str = ""


def decider(name: str, contract: Contract, clock: Clock, agents: SyncedArtifacts | None) -> Decider:
    """Who decides now for a job that was given the policy of that name."""
    try:
        if name not in LEARNED:
            return Decider(policy_of(name, contract, *clock))
        found = None if agents is None else agents.newest(contract)
        if found is None:
            raise SettingsError(f"{name} has no agent yet")
    except (ValueError, OSError) as missing:  # what the policy needs is not there, or cannot be read
        return Decider(policy_of(STAND_IN, contract, *clock), None, f"{missing}; {STAND_IN} decides")
    version, policy = found
    return Decider(policy, version)
