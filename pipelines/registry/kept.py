"""How many versions of a registered model are kept, where `mlflow.kept_versions` says so; the others are removed."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from configs.settings import Settings, load
from pipelines.deployment import deployment_name
from pipelines.registry.artifacts import RegistryError
from pipelines.registry.forecasters import PEAKS
from pipelines.registry.overview import job_and_kind
from pipelines.registry.owned import KIND, TRAINED_BY, TRAINED_IN, deployment
from pipelines.registry.tracking import all_pages, as_registry_error, open_store
from pipelines.registry.way_back import ROLLED_BACK

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities.model_registry import ModelVersion

YOUNG_S = 86_400.0
"""Wall seconds for which a version is kept at least, beside those that a person is given to approve of it."""
SAID = 20
"""Refusals at most that are named one by one."""
_GONE = ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE", "INVALID_STATE")
"""What MLflow says of a run or a model that was deleted before, as where a task was broken off."""


def trim_models(settings: Settings | None = None) -> dict[str, int]:
    """Remove surplus versions (`surplus`) of the models that this deployment trains; returns how many, by model.

    With a version go its files and, unless another version names it, its run. Both are what MLflow calls deleted: they
    can be restored until `mlflow gc` frees their room. Without `mlflow.kept_versions` nothing is asked or removed. One
    that MLflow refuses to delete keeps no other from it, and is named at the end.

    Raises:
        RegistryError: MLflow does not answer; what was removed before that is. Or it refuses to delete some versions;
            the others are removed.
        SettingsError, OSError: a setting is wrong; `var/mlflow`, or the deployment's name, cannot be written.
    """
    settings = settings or load()
    keep = settings.mlflow.kept_versions
    if keep is None:
        return {}
    client, uri, _ = open_store(settings)
    ours = {TRAINED_BY: deployment(settings), TRAINED_IN: deployment_name(settings.var_dir)}
    since_ms = 1000 * (time.time() - YOUNG_S - settings.training.approval_s)
    with as_registry_error(f"MLflow at {uri}"):
        models = [one for one in all_pages(client.search_registered_models, "") if job_and_kind(one.name)]
        versions = {one.name: list(all_pages(client.search_model_versions, f"name = '{one.name}'")) for one in models}
        found = {
            one.name: surplus(versions[one.name], one.aliases, keep, since_ms)
            for one in models if ours.items() <= one.tags.items()
        }  # fmt: skip
        going = {(one.name, one.version) for each in found.values() for one in each}
        stay = [one for each in versions.values() for one in each if (one.name, one.version) not in going]
        named = {run for one in stay for run in (one.run_id, one.tags.get(PEAKS)) if run}
        refused = [said for each in found.values() for one in each if (said := _refusal(client, one, named))]
    if refused:
        raise RegistryError("\n".join([
            f"MLflow at {uri} refused to remove {len(refused)} versions beyond mlflow.kept_versions={keep}; the others "
            "are gone. Once this user may delete them, the next run does. It says of them:",
            *refused[:SAID],
        ]))  # fmt: skip
    return {name: len(each) for name, each in found.items() if each}


def surplus(
    versions: Sequence[ModelVersion], aliases: Mapping[str, Any], keep: int, since_ms: float
) -> list[ModelVersion]:  # fmt: skip
    """Return the versions of a model that are beyond the newest `keep`, oldest first.

    Neither counted nor returned are those with an alias of any name, those of a rollback, and those of others.

    Args:
        versions: all that there are.
        aliases: of the model, and the version that each points to.
        keep: how many are kept.
        since_ms: of what was registered later, epoch milliseconds, nothing is returned.
    """
    needed = {str(version) for version in aliases.values()}
    for one in versions:
        if back := one.tags.get(ROLLED_BACK):
            needed |= {str(one.version), back}
    free = [one for one in versions if KIND in one.tags and str(one.version) not in needed]
    newest = sorted(free, key=lambda one: -int(one.version))
    return [one for one in newest[keep:] if one.creation_timestamp < since_ms][::-1]


def model_id_of(version: ModelVersion) -> str | None:
    """Return MLflow's id of the logged model that a version is, by its source; None where that is something else."""
    scheme, _, model = (version.source or "").partition(":/")
    return model if scheme == "models" and model.startswith("m-") else None


def _refusal(client: MlflowClient, version: ModelVersion, named: Collection[str]) -> str:
    """Remove a version; returns what MLflow says where it refuses to, else nothing."""
    from mlflow.exceptions import MlflowException

    try:
        _remove(client, version, named)
    except MlflowException as error:
        client.get_registered_model(version.name)  # one that is away is not waited for with each of the others
        return f"{version.name} version {version.version}: {error.message.splitlines()[0]}"
    return ""


def _remove(client: MlflowClient, version: ModelVersion, named: Collection[str]) -> None:
    """The version is the last, so that what is broken off is gone on with."""
    from mlflow.exceptions import MlflowException

    for delete, what in _parts(client, version, named):
        try:
            delete(what)
        except MlflowException as error:
            if error.error_code not in _GONE:
                raise
    client.delete_model_version(version.name, version.version)


def _parts(client: MlflowClient, version: ModelVersion, named: Collection[str]) -> Iterator[tuple[Any, str]]:
    if version.run_id and version.run_id not in named:
        yield client.delete_run, version.run_id
    if (model := model_id_of(version)) is not None:
        yield client.delete_logged_model, model
