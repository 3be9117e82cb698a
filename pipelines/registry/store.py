"""Registered models of every job in one MLflow store: runs that train them, their files and verdicts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pipelines.deployment import deployment_name
from pipelines.registry.aliases import AliasStore
from pipelines.registry.artifacts import RegistryError, UnreadableError
from pipelines.registry.owned import TRAINED_BY, TRAINED_IN
from pipelines.registry.runs import TrackedRun
from pipelines.registry.tracking import as_registry_error, as_training_error

_VERDICT = "verdict"
_MOST_TEXT = 5000  # characters of a description: MLflow makes a column of as many, and PostgreSQL refuses more


class ModelStore(AliasStore):
    """Runs, files and verdicts of registered models, beside their versions and aliases."""

    made_by = ""  # the DAG that registers them

    def download(self, job: str, version: str | None, into: Path) -> tuple[Path, str]:
        """Download the files of a registered version.

        Args:
            job: whose version.
            version: its number as text; None for the champion (the version that serves).
            into: folder to copy them to, created where it is missing: in one of MLflow's choice they would stay.

        Returns:
            The folder, and the version's name for messages, e.g. "orders-forecaster version 3".

        Raises:
            UnreadableError: its files are gone.
            RegistryError: no such job or version, no champion, or MLflow does not answer.
            MessageError: no job can have the name.
            OSError: `into` cannot be made, or a file not be copied.
        """
        from mlflow.artifacts import download_artifacts
        from mlflow.exceptions import MlflowException

        version = version or self.champion_version(job)
        if version is None:
            raise RegistryError(
                f"job {job!r} has no champion among the {self.what}s at {self._uri}. Run the DAG {self.made_by} once."
            )
        into.mkdir(parents=True, exist_ok=True)
        what, source = f"{self.model_name(job)} version {version}", self._version(job, version).source
        with as_registry_error(f"{what} at {self._uri}"):
            try:
                files = download_artifacts(artifact_uri=source, tracking_uri=self._uri, dst_path=str(into))
            except MlflowException as error:
                if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                    raise
                hint = f"Run the DAG {self.made_by} again."
                raise UnreadableError(f"{what} at {self._uri}: its files are gone. {hint} {error.message}") from None
        return Path(files), what

    def download_run_artifact(self, run_id: str, path: str, into: Path) -> None:
        """Download an artifact of a run to `<into>/<path>`, in place of a file there.

        Args:
            run_id: MLflow's id of the run.
            path: of the artifact in the run.
            into: folder; created where it is missing.

        Raises:
            RegistryError: no such run or artifact, MLflow does not answer, or it cannot be written.
        """
        from mlflow.artifacts import download_artifacts
        from mlflow.exceptions import MlflowException

        try:
            download_artifacts(run_id=run_id, artifact_path=path, dst_path=str(into), tracking_uri=self._uri)
        except (MlflowException, OSError) as error:
            raise RegistryError(f"run {run_id} at {self._uri} has no {path}: {error}") from None

    @contextmanager
    def run(self, job: str, name: str) -> Iterator[TrackedRun]:
        """Start a run and make it the active one; it ends as finished, or as failed where the body raises.

        Args:
            job: becomes the run's tag `job`.
            name: of the run.

        Raises:
            RegistryError: MLflow does not answer, at the begin or in the body; its store is full or read-only.
        """
        import mlflow

        with (
            as_training_error(self._uri),
            mlflow.start_run(experiment_id=self._experiment_id, run_name=name, tags={"job": job}) as active,
        ):
            yield TrackedRun(self._client, active.info.run_id)

    @contextmanager
    def training(self, job: str, name: str) -> Iterator[TrackedRun]:
        """Start a run as `run` does, where the job's model is this deployment's to write to.

        Raises:
            ForeignModelError: somebody else registered the model of that name, or another deployment trains it.
            RegistryError: as `run`.
            MessageError: no job can have the name.
        """
        self.refuse_foreign(job, trains=True)
        with self.run(job, name) as run:
            yield run

    def last_trained(self) -> dict[str, float]:
        """Return {job: Unix seconds at which its newest training began}, of the newest 1000 trainings; one request.

        Raises:
            RegistryError: MLflow does not answer.
        """
        kind = f"tags.kind = '{self.what}'"
        with as_registry_error(f"MLflow at {self._uri}"):
            runs = self._client.search_runs([self._experiment_id], kind, max_results=1000, order_by=["start_time DESC"])
        return {run.data.tags.get("job", ""): run.info.start_time / 1000 for run in reversed(runs)}

    def register_version(
        self, run: TrackedRun, job: str, model_id: str, card: str, tags: Mapping[str, str], alias: str | None = None
    ) -> str:
        """Register a model that a run has logged as a new version of the job's model; returns the version, e.g. "3".

        Args:
            run: that logged it.
            job: whose model; the registered model is created where it is missing.
            model_id: MLflow's id of the logged model.
            card: Markdown, becomes the version's description; cut at 5,000 characters.
            tags: of the version.
            alias: to point to the new version.

        Raises:
            ForeignModelError: the model is another deployment's, or somebody else's; nothing is written to it.
            MlflowException: no such logged model, or MLflow does not answer, maybe after the version is made.
            MessageError: no job can have the name.
        """
        from mlflow.exceptions import MlflowException

        name, known = self.model_name(job), self.refuse_foreign(job, trains=True)
        own = {TRAINED_BY: self._deployment, TRAINED_IN: deployment_name(self._var)}
        if not known:
            try:
                self._client.create_registered_model(name, own, f"Every {self.what} of {job}.")
                known = own
            except MlflowException as error:
                if error.error_code != "RESOURCE_ALREADY_EXISTS":
                    raise
        for key, value in own.items():
            if known.get(key) != value:
                self._client.set_registered_model_tag(name, key, value)
        made = self._client.create_model_version(
            name, f"models:/{model_id}", run_id=run.id, model_id=model_id, description=_shortened(card), tags=dict(tags)
        )
        if alias is not None:
            self._client.set_registered_model_alias(name, alias, made.version)
        return str(made.version)

    def figures(self, run_id: str) -> tuple[dict[str, float], dict[str, str], dict[str, str]]:
        """Return the newest metrics, the parameters and the tags of a run, each by name.

        Raises:
            RegistryError: no such run, or MLflow does not answer.
        """
        with as_registry_error(f"run {run_id!r} at {self._uri}"):
            data = self._client.get_run(run_id).data
        return dict(data.metrics), dict(data.params), dict(data.tags)

    def write_verdict(self, job: str, run_id: str, verdict: Mapping[str, Any]) -> None:
        """Store the result of comparing a challenger with the champion (the version that serves), as tags `verdict`.

        The run and the registered model get it as JSON; the version gets its reason. Earlier ones are replaced, but for
        that of a run which began later: the model keeps it, also where a task of an old run is repeated.

        Args:
            job: whose model; must be registered.
            run_id: the run that trained the challenger.
            verdict: JSON values; read are `version` (of the challenger; None tags no version) and `reason`.

        Raises:
            RegistryError, MlflowException: no such run, model or version, or MLflow does not answer.
            KeyError: a version but no `reason`; nothing has been tagged.
            TypeError: a value cannot be written as JSON.
            MessageError: no job can have the name.
        """
        text = json.dumps(verdict)
        if version := verdict.get("version"):
            self._client.set_model_version_tag(self.model_name(job), version, _VERDICT, str(verdict["reason"]))
        # After the version, for whoever looks what has changed sees it by the model (`Overview`); the run is the last,
        # for its verdict is taken as it is by a task that is tried again.
        stands = self.read_verdict(job)
        if stands is None or self._began_ms(stands.get("run", run_id)) <= self._began_ms(run_id):
            self._client.set_registered_model_tag(self.model_name(job), _VERDICT, text)
        self._client.set_tag(run_id, _VERDICT, text)

    def read_verdict(self, job: str) -> dict[str, Any] | None:
        """Return the verdict on the job's newest run, as `write_verdict` got it; None without a model or a verdict.

        Raises:
            RegistryError: MLflow does not answer.
            ValueError: no job can have the name (MessageError), or the stored text is no JSON.
        """
        text = self.model_tags(job).get(_VERDICT)
        return json.loads(text) if text else None

    def _began_ms(self, run_id: str) -> int:
        """When a run began, since the epoch; 0 of one that is gone."""
        from mlflow.exceptions import MlflowException

        try:
            return int(self._client.get_run(run_id).info.start_time)
        except MlflowException as error:
            if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                raise
        return 0


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST_TEXT else f"{text[: _MOST_TEXT - 2]} …"
