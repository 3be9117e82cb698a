"""SQLite that does not wait for the disk: what tests keep in it need not outlive a loss of power."""

from __future__ import annotations

import sqlite3
from typing import Any


def leave_unsynced() -> None:
    """Let the SQLite databases that SQLAlchemy connects to in this process from now on wait for no disk.

    MLflow and Airflow commit a dozen times for each version and each task, and each commit waits several times. A
    process that is killed loses nothing by it.
    """
    from sqlalchemy import Engine, event  # it takes a part of a second, which workers that only collect do without

    event.listen(Engine, "connect", _leave_unsynced)


def _leave_unsynced(connection: Any, _: Any) -> None:
    if isinstance(connection, sqlite3.Connection):
        connection.execute("PRAGMA synchronous = OFF")
