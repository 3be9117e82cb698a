"""The embedded MLflow: a SQLite store that clients open directly, and a server for its UI."""

from __future__ import annotations

import sys
from importlib.metadata import version

from pipelines.stack.place import Place, page
from pipelines.stack.ports import HOST

ADDRESS = "sqlite:///{var}/mlflow/mlflow.db"
PAGE = f"http://{HOST}:{{mlflow}}"
_COMMAND = [sys.executable, "-m", "mlflow"]


def start_store(place: Place) -> None:
    """Bring the schema of the SQLite store `var/mlflow/mlflow.db` up to date, once per MLflow version.

    A store that is not there yet is left to whoever opens it first: our clients, which wait for each other, or the
    server of `start_ui`.

    Raises:
        StackError: the command failed or took more than 180 s.
        AbandonedError, ProcessError: as in `Place.run`.
    """
    folder = place.folder("mlflow", part="mlflow")
    done = folder / f"schema-{version('mlflow')}"
    if (folder / "mlflow.db").exists() and not done.exists():
        place.run("mlflow-schema", [*_COMMAND, "db", "upgrade", place.at(ADDRESS)])
        done.touch()


def start_ui(place: Place) -> None:
    """Start MLflow's server on the store, and wait until its health page answers.

    Raises:
        StackError: the store could not be made, or the server ended or was not ready within 120 s.
        AbandonedError, ProcessError: as in `Place.spawn`.
    """
    start_store(place)
    command = [
        *_COMMAND, "server", "--backend-store-uri", place.at(ADDRESS), "--workers", "1",
        "--artifacts-destination", str(place.folder("mlflow") / "artifacts"),
        "--host", HOST, "--port", str(place.ports["mlflow"]),
    ]  # fmt: skip
    # Its job runner would be eight more processes and 1.2 GB.
    env = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    place.spawn("mlflow-ui", command, env, probe=page(f"{place.at(PAGE)}/health"))
    place.await_ready("mlflow-ui")
