"""Spark's event log: when every task of a streaming query ran, and when executors came and went.

A log is one file per application, or, when rolling, a folder `eventlog_v2_<application>` of files
`events_<n>_<application>`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

_COMPRESSED = {".zstd", ".lz4", ".snappy", ".lzf"}
_EVENT = re.compile(r'\{"Event":"([^"]+)"')
_QUERY_STARTED = "org.apache.spark.sql.streaming.StreamingQueryListener$QueryStartedEvent"

TASKS = ["application", "query", "batch", "stage", "executor", "start", "end", "failed"]
EXECUTORS = ["application", "executor", "added", "removed", "reason"]
QUERIES = ["query", "run", "name"]


class EventLogError(RuntimeError):
    """An event log that is missing or cannot be read; the message names the file and the remedy."""


@dataclass(frozen=True, eq=False)
class EventLog:
    """What the report needs of a log; times are wall times, epoch seconds.

    Attributes:
        tasks: one finished task attempt per row: application, query id, batch id, stage, executor, start, end, failed
            (not killed).
        executors: one executor per row: application, id, added, removed (NaN if it lived to the end), reason.
        queries: one start of a streaming query per row: query id, run id, name.
    """

    tasks: pd.DataFrame
    executors: pd.DataFrame
    queries: pd.DataFrame


@dataclass
class _Reading:
    tasks: list[tuple[Any, ...]] = field(default_factory=list)
    executors: dict[tuple[str, str], list[Any]] = field(default_factory=dict)
    queries: list[tuple[Any, ...]] = field(default_factory=list)
    stages: dict[int, tuple[str, int]] = field(default_factory=dict)


def read(folder: Path) -> EventLog:
    """Read every application's log in a folder.

    Raises:
        EventLogError: there is no log, it is compressed, or a line in the middle of it is not JSON.
    """
    reading = _Reading()
    for application, files in _logs(folder).items():
        reading.stages = {}  # stage numbers begin anew with every application
        for file in files:
            for event in _events(file):
                _take(reading, application, event)
    executors = [(*key, *value) for key, value in reading.executors.items()]
    return EventLog(
        pd.DataFrame(reading.tasks, columns=TASKS),
        pd.DataFrame(executors, columns=EXECUTORS).astype({"added": float, "removed": float}),
        pd.DataFrame(reading.queries, columns=QUERIES),
    )


def _logs(folder: Path) -> dict[str, list[Path]]:
    logs: dict[str, list[Path]] = {}
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        if path.is_dir() and path.name.startswith("eventlog_v2_"):
            parts = [p for p in path.iterdir() if p.name.startswith("events_")]
            logs[path.name.removeprefix("eventlog_v2_")] = sorted(parts, key=lambda p: int(p.name.split("_")[1]))
        elif path.is_file() and not path.name.startswith("."):
            logs[path.name.removesuffix(".inprogress")] = [path]
    if not any(logs.values()):
        raise EventLogError(
            f"{folder}: no Spark event log in it. Start the job with spark.eventLog.enabled and this folder."
        )
    for file in (f for files in logs.values() for f in files):
        if file.suffix in _COMPRESSED:
            raise EventLogError(f"{file}: a compressed event log. Set spark.eventLog.compress=false.")
    return logs


def _events(file: Path) -> Iterator[dict[str, Any]]:
    wanted = _HANDLERS.keys()
    with file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            found = _EVENT.match(line)
            if found and found.group(1) not in wanted:
                continue  # most of a log is accumulators of no interest here
            try:
                event = json.loads(line)
            except ValueError as error:
                if not line.endswith("\n"):
                    return  # the driver was killed in the middle of its last line
                raise EventLogError(f"{file}:{number}: not JSON: {error}") from None
            if event.get("Event") in wanted:
                yield event


def _take(reading: _Reading, application: str, event: dict[str, Any]) -> None:
    _HANDLERS[event["Event"]](reading, application, event)


def _job_started(reading: _Reading, application: str, event: dict[str, Any]) -> None:
    properties = event.get("Properties") or {}
    if "streaming.sql.batchId" in properties:
        owner = (properties["sql.streaming.queryId"], int(properties["streaming.sql.batchId"]))
        reading.stages.update(dict.fromkeys(event["Stage IDs"], owner))


def _task_ended(reading: _Reading, application: str, event: dict[str, Any]) -> None:
    if event["Stage ID"] not in reading.stages:
        return  # a task of something else than a streaming query
    query, batch = reading.stages[event["Stage ID"]]
    task = event["Task Info"]
    failed = task["Failed"] and not task["Killed"]
    start, end = task["Launch Time"] / 1000, task["Finish Time"] / 1000
    reading.tasks.append((application, query, batch, event["Stage ID"], task["Executor ID"], start, end, failed))


def _executor_added(reading: _Reading, application: str, event: dict[str, Any]) -> None:
    reading.executors[application, event["Executor ID"]] = [event["Timestamp"] / 1000, float("nan"), ""]


def _executor_removed(reading: _Reading, application: str, event: dict[str, Any]) -> None:
    known = reading.executors.get((application, event["Executor ID"]))
    if known and known[1] != known[1]:  # the first removal counts: the exit of a decommissioned one follows as a second
        known[1:] = event["Timestamp"] / 1000, event.get("Removed Reason", "")


def _application_ended(reading: _Reading, application: str, event: dict[str, Any]) -> None:
    for (owner, _), known in reading.executors.items():
        if owner == application and known[1] != known[1]:  # NaN: still there
            known[1:] = event["Timestamp"] / 1000, "application ended"


def _query_started(reading: _Reading, application: str, event: dict[str, Any]) -> None:
    reading.queries.append((event["id"], event["runId"], event.get("name")))


_HANDLERS = {
    "SparkListenerJobStart": _job_started,
    "SparkListenerTaskEnd": _task_ended,
    "SparkListenerExecutorAdded": _executor_added,
    "SparkListenerExecutorRemoved": _executor_removed,
    "SparkListenerApplicationEnd": _application_ended,
    _QUERY_STARTED: _query_started,
}
