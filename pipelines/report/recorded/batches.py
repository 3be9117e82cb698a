"""The micro-batches of a query, from its progress log."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pipelines.jobs.progress_log import kept_files
from pipelines.report.recorded.lines import RunError, json_lines


@dataclass(frozen=True, eq=False)
class QueryBatches:
    """The query's micro-batches in the order they were committed.

    Attributes:
        ids: (B,) batch ids.
        runs: (B,) run id of the query; a new one after a restart.
        query: the query's id, which survives restarts.
        started, committed: (B,) epoch seconds; committed = trigger time + the whole duration of the trigger.
        rows: (B,) input records.
        offsets_s: (B,) seconds in which the driver waited for the source to tell its newest offsets.
        watermarks: (B,) event time, epoch seconds, that the batch went by; NaN for none yet.
        ends: per partition of the topic, (B,) next offset after the batch; never falls.
    """

    ids: NDArray[np.int64]
    runs: list[str]
    query: set[str]
    started: NDArray[np.float64]
    committed: NDArray[np.float64]
    rows: NDArray[np.int64]
    ends: dict[int, NDArray[np.int64]]
    offsets_s: NDArray[np.float64]
    watermarks: NDArray[np.float64]


def read_batches(path: Path, topic: str = "events") -> QueryBatches:
    """Read a query's `<job>.progress.jsonl` (one Spark progress object per line); batches are sorted by commit time.

    Args:
        path: of the file.
        topic: that the query reads, as the broker knows it.

    Raises:
        RunError: the file is missing, broken or empty.
        KeyError, ValueError: a progress object lacks a field, or its time or offset cannot be read.
        OSError: the file cannot be read.
    """
    rows = [row for file in kept_files(path) or [path] for row in json_lines(file)]
    if not rows:
        raise RunError(f"{path}: empty; the query finished no batch.")
    batches = pd.DataFrame(rows)
    batches["started"] = [pd.Timestamp(time).timestamp() for time in batches["timestamp"]]
    batches["committed"] = batches["started"] + [
        took.get("triggerExecution", 0) / 1000 for took in batches["durationMs"]
    ]
    batches = batches.sort_values("committed", kind="stable")
    told = pd.DataFrame([_end_offsets(sources, topic) for sources in batches["sources"]])
    ends = told.fillna(0).astype(np.int64).cummax()
    return QueryBatches(
        ids=batches["batchId"].to_numpy(),
        runs=batches["runId"].tolist(),
        query=set(batches["id"]),
        started=batches["started"].to_numpy(),
        committed=batches["committed"].to_numpy(),
        rows=batches["numInputRows"].to_numpy(),
        ends={int(partition): ends[partition].to_numpy() for partition in ends},
        offsets_s=np.array([took.get("latestOffset", 0) / 1000 for took in batches["durationMs"]], float),
        watermarks=np.array([_watermark(row) for row in batches.to_dict("records")], float),
    )


def _watermark(batch: dict[str, Any]) -> float:
    """Spark tells the epoch's begin as long as there is none, and nothing of a query without one."""
    told = batch.get("eventTime")
    text = told.get("watermark") if isinstance(told, dict) else None
    at = pd.Timestamp(text).timestamp() if text else 0.0
    return at if at > 0 else float("nan")


def _end_offsets(sources: list[dict[str, Any]], topic: str) -> dict[int, int]:
    """Next offset per partition of the topic after a batch; Spark writes it as an object or as JSON in a string."""
    batches: dict[int, int] = {}
    for source in sources:
        end = source["endOffset"]
        end = json.loads(end) if isinstance(end, str) else end
        if isinstance(end, dict):
            batches |= {int(p): int(o) for p, o in end.get(topic, {}).items()}
    return batches
