"""Spark's event log of a managed job: written in parts, of which the oldest go, so that months of it fill no disk."""

from __future__ import annotations

import shutil
from pathlib import Path

KEPT_BYTES = 512 << 20
"""Of a folder's logs, beside the part that is written."""
_FIRST = "events_1_"


def event_log_options(folder: Path) -> dict[str, str]:
    """Return the options of a session whose event log lies in a folder, which is created where it is missing.

    Spark begins a new part at 32 MB and deletes none: `trim_event_logs` does.

    Raises:
        OSError: the folder cannot be created.
    """
    folder.mkdir(parents=True, exist_ok=True)
    return {
        "spark.eventLog.enabled": "true", "spark.eventLog.dir": folder.resolve().as_uri(),
        "spark.eventLog.compress": "false", "spark.eventLog.rolling.enabled": "true",
        "spark.eventLog.rolling.maxFileSize": "32m",
    }  # fmt: skip


def trim_event_logs(folder: Path, most_bytes: int = KEPT_BYTES) -> None:
    """Delete the oldest parts of the event logs in a folder, until the others have no more than `most_bytes`.

    Of the newest application the part that is written stays, and the first one, which says what the application is.
    Logs in one file, of earlier releases, count as parts.

    Raises:
        OSError: a part cannot be read or deleted.
    """
    single = (path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    sizes = {part: part.stat() for part in (*single, *folder.glob("eventlog_v2_*/events_*"))}
    oldest_first = sorted(sizes, key=lambda part: sizes[part].st_mtime_ns)
    excess = sum(told.st_size for told in sizes.values()) - most_bytes
    for part in oldest_first[:-1]:
        if excess <= 0:
            return
        if part.parent == oldest_first[-1].parent and part.name.startswith(_FIRST):
            continue
        part.unlink()
        excess -= sizes[part].st_size
        if part.parent != folder and not any(part.parent.glob("events_*")):
            shutil.rmtree(part.parent)
