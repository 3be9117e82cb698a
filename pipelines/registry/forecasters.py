"""The registered forecasters of every job."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from models.forecast.forecaster import Forecaster
from pipelines.registry.artifacts import read, write
from pipelines.registry.runs import Run
from pipelines.registry.store import Store


class Registry(Store):
    """Forecasters under the name `<job>-forecaster`."""

    what = "forecaster"
    made_by = "retrain_forecaster"

    def load(self, job: str, version: str | None = None) -> Forecaster:
        """The forecaster of a version; without one, of the champion.

        Raises:
            RegistryError: no such job or version, no champion, or an artifact that is no forecaster of this code.
        """
        return read(*self.download(job, version))

    def register(
        self, run: Run, job: str, forecaster: Forecaster, card: str, tags: Mapping[str, str], alias: str | None = None
    ) -> str:
        """Register a forecaster out of a running run, with its model card; returns the new version."""
        with TemporaryDirectory() as scratch:
            model_id = write(forecaster, Path(scratch), tags)
        return self.keep(run, job, model_id, card, {**tags, "kind": forecaster.kind}, alias)
