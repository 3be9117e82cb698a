"""MLflow for the pipeline: runs, registered forecasters and their aliases; its sole importer.

A forecaster is registered as data only: `forecaster.json` says what it is, and a network's graph and weights lie beside
it as a torch.export archive (`pt2`). Nothing that is loaded can run code.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from configs.settings import Settings
from models.forecast.forecaster import Forecaster

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from mlflow.entities.model_registry import ModelVersion

CHAMPION, CHALLENGER = "champion", "challenger"
_DESCRIPTION = "forecaster.json"
_VERDICT = "verdict"


class RegistryError(RuntimeError):
    """The registry has not what was asked for, or something else under that name; the message says what to do."""


class Run:
    """One training run; whatever it is told is in MLflow when the call returns."""

    def __init__(self, client: Any, run_id: str) -> None:
        self._client = client
        self.id = run_id

    def parameters(self, values: Mapping[str, Any]) -> None:
        """Log parameters, all at once."""
        from mlflow.entities import Param

        self._client.log_batch(self.id, params=[Param(key, str(value)) for key, value in values.items()])

    def metrics(self, values: Mapping[str, float], step: int = 0) -> None:
        """Log figures, all at once."""
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        self._client.log_batch(self.id, metrics=[Metric(key, float(v), now, step) for key, v in values.items()])

    def tags(self, values: Mapping[str, str]) -> None:
        """Set tags, all at once."""
        from mlflow.entities import RunTag

        self._client.log_batch(self.id, tags=[RunTag(key, value) for key, value in values.items()])

    def figure(self, figure: Figure, path: str) -> None:
        """Keep a plot as an artifact."""
        self._client.log_figure(self.id, figure, path)

    def text(self, text: str, path: str) -> None:
        """Keep a text as an artifact."""
        self._client.log_text(self.id, text, path)


class Registry:
    """Runs and registered forecasters of one tracking store."""

    def __init__(self, settings: Settings) -> None:
        """Open the store; an embedded one is created on first use."""
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
        import mlflow

        for name in ("alembic", "mlflow.store.db.utils"):
            logging.getLogger(name).setLevel(logging.WARNING)
        # It looks for pip's version to write into a file that nobody reads, and warns where pip is not installed.
        logging.getLogger("mlflow.utils.environment").setLevel(logging.ERROR)
        folder = settings.var_dir / "mlflow"
        self._uri = settings.mlflow.tracking_uri or f"sqlite:///{folder / 'mlflow.db'}"
        self._experiment = settings.mlflow.experiment
        # A server keeps artifacts itself; for a store that is opened directly they would land in the working folder.
        self._artifacts = None if self._uri.startswith("http") else str(folder / "artifacts")
        folder.mkdir(parents=True, exist_ok=True)
        if (
            self._uri.startswith("sqlite:///")
            and not (home := Path(self._uri.removeprefix("sqlite:///")).parent).is_dir()
        ):
            # MLflow would try again and again for two minutes before it said so.
            raise RegistryError(
                f"mlflow.tracking_uri={self._uri}: there is no folder {home}. Create it or correct the URI."
            )
        mlflow.set_tracking_uri(self._uri)  # else it makes a store of its own in the working folder, even to load
        self._client = mlflow.MlflowClient(self._uri)
        with _alone(folder / "schema.lock"):  # two that create the schema at once would both fail
            self._experiment_id = self._open_experiment()

    @staticmethod
    def model_name(job: str) -> str:
        """The name under which a job's forecasters are registered."""
        return f"{job}-forecaster"

    def champion_version(self, job: str) -> str | None:
        """Version that the job's alias `champion` points to; None where there is none. A few milliseconds."""
        return self.version_of(job, CHAMPION)

    def version_of(self, job: str, alias: str) -> str | None:
        """Version that an alias of the job points to; None where there is none."""
        from mlflow.exceptions import MlflowException

        try:
            return str(self._client.get_model_version_by_alias(self.model_name(job), alias).version)
        except MlflowException as error:
            if error.error_code in ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE"):
                return None
            raise RegistryError(f"MLflow at {self._uri}: {error.message}") from None

    def set_champion(self, job: str, version: str) -> None:
        """Point the job's alias `champion` at a version."""
        self._client.set_registered_model_alias(self.model_name(job), CHAMPION, version)

    def load(self, job: str, version: str | None = None) -> Forecaster:
        """The forecaster of a version; without one, of the champion.

        Raises:
            RegistryError: no such job or version, no champion, or an artifact that is no forecaster of this code.
        """
        from mlflow.artifacts import download_artifacts
        from mlflow.exceptions import MlflowException

        version = version or self.champion_version(job)
        if version is None:
            raise RegistryError(f"job {job!r} has no champion at {self._uri}. Run the DAG retrain_forecaster once.")
        try:
            found = self._client.get_model_version(self.model_name(job), version)
            folder = Path(download_artifacts(artifact_uri=found.source, tracking_uri=self._uri))
        except MlflowException as error:
            raise RegistryError(f"{self.model_name(job)} version {version} at {self._uri}: {error.message}") from None
        return _read(folder, f"{self.model_name(job)} version {version}")

    @contextmanager
    def run(self, job: str, name: str) -> Iterator[Run]:
        """A run that ends as finished, or as failed when the body raises."""
        import mlflow

        with mlflow.start_run(experiment_id=self._experiment_id, run_name=name, tags={"job": job}) as active:
            yield Run(self._client, active.info.run_id)

    def register(
        self, run: Run, job: str, forecaster: Forecaster, card: str, tags: Mapping[str, str], alias: str | None = None
    ) -> str:
        """Register a forecaster out of a running run, with its model card; returns the new version."""
        from mlflow.exceptions import MlflowException

        name = self.model_name(job)
        try:
            self._client.create_registered_model(name, description=f"Forecasters of the arrival rate of {job}.")
        except MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise
        with TemporaryDirectory() as scratch:
            model_id = _write(forecaster, Path(scratch), tags)
        made = self._client.create_model_version(
            name,
            f"models:/{model_id}",
            run_id=run.id,
            model_id=model_id,
            description=card,
            tags={**tags, "kind": forecaster.kind},
        )
        if alias is not None:
            self._client.set_registered_model_alias(name, alias, made.version)
        return str(made.version)

    def figures(self, run_id: str) -> tuple[dict[str, float], dict[str, str], dict[str, str]]:
        """Newest metrics, parameters and tags of a run.

        Raises:
            RegistryError: no such run.
        """
        from mlflow.exceptions import MlflowException

        try:
            data = self._client.get_run(run_id).data
        except MlflowException as error:
            raise RegistryError(f"run {run_id!r} at {self._uri}: {error.message}") from None
        return dict(data.metrics), dict(data.params), dict(data.tags)

    def keep_verdict(self, job: str, run_id: str, verdict: Mapping[str, Any]) -> None:
        """Note on run, version and model how the newest challenger was judged."""
        text = json.dumps(verdict)
        self._client.set_tag(run_id, _VERDICT, text)
        self._client.set_registered_model_tag(self.model_name(job), _VERDICT, text)
        if version := verdict.get("version"):
            self._client.set_model_version_tag(self.model_name(job), version, _VERDICT, str(verdict["reason"]))

    def last_verdict(self, job: str) -> dict[str, Any] | None:
        """How the job's newest challenger was judged; None if none ever was."""
        from mlflow.exceptions import MlflowException

        try:
            text = self._client.get_registered_model(self.model_name(job)).tags.get(_VERDICT)
        except MlflowException:
            return None
        return json.loads(text) if text else None

    def versions(self, job: str) -> list[ModelVersion]:
        """Every registered version of the job's forecasters, oldest first."""
        found = self._client.search_model_versions(f"name = '{self.model_name(job)}'")
        return sorted(found, key=lambda v: int(v.version))

    def _open_experiment(self) -> str:
        from mlflow.exceptions import MlflowException

        try:
            if known := self._client.get_experiment_by_name(self._experiment):
                return str(known.experiment_id)
            return str(self._client.create_experiment(self._experiment, artifact_location=self._artifacts))
        except MlflowException as error:
            raise RegistryError(f"MLflow at {self._uri}: {error.message} Check mlflow.tracking_uri.") from None


