"""What decisions go by that was learned: agents of the policy `dqn`, and calibrators of peaks beside the forecasters.

The driver takes them out of the registry, a worker reads them from plain files.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from configs.contract import Contract
from configs.errors import SettingsError
from configs.policies import LEARNED
from configs.settings import Settings
from models.dqn.agent.policy import Dqn
from models.policy.core.view import Policy
from models.policy.live.replay import policy_of
from models.policy.received.peak_calibrator import PeakCalibrator, PeakCalibratorError
from pipelines.registry import AgentRegistry, Registry
from pipelines.registry.agents import read_agent
from pipelines.registry.forecasters import AT, read_peaks
from pipelines.scale.artifact_sync import ArtifactSource, SyncedArtifacts

STAND_IN = "forecast"
"""Who decides while a policy lacks its agent or its timetable."""


def agents(settings: Settings) -> ArtifactSource:
    """Where the agents of `dqn` come from: every job's champion in the registry."""
    opened = lru_cache(maxsize=1)(lambda: AgentRegistry(settings))  # when it is first asked, in the thread that asks
    return ArtifactSource(
        "agent", lambda job: opened().champion_version(job), lambda *which: opened().download(*which), read_policy
    )


def peaks(settings: Settings) -> ArtifactSource:
    """Where calibrators of peaks come from: beside every job's champion among the forecasters."""
    opened = lru_cache(maxsize=1)(lambda: Registry(settings))
    return ArtifactSource(
        "model of peaks", lambda job: opened().champion_peaks(job),
        lambda job, version, files: opened().fetch_peaks(version, files), read_calibrator,
    )  # fmt: skip


def read_policy(files: Path, contract: Contract) -> Policy:
    """The policy of the agent in a version's files.

    Raises:
        AgentError: there is none, or its spaces do not fit this code's.
    """
    return Dqn.of("dqn", contract, read_agent(files))


def read_calibrator(files: Path, contract: Contract) -> PeakCalibrator:
    """The calibrator in a version's files.

    Raises:
        PeakCalibratorError: they are none of this code's, or were learned for other times than the contract's.
    """
    found, planning = read_peaks(files), contract.planning
    if not found.fits(planning, found.scale):
        raise PeakCalibratorError(
            f"learned for {found.lead_s:g} + {found.hold_s:g} s of lead and hold, the contract has "
            f"{planning.lead_s:g} + {planning.hold_s:g} s: retrain the forecaster"
        )
    return found


class Instant(NamedTuple):
    """Wall time, the job's own time, and how many seconds of the second pass in one of the first."""

    now_s: float
    job_s: float
    scale: float


class Decider(NamedTuple):
    """Who decides now: the policy, the version of its agent, and why it stands in for another (empty: it does not)."""

    policy: Policy
    version: str | None = None
    stand_in: str = ""


class Learned(NamedTuple):
    """What a worker finds of it; None where nothing of the kind is synced."""

    agents: SyncedArtifacts | None = None
    peaks: SyncedArtifacts | None = None

    def decider(self, name: str, contract: Contract, clock: Instant) -> Decider:
        """The policy of that name, with the job's newest agent where it needs one, or who stands in."""
        try:
            if name not in LEARNED:
                return Decider(policy_of(name, contract, *clock))
            found = None if self.agents is None else self.agents.newest(contract)
            if found is None:
                raise SettingsError(f"{name} has no agent yet")
        except (ValueError, OSError) as missing:  # what the policy needs is not there, or cannot be read
            return Decider(policy_of(STAND_IN, contract, *clock), None, f"{missing}; {STAND_IN} decides")
        version, policy = found
        return Decider(policy, version)

    def calibrator(self, contract: Contract, version: str | None) -> PeakCalibrator | None:
        """That of the version whose forecast is held; None where there is none that can be read."""
        if self.peaks is None or version is None:
            return None
        try:
            found = self.peaks.newest(contract)
        except (ValueError, OSError):  # of another age or another contract; the driver has reported it
            return None
        return found[1] if found is not None and found[0].split(AT)[0] == version else None


NOTHING = Learned()
