"""Which files make up a Delta table, read from its log without Spark, where the log leaves no doubt."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from pipelines.lake.folder import Folder

if TYPE_CHECKING:
    import pyarrow as pa

_PLAIN_READER = 1
"""Version of Delta's protocol for readers who know of no deletion vectors, no renamed columns and no other features."""
MOST_COMMITS = 5_000
"""Of a log that is read whole, in a third of a second; Spark reads a longer one from its newest checkpoint on."""


@dataclass(frozen=True)
class TableFiles:
    """The newest version of a table.

    Attributes:
        paths: of its Parquet files; one may lack columns that were added later.
        columns: names and Arrow types, in the table's order.
        version: Delta's number of it.
    """

    paths: tuple[Path, ...]
    columns: pa.Schema
    version: int


def table_files(root: Folder, table: str) -> TableFiles | None:
    """Read which files the newest version of a table has, as Delta's protocol says ("Action Reconciliation").

    Returns:
        None where Spark has to read it: there is no table, it is not on a mounted file system, its log has more than
        `MOST_COMMITS` or its first one is gone (Delta keeps them for 400 days), it is of the older layout with
        partition columns, or it has a feature or a type that this does not know.

    Raises:
        OSError, ValueError: a file of the log cannot be read, or is no JSON.
    """
    if not isinstance(root, Path):
        return None
    folder = root / table
    commits = sorted(path for path in (folder / "_delta_log").glob("*.json") if path.stem.isdigit())
    if not 0 < len(commits) <= MOST_COMMITS or [int(path.stem) for path in commits] != list(range(len(commits))):
        return None
    named: dict[str, None] = {}  # in the order in which they came
    reader, metadata = 0, dict[str, Any]()
    for commit in commits:
        for line in commit.read_text().split("\n"):  # not at U+2028, which Delta writes as it is
            if not line or line.startswith('{"commitInfo"'):
                continue
            ((action, said),) = json.loads(line).items()
            if action == "add":
                named[said["path"]] = None
            elif action == "remove":
                named.pop(said["path"], None)
            elif action == "metaData":
                metadata = said
            elif action == "protocol":
                reader = said["minReaderVersion"]
    columns = _columns(metadata)
    elsewhere = any("://" in name or name.startswith("/") for name in named)  # as a shallow clone names them
    if reader != _PLAIN_READER or metadata.get("partitionColumns") or columns is None or elsewhere:
        return None
    return TableFiles(tuple(folder / unquote(name) for name in named), columns, len(commits) - 1)


def _columns(metadata: dict[str, Any]) -> pa.Schema | None:
    import pyarrow as pa

    plain = {
        "string": pa.string(), "double": pa.float64(), "float": pa.float32(), "long": pa.int64(), "integer": pa.int32(),
        "boolean": pa.bool_(), "binary": pa.binary(),
    }  # fmt: skip

    def arrow(kind: Any) -> pa.DataType:
        return pa.list_(arrow(kind["elementType"])) if isinstance(kind, dict) else plain[kind]

    try:
        return pa.schema([(one["name"], arrow(one["type"])) for one in json.loads(metadata["schemaString"])["fields"]])
    except KeyError:
        return None
