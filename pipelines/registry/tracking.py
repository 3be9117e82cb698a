"""The MLflow store that settings name: opened once, created where it is embedded and new."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from configs.errors import without_logins
from configs.settings import Settings
from pipelines.file_lock import alone
from pipelines.registry.artifacts import RegistryError

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException

PAGE = 1000
"""Models or versions in an answer of MLflow."""
LOGIN = ("MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD")
_OTHER_LOGIN = f"Set {', '.join(LOGIN)} of a user who may, or MLFLOW_TRACKING_TOKEN."


@contextmanager
def as_registry_error(what: str) -> Iterator[None]:
    """Turn an MlflowException in the `with` block into a `RegistryError` with the message `<what>: <its own>`."""
    from mlflow.exceptions import MlflowException

    try:
        yield
    except MlflowException as error:
        hint = f" {_OTHER_LOGIN}" if _is_forbidden(error) else ""
        raise RegistryError(f"{what}: {error.message}{hint}") from None


@contextmanager
def as_training_error(uri: str) -> Iterator[None]:
    """Turn what a store that is away, full or forbidden does to a training in the `with` block into a `RegistryError`.

    Its message names the store and what helps. Other errors are passed on.
    """
    from mlflow.exceptions import MlflowException

    try:
        yield
    except (MlflowException, OSError) as error:
        said = error.message if isinstance(error, MlflowException) else str(error)
        full = (isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)) or "disk is full" in said
        unwritable = (isinstance(error, OSError) and error.errno == errno.EROFS) or "readonly database" in said
        if isinstance(error, OSError) and not (full or unwritable):
            raise
        remedy = (
            "Make room there." if full else "Mount it for writing." if unwritable
            else _OTHER_LOGIN if isinstance(error, MlflowException) and _is_forbidden(error)
            else "Does it answer there? mlflow.tracking_uri names it."
        )  # fmt: skip
        raise RegistryError(
            f"MLflow at {uri}: {said.splitlines()[0]} {remedy} This training counts for nothing, and what serves goes "
            "on serving; train again."
        ) from error


def _is_forbidden(error: MlflowException) -> bool:
    return error.error_code in ("UNAUTHENTICATED", "PERMISSION_DENIED") or "error code 401" in error.message


def open_store(settings: Settings) -> tuple[MlflowClient, str, str]:
    """Connect to the MLflow store of the settings; creates the experiment, and an embedded store, where missing.

    Sets MLflow's address, logging levels and environment variables for the whole process. Makes `var/mlflow`, where
    the embedded store is the SQLite file `mlflow.db`; waits, without a limit, while another process opens a store that
    is no server. A login in a server's address is given to MLflow by LOGIN, where these are not set: its messages hold
    the address.

    Returns:
        The client, the store's tracking URI, and the id of the experiment that all runs belong to.

    Raises:
        RegistryError: the folder of an embedded store does not exist, or MLflow does not answer at the address,
            knows no such kind of it, or cannot open the database.
        OSError: `var/mlflow` cannot be made, or `schema.lock` in it not written.
    """
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ["MLFLOW_ALLOW_PICKLE_DESERIALIZATION"] = "false"  # of ours nothing is pickled
    os.environ["TORCH_FORCE_WEIGHTS_ONLY_LOAD"] = "1"
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
    # Of 7, with pauses that double: a server that only fails would be said to after four minutes.
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "3")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "30")  # of 120 s, likewise, behind a firewall that drops
    import mlflow

    for name in ("alembic", "mlflow.store.db.utils"):
        logging.getLogger(name).setLevel(logging.WARNING)
    # It looks for pip's version to write into a file that nobody reads, and warns where pip is not installed.
    logging.getLogger("mlflow.utils.environment").setLevel(logging.ERROR)
    folder = settings.var_dir / "mlflow"
    uri = _with_login_set(settings.mlflow.tracking_uri or f"sqlite:///{folder / 'mlflow.db'}")
    server = uri.startswith("http")
    # A server keeps artifacts itself; for a store that is opened directly they would land in the working folder.
    artifacts = None if server else str(folder / "artifacts")
    folder.mkdir(parents=True, exist_ok=True)
    if uri.startswith("sqlite:///") and not (home := Path(uri.removeprefix("sqlite:///")).parent).is_dir():
        # MLflow would try again and again for two minutes before it said so.
        raise RegistryError(f"mlflow.tracking_uri={uri}: there is no folder {home}. Create it or correct the URI.")
    mlflow.set_tracking_uri(uri)  # else it makes a store of its own in the working folder, even to load
    scheme = "" if "://" in uri else "; a server's begins with http:// or https://"
    with (
        nullcontext() if server else alone(folder / "schema.lock"),  # two that create a schema at once would both fail
        as_registry_error(f"MLflow at {uri} (check mlflow.tracking_uri{scheme})"),
    ):
        client = mlflow.MlflowClient(uri)  # makes a new store
        return client, uri, _experiment_id(client, settings.mlflow.experiment, artifacts)


def all_pages(search: Any, condition: str) -> Iterator[Any]:
    """Yield all that a search of MLflow finds, page after page."""
    page = None
    while True:
        found = search(condition, max_results=PAGE, page_token=page)
        yield from found
        if not (page := found.token):
            return


def _with_login_set(uri: str) -> str:
    parts = urlsplit(uri)
    if parts.scheme not in ("http", "https") or "@" not in parts.netloc:
        return uri
    for name, value in zip(LOGIN, (parts.username, parts.password), strict=True):
        os.environ.setdefault(name, unquote(value or ""))
    return without_logins(uri)


def _experiment_id(client: MlflowClient, name: str, artifacts: str | None) -> str:
    from mlflow.exceptions import MlflowException

    if (known := client.get_experiment_by_name(name)) is None:
        try:
            return str(client.create_experiment(name, artifacts))
        except MlflowException:
            if (known := client.get_experiment_by_name(name)) is None:  # else another process was sooner
                raise
    if known.lifecycle_stage == "deleted":
        raise RegistryError(
            f"mlflow.experiment={name}: it was deleted in MLflow, and no run can be begun in it. Restore it (`mlflow "
            f"experiments restore --experiment-id {known.experiment_id}`, or on MLflow's page) or set another name."
        )
    return str(known.experiment_id)
