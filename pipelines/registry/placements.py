"""The registered placement networks of every topology: JSON, so that nothing that is loaded can run code."""

from __future__ import annotations

import json
from collections.abc import Mapping

from models.placement.learned.described import PlacementModelError, describe, revive, shapes_of
from models.placement.learned.queries import QuerySpace
from models.placement.learned.training import PlacementModel
from pipelines.registry.aliases import CHALLENGER
from pipelines.registry.artifacts import MismatchError, log_json_model, make_signature
from pipelines.registry.runs import TrackedRun
from pipelines.registry.store import ModelStore

PLACEMENT_FILE = "placement.json"


class PlacementRegistry(ModelStore):
    """Placement networks under the name `<topology>-placement`."""

    what = "placement"
    made_by = "plan_placement"

    def load(self, name: str, space: QuerySpace, version: str | None = None) -> PlacementModel:
        """Load a topology's placement network from the registry.

        Args:
            name: of the topology.
            space: placements of its queries, for which the network has to be.
            version: its number as text; None for the champion.

        Raises:
            MismatchError: it is a network of other queries or clusters, or none.
            RegistryError: no such topology or version, no champion, or MLflow does not answer.
            ValueError: no model can have the name (MessageError).
            OSError: a file cannot be downloaded or read.
        """
        folder, what = self.download(name, version)
        files = sorted(folder.rglob(PLACEMENT_FILE))
        if not files:
            raise MismatchError(f"{what} has no {PLACEMENT_FILE}: it was not registered by Tidecast. Train one.")
        try:
            return revive(json.loads(files[0].read_text()), space)
        except (PlacementModelError, ValueError) as error:
            raise MismatchError(f"{what}: {error}") from None

    def register(
        self, run: TrackedRun, name: str, model: PlacementModel, space: QuerySpace, card: str, tags: Mapping[str, str]
    ) -> str:
        """Log a network to a running run and register it as `challenger`; returns the new version, e.g. "3".

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
        features, moves = shapes_of(space)
        signature = make_signature({None: (-1, features)}, {None: (-1, moves)})
        model_id = log_json_model(
            describe(model, space), PLACEMENT_FILE, signature, name="placement", tags=dict(tags), model_type="agent"
        )
        return self.register_version(run, name, model_id, card, {**tags, "kind": "dqn"}, CHALLENGER)
