"""Spark's event log: when every task of a streaming query ran, and when executors came and went.

A log is one file per application, or, when rolling, a folder `eventlog_v2_<application>` of files
`events_<n>_<application>`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from math import isnan, nan
from pathlib import Path
from typing import Any

import pandas as pd

from configs.errors import CorrectableError

_COMPRESSED = {".zstd", ".lz4", ".snappy", ".lzf"}
_EVENT = re.compile(r'\{"Event":"([^"]+)"')
_WANTED = {f"SparkListener{name}" for name in (
    "JobStart", "TaskEnd", "ExecutorAdded", "ExecutorRemoved", "ApplicationEnd",
)}  # fmt: skip
TASKS = [
    "application", "query", "batch", "stage", "executor", "start", "end", "failed", "deserialize_s", "python_s",
]  # fmt: skip
PYTHON = ("time to start Python workers", "time to initialize Python workers")
"""Spark's metrics of a task's way to the first row in Python, ms."""
EXECUTORS = ["application", "executor", "added", "removed", "reason"]


class EventLogError(CorrectableError, RuntimeError):
    """A Spark event log that is missing or cannot be read; the message names the file and the remedy."""


@dataclass(frozen=True, eq=False)
class EventLog:
    """Tasks and executors out of Spark's event log; times are epoch seconds.

    Attributes:
        tasks: one finished task attempt per row: application, query id, batch id, stage, executor, start, end, failed
            (not killed), seconds of deserialisation (the JVM's new classes among them; NaN: not told) and seconds
            until its Python worker was ready (0 without one).
        executors: one executor per row: application, id, added (by its first task, where the part of the log that told
            it is gone), removed (NaN if it lived to the log's end), reason.
    """

    tasks: pd.DataFrame
    executors: pd.DataFrame


def read_event_logs(folder: Path) -> EventLog:
    """Read the event logs of all applications in a folder; tasks that belong to no streaming batch are left out.

    A last line cut off by a killed driver is ignored.

    Raises:
        EventLogError: there is no log, it is compressed, or another line is not JSON.
        KeyError, ValueError: an event lacks a field, or a file's name or a batch id no number.
        OSError: a file cannot be read.
    """
    tasks: list[tuple[Any, ...]] = []
    executors: dict[tuple[str, str], list[Any]] = {}
    for application, files in _logs(folder).items():
        stages: dict[int, tuple[str, int]] = {}  # their numbers begin anew with every application
        for event in chain.from_iterable(map(_events, files)):
            match event["Event"].removeprefix("SparkListener"):
                case "JobStart":
                    properties = event.get("Properties") or {}
                    if "streaming.sql.batchId" in properties:
                        owner = (properties["sql.streaming.queryId"], int(properties["streaming.sql.batchId"]))
                        stages.update(dict.fromkeys(event["Stage IDs"], owner))
                case "TaskEnd" if of := stages.get(event["Stage ID"]):
                    task = _task(event["Task Info"])
                    tasks.append((application, *of, event["Stage ID"], *task, *_parts(event)))
                    executors.setdefault((application, task[0]), [task[1], nan, ""])
                case "ExecutorAdded":
                    executors[application, event["Executor ID"]] = [event["Timestamp"] / 1000, nan, ""]
                case "ExecutorRemoved":
                    known = executors.get((application, event["Executor ID"]))
                    if known and isnan(known[1]):  # the exit of a decommissioned one follows as a second removal
                        known[1:] = event["Timestamp"] / 1000, event.get("Removed Reason", "")
                case "ApplicationEnd":
                    for (owned_by, _), known in executors.items():
                        if owned_by == application and isnan(known[1]):
                            known[1:] = event["Timestamp"] / 1000, "application ended"
    rows = [(*key, *value) for key, value in executors.items()]
    return EventLog(
        pd.DataFrame(tasks, columns=TASKS),
        pd.DataFrame(rows, columns=EXECUTORS).astype({"added": float, "removed": float}),
    )


def _task(info: dict[str, Any]) -> tuple[str, float, float, bool]:
    failed = info["Failed"] and not info["Killed"]
    return info["Executor ID"], info["Launch Time"] / 1000, info["Finish Time"] / 1000, failed


def _parts(event: dict[str, Any]) -> tuple[float, float]:
    """Seconds of deserialisation, and until the Python worker was ready."""
    known = (event.get("Task Metrics") or {}).get("Executor Deserialize Time")
    python = (a.get("Update", 0) for a in event["Task Info"].get("Accumulables", ()) if a.get("Name") in PYTHON)
    return nan if known is None else known / 1000, sum(map(float, python)) / 1000


def _logs(folder: Path) -> dict[str, list[Path]]:
    logs: dict[str, list[Path]] = {}
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        if path.is_dir() and path.name.startswith("eventlog_v2_"):
            parts = path.glob("events_*")
            logs[path.name.removeprefix("eventlog_v2_")] = sorted(parts, key=lambda p: int(p.name.split("_")[1]))
        elif path.is_file() and not path.name.startswith("."):
            logs[path.name.removesuffix(".inprogress")] = [path]
    if not any(logs.values()):
        raise EventLogError(
            f"{folder}: no Spark event log in it. Start the job with spark.eventLog.enabled and this folder."
        )
    for file in chain.from_iterable(logs.values()):
        if file.suffix in _COMPRESSED:
            raise EventLogError(f"{file}: a compressed event log. Set spark.eventLog.compress=false.")
    return logs


def _events(file: Path) -> Iterator[dict[str, Any]]:
    with file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            found = _EVENT.match(line)
            if found and found.group(1) not in _WANTED:
                continue  # most of a log is accumulators of no interest here
            try:
                event = json.loads(line)
            except ValueError as error:
                if not line.endswith("\n"):
                    return  # the driver was killed in the middle of its last line
                raise EventLogError(f"{file}:{number}: not JSON: {error}") from None
            if event.get("Event") in _WANTED:
                yield event
