"""Absolute paths into one folder that become paths into another: in databases, and in what Spark notes of a state."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from functools import partial
from pathlib import Path

from pipelines.stack.backup.archive import BackupError

SCHEMAS = "state/*/_metadata/v2/*"
"""Where a query that keeps a state notes the files of its schemas, below its checkpoint."""


def move_paths(folder: Path, old: str, new: str) -> None:
    """Replace the folder `old` by `new` wherever files below `folder` name something in it.

    These are the SQLite databases (MLflow keeps the place of each artifact, Airflow that of its logs) and the schemas
    that Spark notes in the checkpoint of a query with a state of its own.

    Raises:
        BackupError: a database is damaged.
        OSError: a file cannot be read or written.
    """
    moved = _mover([old], new)
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.match(SCHEMAS) and not path.name.startswith("."):
            _move_schemas(path, moved)
        elif path.is_file() and _is_sqlite(path):
            try:
                _move_in(path, moved)
            except sqlite3.Error as error:
                raise BackupError(f"{path}: a damaged database ({error}). Nothing was restored.") from None


def move_schemas(checkpoint: Path, old: Iterable[Path], new: Path) -> None:
    """Replace folders by `new` wherever Spark notes a file of one of them as a schema of a checkpoint's state.

    Args:
        checkpoint: of a query, which does not run.
        old: folders in which the checkpoint has been.
        new: folder in which it is from now on.

    Raises:
        OSError: a file cannot be read or written.
    """
    moved = _mover(map(str, old), str(new))
    for path in checkpoint.glob(SCHEMAS):
        if not path.name.startswith("."):
            _move_schemas(path, moved)


def _mover(old: Iterable[str], new: str) -> Callable[[str], str]:
    """What puts `new` for each of these folders in a text."""
    named = re.compile(rf"(?<![\w.-])(?:{'|'.join(map(re.escape, old))})(?![\w.-])")
    return partial(named.sub, lambda found: new)


def _move_schemas(file: Path, moved: Callable[[str], str]) -> None:
    file.write_text(moved(file.read_text()))
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)  # Hadoop's sum of what stood there


def _is_sqlite(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(16) == b"SQLite format 3\0"


def _move_in(database: Path, moved: Callable[[str], str]) -> None:
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.create_function("moved", 1, moved, deterministic=True)
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in tables:
            for _, column, *_ in connection.execute(f'PRAGMA table_info("{table}")').fetchall():
                text = f"typeof(\"{column}\") = 'text'"
                connection.execute(
                    f'UPDATE "{table}" SET "{column}" = moved("{column}") '
                    f'WHERE {text} AND moved("{column}") <> "{column}"'
                )
