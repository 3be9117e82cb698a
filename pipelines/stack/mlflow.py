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
    """Create the schema, or bring it up to date.

    Here and once, because several clients that open a new store at the same time would each try to create it.
    """
    done = place.folder("mlflow", part="mlflow") / f"schema-{version('mlflow')}"
    if not done.exists():
        place.run("mlflow-schema", [*_COMMAND, "db", "upgrade", place.at(ADDRESS)])
        done.touch()


def start_ui(place: Place) -> None:
    """The store, and after it the server."""
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