class _JsonFlavor:
    """What MLflow asks of a flavour: to save a model that is its description alone."""

    __name__ = "tidecast"

    @staticmethod
    def save_model(path: str, mlflow_model: Any, description: Path, signature: Any) -> None:
        """Write the description and the MLmodel file."""
        folder = Path(path)
        folder.mkdir(parents=True)
        (folder / _DESCRIPTION).write_text(description.read_text())
        mlflow_model.signature = signature
        mlflow_model.add_flavor("tidecast", description=_DESCRIPTION)
        mlflow_model.save(str(folder / "MLmodel"))


def _write(forecaster: Forecaster, scratch: Path, tags: Mapping[str, str]) -> str:
    """Log a forecaster to the active run; returns MLflow's id of the logged model."""
    import numpy as np
    from mlflow.models import Model, ModelSignature
    from mlflow.types import Schema, TensorSpec

    from models.forecast.kinds import describe, shapes
    from models.forecast.network import Network

    description = scratch / _DESCRIPTION
    description.write_text(json.dumps(describe(forecaster)))
    common = {"name": forecaster.kind, "tags": dict(tags), "model_type": "forecaster"}
    if not isinstance(forecaster, Network):
        reads = Schema([TensorSpec(np.dtype("float64"), (-1,))])  # a history, records/s per step
        says = Schema([TensorSpec(np.dtype("float64"), (forecaster.horizon, len(forecaster.levels)))])
        signature = ModelSignature(reads, says)
        return str(Model.log(None, _JsonFlavor(), description=description, signature=signature, **common).model_id)
    import mlflow.pytorch

    inputs, outputs = shapes(forecaster)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The tensor attributes .*_flat_weights")  # they are parameters too
        info = mlflow.pytorch.log_model(
            forecaster.module,
            # two in the batch: one would be frozen
            input_example=tuple(np.zeros((2, *shape[1:]), dtype=np.float32) for shape in inputs.values()),
            signature=ModelSignature(_schema(inputs), _schema(outputs)),
            serialization_format="pt2",
            pip_requirements=_requirements("torch", "numpy"),  # else MLflow infers them, for many seconds
            extra_files=[str(description)],
            validate_serving_input=False,
            **common,
        )
    return str(info.model_id)


