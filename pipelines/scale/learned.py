"""Learned parts of decisions: agents of the policy `dqn`, and rehearsals kept with the forecasters.

The driver takes them out of the registry, a worker reads them from plain files.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from configs.contract import Contract
from configs.errors import SettingsError
from configs.policies import LEARNED, LISTENERS
from configs.settings import Settings
from models.dqn.agent.policy import Dqn
from models.policy.core.policy import Policy
from models.policy.live.recomputed import build_policy_at
from models.policy.received.peak_calibrator import PeakCalibrator, PeakCalibratorError
from models.policy.received.rehearsal import REACTIVE, Rehearsal
from pipelines.registry import AgentRegistry, Registry
from pipelines.registry.agents import read_agent
from pipelines.registry.forecasters import AT, read_rehearsal
from pipelines.scale.artifact_sync import ArtifactSource, SyncedArtifacts

FALLBACK_POLICY = "mpc"  # name of the policy that decides while another lacks its agent or its timetable


def agent_source(settings: Settings) -> ArtifactSource:
    """Return the source of `dqn` agents: every job's champion (the version that serves), opened at first look-up."""
    opened = lru_cache(maxsize=1)(lambda: AgentRegistry(settings))  # when it is first asked, in the thread that asks
    return ArtifactSource(
        "agent", lambda: {job: f"{one.version}{AT}{one.changed_ms}" for job, one in opened().champions().items()},
        lambda job, champion: champion,  # the time, too: where the registry was made anew, version 1 is another one
        lambda job, champion, files: opened().download(job, champion.split(AT)[0], files), read_policy,
    )  # fmt: skip


def rehearsal_source(settings: Settings) -> ArtifactSource:
    """Return the source of rehearsals, kept with a job's champion (forecaster that serves); opened when asked."""
    opened = lru_cache(maxsize=1)(lambda: Registry(settings))
    return ArtifactSource(
        "rehearsal", lambda: {job: champion.version for job, champion in opened().champions().items()},
        lambda job, champion: opened().rehearsal_of(job, champion),  # a champion may get one later
        lambda job, version, files: opened().download_rehearsal(version, files), read_fitting_rehearsal,
    )  # fmt: skip


def read_policy(files: Path, contract: Contract) -> Policy:
    """Load the `dqn` policy from the files of an agent's version, with the contract's times and error budget.

    Raises:
        AgentError: there is no agent, its features, moves or shapes are not this code's, or it was never tried.
        ValueError: text in place of numbers, or lists of unequal length.
        OSError: a file cannot be read.
    """
    return Dqn.of("dqn", contract, read_agent(files))


def read_fitting_rehearsal(files: Path, contract: Contract) -> Rehearsal:
    """Load what policies learned of a job's past from a version's files; its peaks must fit the contract's hold.

    A contract is a job's latency target and executor bounds.

    Raises:
        PeakCalibratorError: there is none, it is not of this release, or peaks were learned for another hold time than
            the contract's. Whether they fit the lead time, which is learned, is seen at each decision.
        ValueError: text in place of a number.
        OSError: a file cannot be read.
    """
    found, planning = read_rehearsal(files), contract.planning
    peaks = found.peaks
    if peaks is not None and not peaks.fits(planning.model_copy(update={"lead_s": peaks.lead_s}), peaks.scale):
        raise PeakCalibratorError(
            f"learned for {peaks.hold_s:g} s of hold, the contract has {planning.hold_s:g} s: retrain the forecaster"
        )
    return found


class Instant(NamedTuple):
    """One moment: wall time and job time, both in epoch seconds, and job seconds per wall second."""

    now_s: float
    job_s: float
    scale: float


class Decider(NamedTuple):
    """The policy that decides now, the version of its agent, and why it replaces the one asked for ("" if not)."""

    policy: Policy
    version: str | None = None
    stand_in: str = ""


class Learned(NamedTuple):
    """A worker's access to the synced agents and rehearsals; None where that kind is not synced."""

    agents: SyncedArtifacts | None = None
    rehearsals: SyncedArtifacts | None = None

    def decider(self, name: str, contract: Contract, clock: Instant, planned: Contract | None = None) -> Decider:
        """Build the policy that decides for a job now, with the job's newest DQN agent if the policy is learned.

        The policy "mpc" takes its place, and `stand_in` says why, if its agent or the timetable in the contract
        that it needs is missing or unreadable, or no policy has this name; "reactive" does if the job's rehearsal has
        shown that hearing the forecast saves nothing.

        Args:
            name: of the policy, as in the settings.
            contract: of the job: its latency target, executor bounds and planning times.
            clock: the present moment.
            planned: the same with the lead time that is planned for; None: the contract's own.
        """
        planned = planned or contract
        try:
            if name not in LEARNED:
                return self._rehearsed_decider(name, contract, clock, planned)
            found = None if self.agents is None else self.agents.newest(contract)
            if found is None:
                raise SettingsError(f"{name} has no agent yet")
        except (ValueError, OSError) as missing:  # what the policy needs is not there, or cannot be read
            instead = self._rehearsed_decider(FALLBACK_POLICY, contract, clock, planned)
            return instead._replace(stand_in=f"{missing}; {instead.stand_in or f'{FALLBACK_POLICY} decides'}")
        version, policy = found  # read once per version; only its times are those of now
        decides = Dqn.of("dqn", planned, policy.agent) if isinstance(policy, Dqn) else policy
        return Decider(decides, version.split(AT)[0])

    def calibrator(self, contract: Contract, version: str | None) -> PeakCalibrator | None:
        """Return the job's peak calibrator if it was fitted to the forecaster version `version`, e.g. "3", else None.

        None too if `version` is None, or if the calibrator (quantiles of the peak load ahead, records/s) is not synced
        or cannot be read.
        """
        found = self._rehearsed(contract)
        return found[1].peaks if found is not None and found[0].split(AT)[0] == version else None

    def _rehearsed_decider(self, name: str, contract: Contract, clock: Instant, planned: Contract) -> Decider:
        known, stand_in = self._rehearsed(contract), ""
        past = Rehearsal() if known is None else known[1]
        saved = past.saved(name, contract) if name in LISTENERS else None
        if saved is not None and saved < 0:
            stand_in = f"by the twin {name} took {-saved:.1%} more executor-hours on the past; {REACTIVE} decides"
            name = REACTIVE
        return Decider(build_policy_at(name, planned, *clock, start=past.start(name, contract)), None, stand_in)

    def _rehearsed(self, contract: Contract) -> tuple[str, Rehearsal] | None:
        try:
            return None if self.rehearsals is None else self.rehearsals.newest(contract)
        except (ValueError, OSError):  # of another age or another contract; the driver has reported it
            return None


NOTHING = Learned()
