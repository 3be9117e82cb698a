"""How large the lake's tables are and how fast they grow; reads folders and Delta's log, without Spark."""

from __future__ import annotations

import json
import os
from pathlib import Path

from configs.bounds import DAY_S

LONGEST_S = 14 * DAY_S
"""Seconds for which a table's last growth counts."""
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
    """Return the bytes of data that a table's commits added in the 24 hours up to the newest that added any.

    Where nothing is added any more, as on a disk that is full, it stays what it was, for 14 days. What only merges
    files is left out.

    Args:
        root: folder of the lake.
        table: name of the table.
        now: epoch seconds.

    Raises:
        OSError: a commit cannot be read.
        ValueError, KeyError: a commit is no JSON, or is none of Delta's.
    """
    commits = [(path.stat().st_mtime, path) for path in (root / table / _LOG).glob("*.json") if path.stem.isdigit()]
    size, since = 0, now - LONGEST_S
    for at, path in sorted(commits, reverse=True):
        if at <= since:
            break
        lines = path.read_text().split("\n")  # not at U+2028, which Delta leaves
        added = sum(_added(json.loads(line)) for line in lines if line)
        if added and not size:
            since = at - DAY_S
        size += added
    return size


def _added(action: dict[str, dict[str, int]]) -> int:
    added = action.get("add")
    return added["size"] if added and added["dataChange"] else 0
