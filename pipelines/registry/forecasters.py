"""The registered forecasters of every job."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from models.forecast.core.forecaster import Forecaster
from models.policy.received.peak_calibrator import PeakCalibrator, PeakCalibratorError, describe, revive
from pipelines.registry.artifacts import archive, read, write
from pipelines.registry.runs import TrackedRun
from pipelines.registry.store import ModelStore

PEAKS_FILE, PEAKS, AT = "peaks.json", "peaks", "@"


class Registry(ModelStore):
    """Forecasters under the name `<job>-forecaster`."""

    what = "forecaster"
    made_by = "retrain_forecaster"

    def load(self, job: str, version: str | None = None) -> Forecaster:
        """The forecaster of a version; without one, of the champion.

        Raises:
            RegistryError: no such job or version, no champion, or an artifact that is no forecaster of this code.
        """
        return self.fetch(job, version)[0]

    def fetch(self, job: str, version: str | None = None) -> tuple[Forecaster, bytes | None]:
        """As `load`, with the network's archive where it has one; nothing is left behind on the disk."""
        with TemporaryDirectory() as scratch:
            folder, what = self.download(job, version, Path(scratch))
            return read(folder, what), archive(folder)

    def register(
        self, run: TrackedRun, job: str, forecaster: Forecaster, card: str, tags: Mapping[str, str],
        alias: str | None = None,
    ) -> str:  # fmt: skip
        """Register a forecaster out of a running run, with its model card; returns the new version."""
        return self.keep(run, job, write(forecaster, tags), card, {**tags, "kind": forecaster.kind}, alias)

    def keep_peaks(self, run: TrackedRun, job: str, version: str, calibrator: PeakCalibrator) -> None:
        """Keep with a version, in a running run, how the load's peaks are forecast from its words; the newest count."""
        run.text(json.dumps(describe(calibrator)), _peaks(version))
        self.note(job, version, {PEAKS: run.id})

    def champion_peaks(self, job: str) -> str | None:
        """The newest peaks that are kept with the champion, as `<version>@<run>`; None where there are none."""
        version = self.champion_version(job)
        run_id = None if version is None else self.tags(job, version).get(PEAKS)
        return f"{version}{AT}{run_id}" if run_id else None

    def fetch_peaks(self, name: str, into: Path) -> None:
        """Put the file `PEAKS_FILE` of peaks named by `champion_peaks` into a folder, or one inside it.

        Raises:
            RegistryError: there are none.
        """
        into.mkdir(parents=True, exist_ok=True)
        version, run_id = name.split(AT)
        self.download_of(run_id, _peaks(version), into)


def read_peaks(folder: Path) -> PeakCalibrator:
    """The peaks in a folder where they were put; needs no MLflow.

    Raises:
        PeakCalibratorError: there are none, or none of this code's.
    """
    found = sorted(folder.rglob(PEAKS_FILE))
    try:
        return revive(json.loads(found[0].read_text()) if found else None)
    except json.JSONDecodeError as error:
        raise PeakCalibratorError(f"{found[0]} is no JSON ({error}); retrain the forecaster") from None


def _peaks(version: str) -> str:
    """Where they lie among a run's artifacts: one run may register several versions."""
    return f"version_{version}/{PEAKS_FILE}"