def _read(folder: Path, what: str) -> Forecaster:
    from mlflow.models import Model

    from models.forecast.kinds import KindError, revive, shapes
    from models.forecast.network import Network
    from models.forecast.series import SeriesError

    files = sorted(folder.rglob(_DESCRIPTION))
    if not files:
        raise RegistryError(f"{what} has no {_DESCRIPTION}: it was not registered by Tidecast. Register a forecaster.")
    described = json.loads(files[0].read_text())
    flavours = Model.load(str(folder)).flavors
    try:
        if "pytorch" not in flavours:
            return revive(described)
        import mlflow.pytorch

        forecaster = revive(described, mlflow.pytorch.load_model(str(folder)))
    except (KindError, SeriesError) as error:
        raise RegistryError(f"{what}: {error}") from None
    signature = Model.load(str(folder)).signature
    assert isinstance(forecaster, Network)
    expected = shapes(forecaster)
    found = tuple(_shapes(schema) for schema in (signature.inputs, signature.outputs)) if signature else None
    if found != expected:
        raise RegistryError(f"{what} has the signature {found}, this code expects {expected}. Retrain the forecaster.")
    return forecaster


def _schema(shapes: Mapping[str, tuple[int, ...]]) -> Any:
    import numpy as np
    from mlflow.types import Schema, TensorSpec

    return Schema([TensorSpec(np.dtype("float32"), shape, name) for name, shape in shapes.items()])


def _shapes(schema: Any) -> dict[str, tuple[int, ...]]:
    return {spec.name: tuple(spec.shape) for spec in schema.inputs}


def _requirements(*packages: str) -> list[str]:
    from importlib.metadata import version

    return [f"{package}=={version(package).split('+')[0]}" for package in packages]


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
