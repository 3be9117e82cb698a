"""The embedded MLflow: a SQLite store that clients open directly, and a server for its UI."""

from __future__ import annotations

import sys
from importlib.metadata import version

from pipelines.stack.context import StackContext, page_probe
from pipelines.stack.ports import HOST

ADDRESS = "sqlite:///{var}/mlflow/mlflow.db"
PAGE = f"http://{HOST}:{{mlflow}}"
_COMMAND = [sys.executable, "-m", "mlflow"]


def start_store(context: StackContext) -> None:
    """Upgrade the schema of the SQLite store `var/mlflow/mlflow.db`, once per MLflow version; starts no server.

    A store that is not there yet is created by the first client that opens it, or the server of `start_ui`. The file
    `schema-VERSION` beside it says that this was done.

    Raises:
        StackError: the command failed or took more than 180 s.
        AbandonedError, ProcessError: the start was given up, or the program does not run or the stack's keeper is gone.
        OSError, PackageNotFoundError: `var` cannot be written, or MLflow is not installed.
    """
    folder = context.folder("mlflow", part="mlflow")
    done = folder / f"schema-{version('mlflow')}"
    if (folder / "mlflow.db").exists() and not done.exists():
        context.run("mlflow-schema", [*_COMMAND, "db", "upgrade", context.fill(ADDRESS)])
        done.touch()


def start_ui(context: StackContext) -> None:
    """Start MLflow's server on the store, on 127.0.0.1, and wait until its health page answers.

    Raises:
        StackError: the store's schema could not be updated, or the server ended or was not ready within 120 s.
        AbandonedError, ProcessError: the start was given up, or the program does not run or the stack's keeper is gone.
        OSError, PackageNotFoundError: `var` cannot be written, or MLflow is not installed.
    """
    start_store(context)
    command = [
        *_COMMAND, "server", "--backend-store-uri", context.fill(ADDRESS), "--workers", "1",
        "--artifacts-destination", str(context.folder("mlflow") / "artifacts"),
        "--host", HOST, "--port", str(context.ports["mlflow"]),
    ]  # fmt: skip
    # Its job runner would be eight more processes and 1.2 GB.
    env = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    context.spawn("mlflow-ui", command, env, probe=page_probe(f"{context.fill(PAGE)}/health"))
    context.await_ready("mlflow-ui")
