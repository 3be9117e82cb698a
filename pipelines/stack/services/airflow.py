"""The embedded Airflow: api-server, scheduler and dag-processor, tasks in the scheduler's LocalExecutor.

Its database is SQLite's, unless the stack is given the address of another one.

Three processes rather than `airflow standalone`, which opens log servers on all interfaces and leaves children behind.
"""

from __future__ import annotations

import json
import shlex
import shutil
import sqlite3
import sys
from contextlib import closing
from functools import partial
from importlib.metadata import version
from pathlib import Path

from configs.settings import ROOT
from pipelines.spark.checkpoint.repair import free_name
from pipelines.stack.context import StackContext, StackError, page_probe
from pipelines.stack.ports import HOST

ADDRESS = f"http://{HOST}:{{airflow}}"
CONNECTION = "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"
"""Variable of the database's address."""
_PREPARED = [sys.executable, "-P", str(Path(__file__).with_name("prepared_airflow.py"))]
"""By its file: Airflow may be given the code of another release, which lacks the module; -P, for files beside it have
names of packages."""
_LOCKED_S = 20
"""Seconds that a write waits for another's, of the 30 in which Airflow's clients want an answer. After the usual five a
request failed on a computer whose cores were all busy, and `tidecast run` with it."""
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_PATIENCE_S = 300.0
"""What the scheduler imports before it begins takes minutes where each process has a fifth of a core."""


def migrated_database(context: StackContext) -> Path:
    """Return the path of a migrated, unused Airflow database (SQLite), `var/templates/airflow-VERSION.db`.

    Where it is missing, `airflow db migrate` makes it, in at most 180 s.

    Raises:
        StackError: the migration failed or took more than 180 s.
        AbandonedError, ProcessError: the start was given up, or the program does not run or the stack's keeper is gone.
        OSError, PackageNotFoundError: `var` cannot be written, or Airflow is not installed.
    """
    folder = context.folder("templates")
    database = folder / f"airflow-{version('apache-airflow-core')}.db"
    if not database.exists():
        making = folder / f"{database.name}.{context.id}"
        env = _settings(context, context.folder("airflow"), making)
        try:
            context.run("airflow-migrate", [*_PREPARED, "db", "migrate"], env)
            making.replace(database)
        finally:
            for left in folder.glob(f"{making.name}*"):  # SQLite's journal beside it, too
                left.unlink(missing_ok=True)
    return database


def start(context: StackContext) -> None:
    """Start Airflow (api-server, scheduler, dag-processor) on 127.0.0.1, wait until its health page finds all healthy.

    The page is read every 0.1 to 0.5 s; database, logs and the like are left in `var/airflow`. A database that is there
    is migrated, once per Airflow version: the file `migrated-VERSION` beside it says that this was done. After a start
    of an older version it is done again.

    Raises:
        StackError: a process ended or was not ready within 300 s, or the database could not be made or migrated.
        AbandonedError, ProcessError: the start was given up, or a program does not run or the stack's keeper is gone.
        OSError, PackageNotFoundError: `var` cannot be written, or Airflow is not installed.
    """
    home = context.folder("airflow", part="airflow")
    database, migrated = home / "airflow.db", home / f"migrated-{version('apache-airflow-core')}"
    env = _settings(context, home, database)
    migrate = partial(context.run, "airflow-migrate", [*_PREPARED, "db", "migrate"], env)
    if CONNECTION in context.given:
        migrate()
    elif not database.exists():
        copied = shutil.copy(migrated_database(context), home / "airflow.db.new")
        Path(copied).replace(database)  # whole, or not there: of half a one Airflow knows no tables
        migrated.touch()
    elif fault := database_fault(database):
        aside = shlex.join(["mv", f"{home}", f"{free_name(home)}"])
        raise StackError(
            f"{database} is damaged: {fault}. Move it away: {aside}\nRuns of DAGs are forgotten then, DAGs are "
            "paused; tables, models and topics stay. `tidecast restore FILE --only airflow` then brings back those of "
            "a backup."
        )
    elif not migrated.exists():
        migrate()
        migrated.touch()
    else:
        _forget_newer(migrated)
    healthy = page_probe(f"{context.fill(ADDRESS)}/api/v2/monitor/health", _healthy)
    server = [*_PREPARED, "api-server", "--host", HOST, "--port", str(context.ports["airflow"]), "--workers", "1"]
    context.spawn("airflow-api-server", server, env, probe=healthy)
    # Without the flag the scheduler and every worker of it serve their logs on all interfaces.
    context.spawn("airflow-scheduler", [*_PREPARED, "scheduler", "--skip-serve-logs"], env, probe=healthy)
    context.spawn("airflow-dag-processor", [*_PREPARED, "dag-processor"], env, probe=healthy)
    for name in ("airflow-scheduler", "airflow-dag-processor", "airflow-api-server"):
        context.await_ready(name, _PATIENCE_S)


def _forget_newer(migrated: Path) -> None:
    """Let a version that has migrated the database since do so again: `airflow db downgrade` may have undone it.

    This one does not: of a newer one's database it knows no way to its own.
    """
    at = migrated.stat().st_mtime
    for other in migrated.parent.glob("migrated-*"):
        if other.stat().st_mtime > at:
            other.unlink()


def database_fault(database: Path) -> str:
    """Return what SQLite finds damaged in a database; empty: nothing, or it is in use and cannot be looked at."""
    try:
        with closing(sqlite3.connect(database, timeout=0.5)) as connection:  # a writer is done sooner
            (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.Error as error:
        return str(error) if error.sqlite_errorcode & 0xFF in _DAMAGED else ""
    return "" if found == "ok" else str(found).splitlines()[-1]


def _settings(context: StackContext, home: Path, database: Path) -> dict[str, str]:
    url = context.fill(ADDRESS)
    return {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(context.dags),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "dags" / "plugins"),  # ours, whatever DAGs a test has
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "True",
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__PARALLELISM": "5",  # serving holds one place for good, two followed backfills theirs for hours
        # A task whose end its supervisor has just missed is looked at again only then, by default after 5 s.
        "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "2",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",  # it listens on the loopback only
        "AIRFLOW__TIDECAST__LOOPBACK_ONLY": "True",  # and lets in no page of another site: our plugin's setting
        CONNECTION: f"sqlite:///{database}?timeout={_LOCKED_S}",
        "AIRFLOW__API__BASE_URL": url,
        "AIRFLOW__API__SECRET_KEY": context.secret,
        "AIRFLOW__API_AUTH__JWT_SECRET": context.secret,
        "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(home / "logs"),
        "AIRFLOW__LOGGING__DAG_PROCESSOR_CHILD_PROCESS_LOG_DIRECTORY": str(home / "logs" / "dag_processor"),
        "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "5",
        "AIRFLOW__DAG_PROCESSOR__FILE_PARSING_SORT_MODE": "modified_time",
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "300",  # in this order a changed file is parsed at once
        "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_STORAGE_PATH": str(home / "bundles"),
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        # Where lineage goes a variable of the user's own says. A fork would end before its events are sent.
        "AIRFLOW__OPENLINEAGE__EXECUTE_IN_THREAD": "True",
    }


def _healthy(text: str) -> bool:
    state = json.loads(text)
    parts = ("metadatabase", "scheduler", "dag_processor")
    return all(state.get(part, {}).get("status") == "healthy" for part in parts)
