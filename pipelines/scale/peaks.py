"""Where the peaks that a job's policies hear are learned: beside the forecaster that serves, in the registry."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from configs.contract import Contract
from configs.settings import Settings
from models.policy.received.peak_calibrator import PeakCalibrator, PeakCalibratorError
from pipelines.registry import Registry
from pipelines.registry.forecasters import AT, read_peaks
from pipelines.scale.artifact_sync import Source, SyncedArtifacts


def source(settings: Settings) -> Source:
    """Those of the champions in the registry, which is opened when it is first asked."""

    @lru_cache(maxsize=1)
    def registry() -> Registry:
        return Registry(settings)

    return Source(
        "model of peaks",
        lambda job: registry().champion_peaks(job),
        lambda job, name, files: registry().fetch_peaks(name, files),
        read,
    )


def read(files: Path, contract: Contract) -> PeakCalibrator:
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


def of_version(synced: SyncedArtifacts | None, contract: Contract, version: str | None) -> PeakCalibrator | None:
    """The calibrator of the version whose forecast is held; None where there is none that can be read."""
    if synced is None or version is None:
        return None
    try:
        found = synced.newest(contract)
    except (ValueError, OSError):  # of another age or another contract; the driver has said so
        return None
    return found[1] if found is not None and found[0].split(AT)[0] == version else None
