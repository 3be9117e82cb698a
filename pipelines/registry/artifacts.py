"""A forecaster as the files of an MLflow model: data only, so that nothing that is loaded can run code.

`forecaster.json` says what it is; the graph and weights of an adapted network lie beside it as a torch.export archive
(`pt2`), and so do those of a GRU or LSTM that an older release registered.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from configs.errors import CorrectableError, FinalError
from models.forecast.core.forecaster import Forecaster

DESCRIPTION = "forecaster.json"


class RegistryError(CorrectableError, RuntimeError):
    """The registry lacks what was asked for, holds something else under the name, or does not answer."""


class UnreadableError(RegistryError):
    """A registered model that this code cannot read, or whose files are gone; asking again does not help."""


class MismatchError(UnreadableError):
    """A registered model that is of another job than the one for which it was asked."""


class ForeignModelError(RegistryError, FinalError):
    """A registered model under a job's name that is not this deployment's to write to."""


class JsonFlavor:
    """A flavour of MLflow for a model that is one JSON file."""

    __name__ = "tidecast"

    @staticmethod
    def save_model(path: str, mlflow_model: Any, description: Path, signature: Any) -> None:
        """Create the folder `path` and write the JSON file and the MLmodel file into it; MLflow calls it.

        Args:
            path: folder of the model; must not exist.
            mlflow_model: MLflow's `Model`; gets the signature and the flavour `tidecast`.
            description: the JSON file, which is copied.
            signature: as `make_signature` makes it.

        Raises:
            OSError: the folder exists (FileExistsError), or a file cannot be read or written.
        """
        folder = Path(path)
        folder.mkdir(parents=True)
        (folder / description.name).write_text(description.read_text())
        mlflow_model.signature = signature
        mlflow_model.add_flavor("tidecast", description=description.name)
        mlflow_model.save(str(folder / "MLmodel"))


def log_json_model(described: Mapping[str, Any], file: str, signature: Any, **common: Any) -> str:
    """Log a model that consists of one JSON file to MLflow's active run; returns the id of the logged model.

    Args:
        described: content of the file.
        file: name of the file.
        signature: an `mlflow.models.ModelSignature`.
        common: further arguments of `mlflow.models.Model.log`, as `name`, `tags` and `model_type`.

    Raises:
        TypeError: a value cannot be written as JSON.
        MlflowException: MLflow refuses or does not answer.
        OSError: a temporary file cannot be written.
    """
    from mlflow.models import Model

    with TemporaryDirectory() as scratch:
        description = Path(scratch) / file
        description.write_text(json.dumps(described))
        return str(Model.log(None, JsonFlavor(), description=description, signature=signature, **common).model_id)


def log_forecaster(forecaster: Forecaster, tags: Mapping[str, str]) -> str:
    """Log a forecaster to MLflow's active run; returns the id of the logged model.

    Written are `forecaster.json` (kind and parameters) and, for an adapted network, its graph and weights as a
    torch.export archive (`pt2`).

    Args:
        forecaster: of any kind.
        tags: of the logged model.

    Raises:
        MlflowException: MLflow refuses or does not answer.
        OSError: a temporary file cannot be written.
    """
    import numpy as np

    from models.adapt.target import AdaptedForecaster
    from models.kinds import describe, shapes

    common = {"name": forecaster.kind, "tags": dict(tags), "model_type": "forecaster"}
    if not isinstance(forecaster, AdaptedForecaster):
        quantiles = {None: (forecaster.horizon, len(forecaster.levels))}  # of a history, records/s per step
        return log_json_model(
            describe(forecaster), DESCRIPTION, make_signature({None: (-1,)}, quantiles, "float64"), **common
        )
    import mlflow.pytorch

    inputs, outputs = shapes(forecaster)
    with warnings.catch_warnings(), TemporaryDirectory() as scratch:
        warnings.filterwarnings("ignore", message="The tensor attributes .*_flat_weights")  # they are parameters too
        description = Path(scratch) / DESCRIPTION
        description.write_text(json.dumps(describe(forecaster)))
        info = mlflow.pytorch.log_model(
            forecaster.module,
            # two in the batch: one would be frozen
            input_example=tuple(np.zeros((2, *shape[1:]), dtype=np.float32) for shape in inputs.values()),
            signature=make_signature(inputs, outputs),
            serialization_format="pt2",
            pip_requirements=_requirements("torch", "numpy"),  # else MLflow infers them, for many seconds
            extra_files=[str(description)],
            validate_serving_input=False,
            **common,
        )
    return str(info.model_id)


def make_signature(
    inputs: Mapping[Any, tuple[int, ...]], outputs: Mapping[Any, tuple[int, ...]], dtype: str = "float32"
) -> Any:
    """Build MLflow's signature of a model from the shapes of its inputs and outputs.

    Args:
        inputs: shape of every input, by name (None for a sole one without a name); -1 stands for any length.
        outputs: the same of the outputs.
        dtype: numpy type of all.

    Returns:
        An `mlflow.models.ModelSignature`.
    """
    import numpy as np
    from mlflow.models import ModelSignature
    from mlflow.types import Schema, TensorSpec

    def schema(shapes: Mapping[Any, tuple[int, ...]]) -> Any:
        return Schema([TensorSpec(np.dtype(dtype), shape, name) for name, shape in shapes.items()])

    return ModelSignature(schema(inputs), schema(outputs))


def read_forecaster(folder: Path, what: str) -> Forecaster:
    """Read a forecaster from a downloaded model's folder, with its network if it has one; runs no code in the files.

    Args:
        folder: where the files of the model lie, also in subfolders.
        what: what errors call the model, e.g. "orders-forecaster version 3".

    Raises:
        UnreadableError: `forecaster.json` or MLmodel is missing, is no JSON, or its kind or parameters are not this
            code's; or the network's archive or signature does not fit it.
        OSError: a file cannot be read.
    """
    from mlflow.exceptions import MlflowException
    from mlflow.models import Model

    from models.adapt.target import AdaptedForecaster
    from models.kinds import revive, shapes
    from pipelines.registry.network_archive import load_network

    files = sorted(folder.rglob(DESCRIPTION))
    if not files:
        raise UnreadableError(f"{what} has no {DESCRIPTION}: it was not registered by Tidecast. Register a forecaster.")
    try:
        described = json.loads(files[0].read_text())
    except ValueError as error:
        raise UnreadableError(f"{what}: {DESCRIPTION} is no JSON ({error}). Retrain the forecaster.") from None
    if not isinstance(described, dict):
        raise UnreadableError(f"{what}: {DESCRIPTION} holds a {type(described).__name__}. Retrain the forecaster.")
    try:
        model = Model.load(str(folder))
    except MlflowException as error:  # it says where no MLmodel file is
        raise UnreadableError(f"{what}: {error.message}. Retrain the forecaster.") from None
    try:
        if "pytorch" not in model.flavors:
            return revive(described)
        forecaster = revive(described, load_network(read_archive(folder) or b""))
    except ValueError as error:
        raise UnreadableError(f"{what}: {error}") from None
    if not isinstance(forecaster, AdaptedForecaster):
        return forecaster
    expected, signed = shapes(forecaster), model.signature
    actual = signed and tuple(
        {spec.name: tuple(spec.shape) for spec in part.inputs} for part in (signed.inputs, signed.outputs)
    )
    if actual != expected:
        raise UnreadableError(
            f"{what} has the signature {actual}, this code expects {expected}. Retrain the forecaster."
        )
    return forecaster


def read_archive(folder: Path) -> bytes | None:
    """Return the network's archive (`pt2`) in a downloaded model's folder; None for a kind without one."""
    found = sorted(folder.rglob("*.pt2"))
    return found[0].read_bytes() if found else None


def _requirements(*packages: str) -> list[str]:
    from importlib.metadata import version

    return [f"{package}=={version(package).split('+')[0]}" for package in packages]
