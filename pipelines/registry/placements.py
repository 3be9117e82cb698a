"""The registered placement networks and performance models of every topology: JSON, which can run no code."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Generic, TypeVar

from models.placement.learned.described import (
    PlacementModelError,
    describe,
    describe_performance,
    revive,
    revive_performance,
    shapes_of,
)
from models.placement.learned.queries import QuerySpace
from models.placement.learned.training import PlacementModel
from models.placement.performance.model import PerformanceModel
from models.placement.performance.windows import STEPS
from pipelines.registry.aliases import CHALLENGER
from pipelines.registry.artifacts import MismatchError, log_json_model, make_signature
from pipelines.registry.runs import TrackedRun
from pipelines.registry.store import ModelStore

M = TypeVar("M")
Shape = tuple[int, ...]


class _QueryModels(ModelStore, Generic[M]):
    """Models of a job's queries on its clusters, under the name `<topology>-<what>`."""

    made_by = "plan_placement"
    kind = ""  # tag of each version

    def load(self, name: str, space: QuerySpace, version: str | None = None) -> M:
        """Load a topology's model from the registry.

        Args:
            name: of the topology.
            space: placements of its queries, for which the model has to be.
            version: its number as text; None for the champion.

        Raises:
            MismatchError: it is a model of other queries or clusters, or none.
            UnreadableError: its files are gone.
            RegistryError: no such topology or version, no champion, or MLflow does not answer.
            ValueError: no model can have the name (MessageError).
            OSError: a file cannot be downloaded or read.
        """
        with TemporaryDirectory() as scratch:
            folder, what = self.download(name, version, Path(scratch))
            files = sorted(folder.rglob(self._file()))
            if not files:
                raise MismatchError(f"{what} has no {self._file()}: it was not registered by Tidecast. Train one.")
            text = files[0].read_text()
        try:
            return self._revive(json.loads(text), space)
        except (PlacementModelError, ValueError) as error:
            raise MismatchError(f"{what}: {error}") from None

    def register(
        self, run: TrackedRun, name: str, model: M, space: QuerySpace, card: str, tags: Mapping[str, str]
    ) -> str:
        """Log a model to a running run and register it as `challenger`; returns the new version, e.g. "3".

        Args:
            run: must be the active run.
            name: of the topology.
            model: to log.
            space: for which it was trained.
            card: Markdown, becomes the version's description.
            tags: of the version; `kind` is added.

        Raises:
            MlflowException: MLflow refuses or does not answer.
            MessageError: no model can have the name.
            OSError: a temporary file cannot be written.
        """
        inputs, outputs = self._shapes(space)
        model_id = log_json_model(
            self._describe(model, space), self._file(), make_signature({None: inputs}, {None: outputs}),
            name=self.what, tags=dict(tags), model_type=self.what,
        )  # fmt: skip
        return self.register_version(run, name, model_id, card, {**tags, "kind": self.kind}, CHALLENGER)

    def _file(self) -> str:
        return f"{self.what}.json"

    @abstractmethod
    def _describe(self, model: M, space: QuerySpace) -> dict[str, Any]:
        """A model as JSON values."""

    @abstractmethod
    def _revive(self, described: Any, space: QuerySpace) -> M:
        """The model that was described; PlacementModelError where it is of another job."""

    @abstractmethod
    def _shapes(self, space: QuerySpace) -> tuple[Shape, Shape]:
        """Shapes of what a model reads and says."""


class PlacementRegistry(_QueryModels[PlacementModel]):
    """Placement networks under the name `<topology>-placement`."""

    what, kind = "placement", "dqn"

    def _describe(self, model: PlacementModel, space: QuerySpace) -> dict[str, Any]:
        return describe(model, space)

    def _revive(self, described: Any, space: QuerySpace) -> PlacementModel:
        return revive(described, space)

    def _shapes(self, space: QuerySpace) -> tuple[Shape, Shape]:
        features, moves = shapes_of(space)
        return (-1, features), (-1, moves)


class PerformanceRegistry(_QueryModels[PerformanceModel]):
    """Performance models under the name `<topology>-performance`."""

    what, kind = "performance", "lstm"

    def _describe(self, model: PerformanceModel, space: QuerySpace) -> dict[str, Any]:
        return describe_performance(model, space)

    def _revive(self, described: Any, space: QuerySpace) -> PerformanceModel:
        return revive_performance(described, space)

    def _shapes(self, space: QuerySpace) -> tuple[Shape, Shape]:
        m, n = space.shape
        return (-1, STEPS, 1 + m * n), (-1, 2)
