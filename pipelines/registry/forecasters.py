"""The registered forecasters of every job."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from models.forecast.core.forecaster import Forecaster
from models.policy.received.peak_calibrator import PeakCalibratorError
from models.policy.received.rehearsal import Rehearsal, describe, revive
from pipelines.registry.artifacts import log_forecaster, read_archive, read_forecaster
from pipelines.registry.runs import TrackedRun
from pipelines.registry.store import ModelStore

PEAKS_FILE, PEAKS, AT = "peaks.json", "peaks", "@"


class Registry(ModelStore):
    """Forecasters under the name `<job>-forecaster`."""

    what = "forecaster"
    made_by = "retrain_forecaster"

    def load(self, job: str, version: str | None = None) -> Forecaster:
        """Load the forecaster of a version, e.g. "3"; without one, of the champion (the version that serves).

        Raises:
            RegistryError, OSError, ValueError: as `fetch`.
        """
        return self.fetch(job, version)[0]

    def fetch(self, job: str, version: str | None = None) -> tuple[Forecaster, bytes | None]:
        """Load the forecaster of a version (without one, of the champion, which serves), and its network's archive.

        Returns:
            The forecaster, and the bytes of the `pt2` archive, None for a kind without one. The files that were
            downloaded are deleted again.

        Raises:
            UnreadableError: the version's files are gone, or are no forecaster of this code.
            RegistryError: no such job or version, no champion, or MLflow does not answer.
            OSError: a file cannot be downloaded or read.
            ValueError: no job can have the name (MessageError).
        """
        with TemporaryDirectory() as scratch:
            folder, what = self.download(job, version, Path(scratch))
            return read_forecaster(folder, what), read_archive(folder)

    def register(
        self, run: TrackedRun, job: str, forecaster: Forecaster, card: str, tags: Mapping[str, str],
        alias: str | None = None,
    ) -> str:  # fmt: skip
        """Log a forecaster to a running run and register it with its model card; returns the new version, e.g. "3".

        Args:
            run: must be the active run.
            job: whose forecaster.
            forecaster: to log.
            card: Markdown, becomes the version's description.
            tags: of the version; `kind` is added.
            alias: to point to the new version, e.g. `CHALLENGER`.

        Raises:
            MlflowException: MLflow refuses or does not answer.
            MessageError: no job can have the name.
            OSError: a temporary file cannot be written.
        """
        return self.register_version(
            run, job, log_forecaster(forecaster, tags), card, {**tags, "kind": forecaster.kind}, alias
        )

    def write_rehearsal(self, run: TrackedRun, job: str, version: str, rehearsal: Rehearsal) -> None:
        """Store what policies learned of a job's past, as an artifact of the run that the version's tag `peaks` names.

        It takes the place of what was stored for the version earlier, which stays where nothing was learned.

        Args:
            run: a running run.
            job: whose version.
            version: of the forecaster that the policies heard, e.g. "3".
            rehearsal: to store.

        Raises:
            MlflowException: no such version, or MLflow does not answer; the artifact may have been stored.
            MessageError: no job can have the name.
        """
        if rehearsal.peaks is None and not rehearsal.starts:
            return
        run.text(json.dumps(describe(rehearsal)), _peaks(version))
        self.set_version_tags(job, version, {PEAKS: run.id})

    def rehearsal_of(self, job: str, version: str) -> str | None:
        """Name what was learned with a version as `<version>@<run>`; None where it has none yet.

        Raises:
            RegistryError: no such version, or MLflow does not answer.
            MessageError: no job can have the name.
        """
        run_id = self.tags(job, version).get(PEAKS)
        return f"{version}{AT}{run_id}" if run_id else None

    def download_rehearsal(self, name: str, into: Path) -> None:
        """Download the rehearsal that `rehearsal_of` named, as the file `PEAKS_FILE` in or below a folder.

        Args:
            name: `<version>@<run>`.
            into: created where it is missing.

        Raises:
            RegistryError: the run has no such artifact, MLflow does not answer, or the file cannot be written.
            ValueError: the name is not of this form.
            OSError: `into` cannot be made.
        """
        into.mkdir(parents=True, exist_ok=True)
        version, run_id = name.split(AT)
        self.download_run_artifact(run_id, _peaks(version), into)


def read_rehearsal(folder: Path) -> Rehearsal:
    """Read a rehearsal from `peaks.json` in (a subfolder of) a folder; needs no MLflow.

    Raises:
        PeakCalibratorError: there is none, it is no JSON, or it is none of this code's.
        ValueError: text in place of a number, or the file is not UTF-8.
        OSError: the file cannot be read.
    """
    files = sorted(folder.rglob(PEAKS_FILE))
    try:
        return revive(json.loads(files[0].read_text()) if files else None)
    except json.JSONDecodeError as error:
        raise PeakCalibratorError(f"{files[0]} is no JSON ({error}); retrain the forecaster") from None


def _peaks(version: str) -> str:
    """Where they lie among a run's artifacts: one run may register several versions."""
    return f"version_{version}/{PEAKS_FILE}"
