"""All registered models at a glance: of every job which versions have an alias, since when, and how right they were."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from configs.settings import Settings
from pipelines.registry.agents import AgentRegistry
from pipelines.registry.forecasters import Registry
from pipelines.registry.placements import PerformanceRegistry, PlacementRegistry
from pipelines.registry.tracking import all_pages, as_registry_error, open_store
from tidecast.fields import JOB_NAME

if TYPE_CHECKING:
    from mlflow import MlflowClient

KINDS = tuple(store.what for store in (Registry, AgentRegistry, PlacementRegistry, PerformanceRegistry))
"""What models are registered of a job, as their names end."""
FEW = 20
"""Changed models at most that are asked for one by one; of more, the versions of all models take fewer requests."""
WHOLE_S = 3600.0
"""Wall seconds after which all is read anew, for a version's tag that changes does not change its model."""
_Mark = tuple[Any, Any, Any]  # of a registered model when it changed last, its aliases and its tags


class RegisteredVersion(NamedTuple):
    """A version of a registered model.

    Attributes:
        version: its number as text.
        made_at: when it was registered, epoch seconds.
        aliases: that point to it.
        tags: of it: `kind`, `live.wape` and `live.n` (how right it was on the running job), `verdict` and others.
    """

    version: str
    made_at: float
    aliases: tuple[str, ...]
    tags: Mapping[str, str]


class RegisteredModel(NamedTuple):
    """A registered model of a job.

    Attributes:
        name: in the registry.
        job: whose it is.
        what: one of `KINDS`.
        many: versions that there are.
        versions: those with an alias and the newest one, newest first.
    """

    name: str
    job: str
    what: str
    many: int
    versions: tuple[RegisteredVersion, ...]


class Overview:
    """What is registered of all jobs; of models that have not changed since the last look, what was read then."""

    def __init__(self, settings: Settings) -> None:
        """Take where MLflow is; nothing is asked of it yet."""
        self._settings = settings
        self._client: MlflowClient | None = None
        self._uri = ""
        self._known: dict[str, tuple[_Mark, RegisteredModel]] = {}
        self._whole_at = -math.inf

    def read(self) -> Sequence[RegisteredModel]:
        """Read all models by name: a request per 1000 models, and one or more per model that has changed.

        A version, an alias or a verdict that is new shows at once; a version's tag without any of them, as one that a
        person sets, within `WHOLE_S`, when all is read anew: a request per 1000 versions then.

        Raises:
            RegistryError: there is no store at the address, or it does not answer.
        """
        if self._client is None:
            self._client, self._uri, _ = open_store(self._settings)
        if time.monotonic() - self._whole_at >= WHOLE_S:
            self._known, self._whole_at = {}, time.monotonic()
        with as_registry_error(f"MLflow at {self._uri}"):
            models = {
                one.name: one for one in all_pages(self._client.search_registered_models, "") if job_and_kind(one.name)
            }
            marks = {name: (one.last_updated_timestamp, one.aliases, one.tags) for name, one in models.items()}
            changed = {name for name in models if name not in self._known or self._known[name][0] != marks[name]}
            versions = _versions(self._client, changed)
        self._known = {
            name: (marks[name], _model(name, models[name].aliases, versions[name]))
            if name in changed else self._known[name]
            for name in sorted(models)
        }  # fmt: skip
        return [model for _, model in self._known.values()]


def _versions(client: MlflowClient, names: Collection[str]) -> dict[str, list[Any]]:
    """All versions of each of these models."""
    each = [f"name = '{name}'" for name in names]
    found: dict[str, list[Any]] = {name: [] for name in names}
    for condition in each if len(each) <= FEW else [f"name LIKE '%-{what}'" for what in KINDS]:
        for version in all_pages(client.search_model_versions, condition):
            if version.name in found:
                found[version.name].append(version)
    return found


def job_and_kind(name: str) -> tuple[str, str] | None:
    """Return job and kind of a registered model of ours by its name; None for another's."""
    job, _, what = name.rpartition("-")
    return (job, what) if JOB_NAME.pattern.fullmatch(job) and what in KINDS else None


def _model(name: str, aliases: Mapping[str, Any], versions: list[Any]) -> RegisteredModel:
    job, what = job_and_kind(name) or ("", "")
    named: dict[str, list[str]] = {}
    for alias, version in aliases.items():
        named.setdefault(str(version), []).append(alias)
    newest = sorted(versions, key=lambda one: -int(one.version))
    kept = [one for place, one in enumerate(newest) if place == 0 or str(one.version) in named]
    return RegisteredModel(
        name, job, what, len(versions),
        tuple(
            RegisteredVersion(
                str(one.version), one.creation_timestamp / 1000, tuple(sorted(named.get(str(one.version), ()))),
                dict(one.tags),
            )
            for one in kept
        ),
    )  # fmt: skip
