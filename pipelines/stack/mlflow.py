"""The embedded MLflow: a SQLite store that clients open directly, and a server for its UI."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from pipelines.stack.place import Place, page
from pipelines.stack.ports import HOST

PORTS = ("mlflow",)
_COMMAND = [sys.executable, "-m", "mlflow"]


def address(var: Path) -> str:
    """URI of the store."""
    return f"sqlite:///{var / 'mlflow' / 'mlflow.db'}"


def ui(ports: Mapping[str, int]) -> str:
    """URL of the UI."""
    return f"http://{HOST}:{ports['mlflow']}"


def start_store(place: Place) -> None:
    """Create the schema, or bring it up to date.

    Here and once, because several clients that open a new store at the same time would each try to create it.
    """
    folder = place.folder("mlflow", part="mlflow")
    done = folder / f"schema-{version('mlflow')}"
    if not done.exists():
        place.run("mlflow-schema", [*_COMMAND, "db", "upgrade", address(place.settings.var_dir)])
        done.touch()


def start_ui(place: Place) -> None:
    """The store, and after it the server."""
    start_store(place)
    command = [
        *_COMMAND, "server", "--backend-store-uri", address(place.settings.var_dir), "--workers", "1",
        "--artifacts-destination", str(place.folder("mlflow") / "artifacts"),
        "--host", HOST, "--port", str(place.ports["mlflow"]),
    ]  # fmt: skip
    # Its job runner would be eight more processes and 1.2 GB.
    env = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    place.spawn("mlflow-ui", command, env, probe=page(f"{ui(place.ports)}/health"))
    place.await_ready("mlflow-ui")
