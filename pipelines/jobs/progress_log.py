"""Every progress of a managed job's query, and the totals so far, in files of its run folder."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.whole_file import write_json

if TYPE_CHECKING:
    from pyspark import SparkContext

LOGGED_BYTES = 512 << 20
"""Of a managed job's progresses, the newest, and as much before them: four days to a week at a trigger of 2 s."""
NEWEST_BYTES = 64 << 20
"""Of the log's end, what a start reads where the newest is enough: half a day at a trigger of 2 s, a second's work."""
READ_BYTES = 4096
"""Of a log, what is read at once to find the end of its last whole line."""


def progress_file(run_dir: Path, job: str) -> Path:
    """Return the file of every progress of a job's query, a JSON object per line."""
    return run_dir / f"{job}.progress.jsonl"


def kept_files(file: Path) -> list[Path]:
    """Return the files of a progress log, as far as there are: what was set aside for its size, then itself."""
    return [one for one in (_older(file), file) if one.is_file()]


def newest_lines(file: Path, most_bytes: int = NEWEST_BYTES) -> Iterator[str]:
    """Yield the lines at the end of a log that may be missing, one by one: those that are whole in so many bytes.

    Raises:
        OSError: it cannot be read.
    """
    files = kept_files(file)
    further = sum(one.stat().st_size for one in files) - most_bytes
    for one in files:
        with one.open("rb") as log:
            size = log.seek(0, 2)
            log.seek(max(further - 1, 0))
            if further > 0:
                log.readline()  # begins further ahead, or is the end of the line before
            for line in log:
                yield line.decode(errors="replace")
        further -= size


def append_line(file: Path, line: str) -> None:
    """Append a line to a file that may be missing; one that a kill or a full disk has cut off is taken away before.

    Joined with it this line would be lost, too.

    Raises:
        OSError: it cannot be written.
    """
    with file.open("ab+") as log:
        end = size = log.seek(0, os.SEEK_END)
        while end > 0:
            begin = max(end - READ_BYTES, 0)
            log.seek(begin)
            if (newline := log.read(end - begin).rfind(b"\n")) >= 0:
                end = begin + newline + 1
                break
            end = begin
        if end < size:
            log.truncate(end)
        log.write(line.encode() + b"\n")


class ProgressLog:
    """Writes every progress of a query to `<job>.progress.jsonl`, and the totals since the start to `<job>.json`.

    `totals` holds numbers of `batches`, `rows`, and `late` and `rejected` events; `late_dropped`, the rows that came to
    an operator after their window was final (of a window's records in a batch an aggregate sees one row per key);
    `application` (id), `ui` (URL or None) and `started` (epoch seconds) of the Spark application.
    """

    def __init__(self, run_dir: Path, job: str, context: SparkContext, most_bytes: int | None = None) -> None:
        """Nothing is written yet.

        Args:
            run_dir: folder of both files.
            job: name of the query.
            context: of its application.
            most_bytes: of a file; what is older is in `<job>.progress.old.jsonl`, or gone. None: all is kept.
        """
        self.job, self._most_bytes = job, most_bytes
        self._lines = progress_file(run_dir, job)
        self._summary = run_dir / f"{job}.json"
        self.totals: dict[str, Any] = {
            "batches": 0, "rows": 0, "late": 0, "rejected": 0, "late_dropped": 0,
            "application": context.applicationId, "ui": context.uiWebUrl, "started": time.time(),
        }  # fmt: skip

    def add(self, progress_json: str, dropped: int) -> None:
        """Append one StreamingQueryProgress to `<job>.progress.jsonl`, add it to `totals`, and rewrite `<job>.json`.

        Args:
            progress_json: as Spark reports it, a JSON object; `late` and `rejected` come from its metrics "events".
            dropped: what its operators dropped as late.

        Raises:
            ValueError: it is no JSON.
            OSError: a file cannot be written; `totals` has counted it already, and `<job>.json` is as before.
        """
        progress = json.loads(progress_json)
        seen = progress.get("observedMetrics", {}).get("events", {})
        self.totals["batches"] += 1
        self.totals["rows"] += progress.get("numInputRows", 0)
        self.totals["late_dropped"] += dropped
        for name in ("late", "rejected"):
            self.totals[name] += seen.get(name) or 0
        if self._most_bytes is not None and self._lines.is_file() and self._lines.stat().st_size >= self._most_bytes:
            self._lines.replace(_older(self._lines))
        append_line(self._lines, json.dumps(progress, separators=(",", ":")))
        write_json(self._summary, self.totals)


def _older(file: Path) -> Path:
    return file.with_suffix(".old.jsonl")


def listener_of(log: ProgressLog, replays: bool = False) -> Any:
    """Make the listener of streaming queries that adds each progress of the job's own query to a log.

    Args:
        log: of the job.
        replays: whether those of all other queries are added, too; they count in its totals then.
    """
    from pyspark.sql.streaming.listener import StreamingQueryListener

    from tidecast.signed.progress import late_dropped

    class Listener(StreamingQueryListener):
        def onQueryStarted(self, event: Any) -> None: ...

        def onQueryProgress(self, event: Any) -> None:
            if replays or event.progress.name == log.job:
                log.add(event.progress.json, late_dropped(event.progress))

        def onQueryIdle(self, event: Any) -> None: ...

        def onQueryTerminated(self, event: Any) -> None: ...

    return Listener()
