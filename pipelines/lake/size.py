"""How large the lake's tables are and how fast they grow; reads folders and Delta's log, without Spark."""

from __future__ import annotations

import json
import os
from pathlib import Path

from configs.bounds import DAY_S

_LOG = "_delta_log"


def table_size(root: Path, table: str) -> tuple[int, int]:
    """Return the bytes of a table's files, its log's included, and the number of its data files; replaced ones count.

    A file that is removed meanwhile is left out; a table that is not there has none.
    """
    size, files = 0, 0
    for folder, _, names in os.walk(root / table):
        of_log = _LOG in Path(folder).parts
        for name in names:
            try:
                size += os.stat(os.path.join(folder, name)).st_size
            except FileNotFoundError:
                continue
            files += name.endswith(".parquet") and not of_log
    return size, files


def day_growth(root: Path, table: str, now: float) -> int:
    """Return the bytes of data that commits of the last 24 hours added to a table; what only merges files is left out.

    Args:
        root: folder of the lake.
        table: name of the table.
        now: epoch seconds.

    Raises:
        OSError: a commit cannot be read.
        ValueError, KeyError: a commit is no JSON, or is none of Delta's.
    """
    commits = [path for path in (root / table / _LOG).glob("*.json") if path.stem.isdigit()]
    newest = [path for path in commits if path.stat().st_mtime > now - DAY_S]
    lines = (line for path in newest for line in path.read_text().split("\n"))  # not at U+2028, which Delta leaves
    return sum(_added(json.loads(line)) for line in lines if line)


def _added(action: dict[str, dict[str, int]]) -> int:
    added = action.get("add")
    return added["size"] if added and added["dataChange"] else 0
