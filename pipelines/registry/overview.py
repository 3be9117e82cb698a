"""All registered models at a glance: of every job which versions have an alias, since when, and how right they were."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from configs.settings import Settings
from pipelines.registry.agents import AgentRegistry
from pipelines.registry.forecasters import Registry
from pipelines.registry.placements import PerformanceRegistry, PlacementRegistry
from pipelines.registry.tracking import as_registry_error, open_store

if TYPE_CHECKING:
    from mlflow import MlflowClient

KINDS = tuple(store.what for store in (Registry, AgentRegistry, PlacementRegistry, PerformanceRegistry))
"""What models are registered of a job, as their names end."""
PAGE = 1000
"""Models or versions in an answer of MLflow."""


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


def read_overview(settings: Settings) -> list[RegisteredModel]:
    """Read what is registered of all jobs, by name; a request per 1000 models, and per 1000 versions.

    Raises:
        RegistryError: there is no store at the address, or it does not answer.
    """
    client, uri, _ = open_store(settings)
    with as_registry_error(f"MLflow at {uri}"):
        aliases = {one.name: dict(one.aliases) for one in _pages(client.search_registered_models, "")}
        by_name: dict[str, list[Any]] = {name: [] for name in aliases if _split(name) is not None}
        for version in _versions(client):
            if version.name in by_name:
                by_name[version.name].append(version)
    return [_model(name, aliases[name], versions) for name, versions in sorted(by_name.items())]


def _versions(client: MlflowClient) -> Iterator[Any]:
    for what in KINDS:
        yield from _pages(client.search_model_versions, f"name LIKE '%-{what}'")


def _pages(search: Any, condition: str) -> Iterator[Any]:
    page = None
    while True:
        found = search(condition, max_results=PAGE, page_token=page)
        yield from found
        if not (page := found.token):
            return


def _split(name: str) -> tuple[str, str] | None:
    """Job and kind of a registered model of ours; None for another's."""
    job, _, what = name.rpartition("-")
    return (job, what) if job and what in KINDS else None


def _model(name: str, aliases: Mapping[str, Any], versions: list[Any]) -> RegisteredModel:
    job, what = _split(name) or ("", "")
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
