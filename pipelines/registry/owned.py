"""Registered models by their names in one MLflow store, and whose they are, for an MLflow may be shared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from configs.settings import Settings
from pipelines.deployment import NAME, deployment_name
from pipelines.registry.artifacts import ForeignModelError
from pipelines.registry.tracking import all_pages, as_registry_error, open_store
from tidecast.fields import job_name

if TYPE_CHECKING:
    from mlflow.entities.model_registry import ModelVersion
    from mlflow.exceptions import MlflowException

TRAINED_BY, TRAINED_IN = "trained_by", "trained_in"
"""Tags of a registered model: topics and experiment of the deployment that trains it, and the deployment's name."""
KIND = "kind"
"""Tag that every version has which Tidecast registers, of any release."""


class Champion(NamedTuple):
    """The version that serves a job.

    Attributes:
        version: its number, e.g. "3".
        changed_ms: when its model got or lost a version last, epoch milliseconds. It tells two of one number apart, as
            where the registry was made anew.
    """

    version: str
    changed_ms: int = 0


class OwnedModels:
    """Names, tags and versions of registered models; a subclass says which kind of models."""

    what = "model"  # ends the name of the registered model

    def __init__(self, settings: Settings) -> None:
        """Open the store; an embedded one is created on first use.

        Raises:
            RegistryError: there is none at the address, or it does not answer.
        """
        self._client, self._uri, self._experiment_id = open_store(settings)
        self._deployment, self._var = deployment(settings), settings.var_dir

    @classmethod
    def model_name(cls, job: str) -> str:
        """Return the name under which a job's models are registered, `<job>-<what>`.

        Raises:
            MessageError: no job can have the name.
        """
        return f"{job_name(job)}-{cls.what}"

    def model_tags(self, job: str) -> dict[str, str]:
        """Return the tags of the job's registered model; empty where there is none.

        Raises:
            RegistryError: MLflow does not answer.
            MessageError: no job can have the name.
        """
        from mlflow.exceptions import MlflowException

        with as_registry_error(f"MLflow at {self._uri}"):
            try:
                return dict(self._client.get_registered_model(self.model_name(job)).tags)
            except MlflowException as error:
                if not self._has_none(job, error):
                    raise
        return {}

    def newest_version(self, job: str) -> ModelVersion | None:
        """Return the version of the job's models that was registered last; None where there is none.

        Raises:
            RegistryError: MLflow does not answer.
            MessageError: no job can have the name.
        """
        with as_registry_error(f"MLflow at {self._uri}"):
            of_job, newest_first = f"name = '{self.model_name(job)}'", ["version_number DESC"]
            return next(iter(self._client.search_model_versions(of_job, 1, newest_first)), None)

    def made_at(self, job: str, version: str) -> float | None:
        """Return when a version was registered, epoch seconds; None where the job's models have none of this text.

        Raises:
            RegistryError: MLflow does not answer.
            MessageError: no job can have the name.
        """
        from mlflow.exceptions import MlflowException

        with as_registry_error(f"MLflow at {self._uri}"):
            try:
                found = self._client.get_model_version(self.model_name(job), version)
            except MlflowException as error:
                if not self._has_none(job, error):
                    raise
                return None
        return found.creation_timestamp / 1000 if str(found.version) == version else None

    def versions(self, job: str) -> list[ModelVersion]:
        """List the registered versions of the job's models, oldest first; empty where there are none.

        Raises:
            RegistryError: MLflow does not answer.
            MessageError: no job can have the name.
        """
        with as_registry_error(f"MLflow at {self._uri}"):
            found = [*all_pages(self._client.search_model_versions, f"name = '{self.model_name(job)}'")]
        return sorted(found, key=lambda v: int(v.version))

    def _has_none(self, job: str, error: MlflowException) -> bool:
        """Whether an answer says that there is no such model, version or alias.

        MLflow forbids who has no rights on all models to ask for one that nobody has made, and lists what there is to
        whoever may see it.
        """
        if error.error_code == "PERMISSION_DENIED":
            return not self._client.search_registered_models(f"name = '{self.model_name(job)}'", 1)
        return error.error_code in ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE")

    def refuse_foreign(self, job: str, trains: bool = False) -> dict[str, str]:
        """Return the tags of the job's model, or raise where it is not this deployment's to write to; writes nothing.

        One that an earlier release registered names no deployment: it is that of whoever registers a version next.

        Args:
            job: whose model.
            trains: whether a version is to be trained: then of two deployments with the same topics and experiment,
                as by default, the other one is refused, too, by the name in its `var`; what a person orders is not.

        Returns:
            Its tags; empty where there is no model of the name, or one without any.

        Raises:
            ForeignModelError: somebody else registered its versions, or another deployment trains it.
            RegistryError: MLflow does not answer.
            MessageError: no job can have the name.
            OSError: the deployment's name cannot be read or written.
        """
        tags = self.model_tags(job)
        if (owner := tags.get(TRAINED_BY)) == self._deployment:
            if trains and tags.get(TRAINED_IN) not in (None, own := deployment_name(self._var)):
                other = f"is trained by another deployment, {tags[TRAINED_IN]}"
                raise ForeignModelError(f"{self.model_name(job)} at {self._uri} {other} {_second(own, self._var)}")
            return tags
        versions = [] if owner else [dict(one.tags) for one in self.versions(job)]
        if why := foreign(owner, versions, self._deployment):
            raise ForeignModelError(f"{self.model_name(job)} at {self._uri} {why} Nothing was written to it.")
        return tags


def _second(own: str, var: Path) -> str:
    return (
        f"(this is {own}), with the same kafka.prefix and mlflow.experiment: each would replace what the other serves. "
        "Nothing was written to it. Give one of them another prefix or experiment, and its jobs other names; where that"
        f" one is gone, or was this one, write its name into {var / NAME}."
    )


def deployment(settings: Settings) -> str:
    """Return what tells one deployment from another that shares its MLflow: its topic of metrics, its experiment."""
    return f"topic {settings.kafka.topic('metrics')}, experiment {settings.mlflow.experiment}"


def foreign(owner: str | None, versions: Sequence[Mapping[str, str]], ours: str) -> str:
    """Say why a registered model is somebody else's, and what helps; empty where it is ours, or new.

    Args:
        owner: the deployment that trains it, by its tag; None for a model of an earlier release, or of others.
        versions: tags of its versions; read where there is no owner.
        ours: this deployment.
    """
    if owner not in (None, ours):
        return (
            f"is trained by another deployment ({owner}; this is {ours}): each would replace what the other serves. "
            "Give the jobs different names, or each deployment an MLflow of its own (mlflow.tracking_uri); where the "
            f"other one is gone, or was this one, set the model's tag {TRAINED_BY} to this one in MLflow."
        )
    if owner is None and versions and not any(KIND in tags for tags in versions):
        return (
            f"is no model of Tidecast: none of its {len(versions)} versions was registered by it. Rename that one in "
            "MLflow, or give the job another name."
        )
    return ""
