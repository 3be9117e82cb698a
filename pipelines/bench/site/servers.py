"""PostgreSQL under Airflow and MLflow, and MLflow behind its server with logins, on the loopback."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx

from configs.errors import CorrectableError
from pipelines.bench.site.ports import free_ports
from pipelines.stack.ports import HOST

BINARIES = Path("/usr/lib/postgresql/15/bin")
"""Of Debian's package postgresql-15."""
DATABASE_PASSWORD, MLFLOW_PASSWORD = "planted-database-password-0123", "planted-mlflow-password-0123"
MLFLOW_USER, MLFLOW_USER_PASSWORD = "tidecast", "planted-mlflow-user-password-0123"
"""Of MLflow's administrator, and of the user as whom all is done, who may only what anybody with a login may."""
DUMP = "postgres.sql"
PATIENCE_S = 120.0


class SiteError(CorrectableError, RuntimeError):
    """What a real neighbour needs is not on this computer, or it did not start; the message says what to do."""


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """Run a database server with empty databases `airflow`, `mlflow` and `auth`, until the end of the `with`.

    What it held by then is left in `folder`, so that it can be searched: DUMP (`postgres.sql`), a dump of all databases
    (in its files a long value is compressed), and `postgres`, its files (with what was deleted).

    Yields:
        Its address, as SQLAlchemy has it, which lacks the database's name.

    Raises:
        SiteError: PostgreSQL 15 is not installed, or does not answer within PATIENCE_S (120 s).
        subprocess.CalledProcessError: it refuses its folder, or a database.
    """
    if not BINARIES.is_dir():
        raise SiteError(f"{BINARIES} does not exist: apt-get install postgresql-15")
    (port,) = free_ports(1)
    log_file = folder / "postgres.log"
    # Not below `folder`, which another user may be unable to enter: PostgreSQL refuses to run as root.
    with tempfile.TemporaryDirectory(prefix="tidecast-postgres-") as own, log_file.open("wb") as log:
        data, secret = Path(own, "data"), Path(own, "password")
        secret.write_text(DATABASE_PASSWORD)
        user = _unprivileged([Path(own), secret])
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "cwd": "/", "check": True}
        init = [
            str(BINARIES / "initdb"),
            "-D",
            str(data),
            "-U",
            "site",
            "-A",
            "scram-sha-256",
            "-E",
            "UTF8",
            "--locale=C.UTF-8",
        ]
        subprocess.run([*init, f"--pwfile={secret}", "--no-sync"], **quiet, **user)
        told = [f"listen_addresses={HOST}", f"port={port}", "unix_socket_directories=", "fsync=off"]
        command = [_binary("postgres"), "-D", str(data), *(part for one in told for part in ("-c", one))]
        server = subprocess.Popen(command, stdout=log, stderr=log, cwd="/", start_new_session=True, **user)
        plain = f"postgresql://site:{DATABASE_PASSWORD}@{HOST}:{port}"
        try:
            ready = [_binary("pg_isready"), "-q", "-h", HOST, "-p", str(port)]
            _await(lambda: subprocess.run(ready, cwd="/").returncode == 0, "PostgreSQL does not answer", log_file)
            for name in ("airflow", "mlflow", "auth"):
                subprocess.run([_binary("psql"), "-q", f"{plain}/postgres", "-c", f"CREATE DATABASE {name}"], **quiet)
            # Where no driver is named, SQLAlchemy looks for psycopg 3.
            yield plain.replace("postgresql", "postgresql+psycopg2", 1)
            dump = [_binary("pg_dumpall"), "-h", HOST, "-p", str(port), "-U", "site"]
            with (folder / DUMP).open("wb") as held:
                login = os.environ | {"PGPASSWORD": DATABASE_PASSWORD}
                subprocess.run(dump, env=login, **(quiet | {"stdout": held}))
        finally:
            server.send_signal(signal.SIGINT)  # at SIGTERM it would wait for those who are connected
            _end(server)
        shutil.copytree(data, folder / "postgres")


@contextmanager
def mlflow_with_logins(folder: Path, database: str) -> Iterator[str]:
    """Run MLflow's server with basic auth on a database, until the end of the `with`; yields its address.

    Nobody has rights on what somebody else has made. The variables of MLflow's login are set in this process meanwhile,
    to that of a user who is no administrator.

    Args:
        folder: for its configuration, log and artifacts.
        database: address, as SQLAlchemy has it, of a server with the databases `mlflow` and `auth`, or of a folder
            for SQLite's files.

    Raises:
        SiteError: it does not answer within PATIENCE_S (120 s).
        httpx.HTTPError: it makes no user.
    """
    (port,) = free_ports(1)
    config = folder / "auth.ini"
    config.write_text(
        "[mlflow]\ndefault_permission = NO_PERMISSIONS\n"
        f"database_uri = {database}/auth\nadmin_username = admin\nadmin_password = {MLFLOW_PASSWORD}\n"
        "authorization_function = mlflow.server.auth:authenticate_request_basic_auth\n"
    )
    own = {
        "MLFLOW_AUTH_CONFIG_PATH": str(config), "MLFLOW_FLASK_SERVER_SECRET_KEY": MLFLOW_PASSWORD,
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    }  # fmt: skip
    command = [
        sys.executable, "-m", "mlflow", "server", "--app-name", "basic-auth", "--host", HOST, "--port", str(port),
        "--workers", "1", "--backend-store-uri", f"{database}/mlflow", "--artifacts-destination", str(folder / "art"),
    ]  # fmt: skip
    with (folder / "mlflow.log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, env=os.environ | own, start_new_session=True)
    url = f"http://{HOST}:{port}"
    user = {"username": MLFLOW_USER, "password": MLFLOW_USER_PASSWORD}
    login = {"MLFLOW_TRACKING_USERNAME": MLFLOW_USER, "MLFLOW_TRACKING_PASSWORD": MLFLOW_USER_PASSWORD}
    before = {name: os.environ.get(name) for name in login}
    try:
        _await(lambda: _answers(f"{url}/health"), "MLflow does not answer", folder / "mlflow.log")
        made = httpx.post(f"{url}/api/2.0/mlflow/users/create", json=user, auth=("admin", MLFLOW_PASSWORD), timeout=30)
        made.raise_for_status()
        os.environ.update(login)
        yield url
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        server.terminate()
        _end(server)


def _binary(name: str) -> str:
    return str(BINARIES / name)


def _end(server: subprocess.Popen[Any]) -> None:
    with suppress(subprocess.TimeoutExpired):
        server.wait(20)
    server.kill()
    server.wait(10)


def _unprivileged(paths: list[Path]) -> dict[str, Any]:
    """Of subprocess, the user who owns the paths from now on."""
    if os.getuid() != 0:
        return {}
    user = pwd.getpwnam("postgres")
    for path in paths:
        shutil.chown(path, user.pw_uid, user.pw_gid)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=3).status_code == 200
    except httpx.HTTPError:
        return False


def _await(holds: Callable[[], bool], problem: str, log: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > deadline:
            raise SiteError(f"{problem} within {PATIENCE_S:.0f} s; see {log}")
        time.sleep(0.3)
