"""Registered models of every job, their versions, aliases and verdicts, in one MLflow store."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from configs.settings import Settings
from pipelines.registry.artifacts import RegistryError
from pipelines.registry.runs import TrackedRun
from pipelines.registry.tracking import opened, refused
from tidecast.fields import job_name

if TYPE_CHECKING:
    from mlflow.entities.model_registry import ModelVersion

CHAMPION, CHALLENGER, PREVIOUS = "champion", "challenger", "previous"
_VERDICT = "verdict"


class ModelStore:
    """Runs and registered models of one MLflow store; a subclass says which kind of models.

    Methods for a job raise `MessageError` where no job can have its name. An error of MLflow comes as `RegistryError`
    from what reads, where its `Raises` says so, and as MlflowException from what writes.
    """

    what = "model"
    """Ends the name of the registered model."""
    made_by = ""
    """The DAG that registers them."""

    def __init__(self, settings: Settings) -> None:
        """Open the store; an embedded one is created on first use.

        Raises:
            RegistryError: there is none at the address, or it does not answer.
        """
        self._client, self._uri, self._experiment_id = opened(settings)

    @classmethod
    def model_name(cls, job: str) -> str:
        """Return the name under which a job's models are registered, `<job>-<what>`.

        Raises:
            MessageError: no job can have the name.
        """
        return f"{job_name(job)}-{cls.what}"

    def champion_version(self, job: str) -> str | None:
        """Return the version that the job's alias `champion` points to; None where there is none. A few milliseconds.

        Raises:
            RegistryError: MLflow does not answer.
        """
        return self.version_of(job, CHAMPION)

    def champion_versions(self) -> dict[str, str]:
        """Return the champion's version of every job that has one, by job; one request per thousand models.

        Raises:
            RegistryError: MLflow does not answer.
        """
        ending, found, page = f"-{self.what}", dict[str, str](), None
        while True:
            with refused(f"MLflow at {self._uri}"):
                models = self._client.search_registered_models(f"name LIKE '%{ending}'", 1000, page_token=page)
            found |= {m.name.removesuffix(ending): str(m.aliases[CHAMPION]) for m in models if CHAMPION in m.aliases}
            if not (page := models.token):
                return found

    def version_of(self, job: str, alias: str) -> str | None:
        """Return the version that an alias of the job points to; None where there is no such job or alias.

        Raises:
            RegistryError: MLflow does not answer.
        """
        from mlflow.exceptions import MlflowException

        with refused(f"MLflow at {self._uri}"):
            try:
                return str(self._client.get_model_version_by_alias(self.model_name(job), alias).version)
            except MlflowException as error:
                if error.error_code not in ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE"):
                    raise
        return None

    def aliases(self, job: str) -> dict[str, list[str]]:
        """Return the names of the aliases `champion`, `challenger`, `previous` that point to a version, by version.

        Versions without an alias are left out; a request for each alias.

        Raises:
            RegistryError: MLflow does not answer.
        """
        found: dict[str, list[str]] = {}
        for alias in (CHAMPION, CHALLENGER, PREVIOUS):
            if version := self.version_of(job, alias):
                found.setdefault(version, []).append(alias)
        return found

    def set_champion(self, job: str, version: str) -> None:
        """Point the job's alias `champion` at a version, and `previous` at the champion until now.

        Nothing changes where the version is the champion already.

        Raises:
            RegistryError: MLflow does not answer.
            MlflowException: no such version; nothing has changed.
        """
        before = self.champion_version(job)
        if before == version:
            return
        self._client.get_model_version(self.model_name(job), version)
        if before is not None:
            self._client.set_registered_model_alias(self.model_name(job), PREVIOUS, before)
        self._client.set_registered_model_alias(self.model_name(job), CHAMPION, version)

    def roll_back(self, job: str) -> tuple[str, str]:
        """Make the version of the alias `previous` champion again; tags the one that leaves with `rolled_back`.

        `previous` then points to the one that left, so that a second call undoes the first.

        Returns:
            The version that left and the one that is back.

        Raises:
            RegistryError: there is no champion or no other version before it, or MLflow does not answer.
        """
        left, back = self.champion_version(job), self.version_of(job, PREVIOUS)
        if left is None or back is None or left == back:
            served = f"none served before version {left}" if left else "none has served yet"
            raise RegistryError(f"{self.model_name(job)} at {self._uri}: nothing to go back to, {served}.")
        self.set_champion(job, back)
        self.note(job, left, {"rolled_back": "true"})
        return left, back

    def note(self, job: str, version: str, tags: Mapping[str, str]) -> None:
        """Set tags of a version, with a request for each.

        Raises:
            MlflowException: no such version, or MLflow does not answer.
        """
        for key, value in tags.items():
            self._client.set_model_version_tag(self.model_name(job), version, key, value)

    def download(self, job: str, version: str | None = None, into: Path | None = None) -> tuple[Path, str]:
        """Download the files of a version; without one, of the champion.

        Args:
            job: whose version.
            version: its number as text.
            into: folder to copy them to, created where it is missing; by default MLflow chooses one, for an embedded
                store that of the artifacts themselves.

        Returns:
            The folder, and what to call the version in messages.

        Raises:
            RegistryError: no such job or version, no champion, its files are gone, or MLflow does not answer.
            OSError: `into` cannot be made.
        """
        from mlflow.artifacts import download_artifacts

        version = version or self.champion_version(job)
        if version is None:
            raise RegistryError(
                f"job {job!r} has no champion among the {self.what}s at {self._uri}. Run the DAG {self.made_by} once."
            )
        to = None
        if into is not None:
            into.mkdir(parents=True, exist_ok=True)
            to = str(into)
        what, source = f"{self.model_name(job)} version {version}", self._version(job, version).source
        with refused(f"{what} at {self._uri}"):
            files = download_artifacts(artifact_uri=source, tracking_uri=self._uri, dst_path=to)
        return Path(files), what

    def tags(self, job: str, version: str) -> dict[str, str]:
        """Return the tags of a version.

        Raises:
            RegistryError: no such job or version, or MLflow does not answer.
        """
        return dict(self._version(job, version).tags)

    def download_of(self, run_id: str, path: str, into: Path) -> None:
        """Download an artifact of a run into a folder, which is created where it is missing; below it the path is kept.

        Raises:
            RegistryError: no such run or artifact, or it cannot be written.
        """
        from mlflow.artifacts import download_artifacts
        from mlflow.exceptions import MlflowException

        try:
            download_artifacts(run_id=run_id, artifact_path=path, dst_path=str(into), tracking_uri=self._uri)
        except (MlflowException, OSError) as error:
            raise RegistryError(f"run {run_id} at {self._uri} has no {path}: {error}") from None

    def _version(self, job: str, version: str) -> ModelVersion:
        with refused(f"{self.model_name(job)} version {version} at {self._uri}"):
            return self._client.get_model_version(self.model_name(job), version)

    @contextmanager
    def run(self, job: str, name: str) -> Iterator[TrackedRun]:
        """Start a run and make it the active one; it ends as finished, or as failed where the body raises.

        Args:
            job: becomes the run's tag `job`.
            name: of the run.

        Raises:
            MlflowException: MLflow does not answer.
        """
        import mlflow

        with mlflow.start_run(experiment_id=self._experiment_id, run_name=name, tags={"job": job}) as active:
            yield TrackedRun(self._client, active.info.run_id)

    def keep(
        self, run: TrackedRun, job: str, model_id: str, card: str, tags: Mapping[str, str], alias: str | None = None
    ) -> str:
        """Register a model that a run has logged as a new version of the job's model; returns the version.

        Args:
            run: that logged it.
            job: whose model; the registered model is created where it is missing.
            model_id: MLflow's id of the logged model.
            card: Markdown, becomes the version's description.
            tags: of the version.
            alias: to point to the new version.

        Raises:
            MlflowException: no such logged model, or MLflow does not answer.
        """
        from mlflow.exceptions import MlflowException

        name = self.model_name(job)
        try:
            self._client.create_registered_model(name, description=f"Every {self.what} of {job}.")
        except MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise
        made = self._client.create_model_version(
            name, f"models:/{model_id}", run_id=run.id, model_id=model_id, description=card, tags=dict(tags)
        )
        if alias is not None:
            self._client.set_registered_model_alias(name, alias, made.version)
        return str(made.version)

    def figures(self, run_id: str) -> tuple[dict[str, float], dict[str, str], dict[str, str]]:
        """Return the newest metrics, the parameters and the tags of a run, each by name.

        Raises:
            RegistryError: no such run, or MLflow does not answer.
        """
        with refused(f"run {run_id!r} at {self._uri}"):
            data = self._client.get_run(run_id).data
        return dict(data.metrics), dict(data.params), dict(data.tags)

    def keep_verdict(self, job: str, run_id: str, verdict: Mapping[str, Any]) -> None:
        """Write a verdict as JSON to the tag `verdict` of run and registered model, and its reason to the version's.

        Args:
            job: whose model; must be registered.
            run_id: that trained the challenger.
            verdict: JSON values with `version` (None: no version is tagged) and `reason`.

        Raises:
            MlflowException: no such run, model or version, or MLflow does not answer.
        """
        text = json.dumps(verdict)
        self._client.set_tag(run_id, _VERDICT, text)
        self._client.set_registered_model_tag(self.model_name(job), _VERDICT, text)
        if version := verdict.get("version"):
            self._client.set_model_version_tag(self.model_name(job), version, _VERDICT, str(verdict["reason"]))

    def last_verdict(self, job: str) -> dict[str, Any] | None:
        """Return the job's newest verdict as `keep_verdict` wrote it; None without one, or if MLflow fails."""
        from mlflow.exceptions import MlflowException

        try:
            text = self._client.get_registered_model(self.model_name(job)).tags.get(_VERDICT)
        except MlflowException:
            return None
        return json.loads(text) if text else None

    def versions(self, job: str) -> list[ModelVersion]:
        """List the registered versions of the job's models, oldest first; empty where there are none.

        Raises:
            MlflowException: MLflow does not answer.
        """
        found = self._client.search_model_versions(f"name = '{self.model_name(job)}'")
        return sorted(found, key=lambda v: int(v.version))
