"""Absolute paths into one folder that become paths into another: in databases, and in what Spark notes of a state."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

from pipelines.stack.backup.archive import BackupError

SCHEMAS = "state/*/_metadata/v2/*"
"""Where a query that keeps a state notes the files of its schemas, below its checkpoint."""
_SCHEMA = re.compile(r'file:[^"]*(?=/state/\d+/_stateSchema/)')
"""A checkpoint as it stands there before the path of each: as Spark was told of it, or as a link leads to it."""


def move_paths(folder: Path, old: str, new: Path) -> None:
    """Replace the folder `old` by `new`, where `folder` will lie, wherever files below `folder` name something in it.

    These are the SQLite databases (MLflow keeps the place of each artifact, Airflow that of its logs) and the schemas
    that Spark notes in the checkpoint of a query with a state of its own.

    Raises:
        BackupError: a database is damaged.
        OSError: a file cannot be read or written.
    """
    moved = _mover(old, str(new))
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        if path.match(SCHEMAS):
            _name_schemas(path, new.resolve() / path.parents[4].relative_to(folder))
        elif old != str(new) and _is_sqlite(path):
            try:
                _move_in(path, moved)
            except sqlite3.Error as error:
                raise BackupError(f"{path}: a damaged database ({error}). Nothing was restored.") from None


def move_schemas(checkpoint: Path, new: Path) -> None:
    """Name a checkpoint by where it is from now on wherever Spark notes a file of its own as a schema of its state.

    Args:
        checkpoint: of a query, which does not run.
        new: folder in which it is from now on, absolute.

    Raises:
        OSError: a file cannot be read or written.
    """
    for path in checkpoint.glob(SCHEMAS):
        _name_schemas(path, new)


def _mover(old: str, new: str) -> Callable[[str], str]:
    """What puts `new` for a folder in a text."""
    named = re.compile(rf"(?<![\w.-]){re.escape(old)}(?![\w.-])")
    return partial(named.sub, lambda found: new)


def _name_schemas(file: Path, checkpoint: Path) -> None:
    if file.name.startswith("."):
        return
    text = file.read_text()
    if (named := _SCHEMA.sub(lambda found: f"file:{checkpoint}", text)) != text:
        file.write_text(named)
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
