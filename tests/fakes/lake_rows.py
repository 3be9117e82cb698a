"""What stands in a table of the lake, read from its log and files: Spark takes half a second to plan a small read."""

from __future__ import annotations

from typing import Any

import pyarrow.parquet

from pipelines.lake.folder import Folder
from pipelines.lake.table_files import table_files


def lake_rows(root: Folder, table: str) -> list[dict[str, Any]]:
    """The rows of a table of today's layout, in its columns."""
    files = table_files(root, table)
    assert files is not None, f"{root} has no table {table}, or one that Spark alone can read"
    rows = [row for path in files.paths for row in pyarrow.parquet.read_table(path).to_pylist()]
    return [{name: row.get(name) for name in files.columns.names} for row in rows]
