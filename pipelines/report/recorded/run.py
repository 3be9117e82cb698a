"""A run's folder as one value."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from configs.contract import Contract
from pipelines.report.recorded import eventlog
from pipelines.report.recorded.batches import QueryBatches, read_batches
from pipelines.report.recorded.eventlog import EventLog
from pipelines.report.recorded.lines import RunError, existing, json_lines, json_object
from tidecast.clock import Clock

TOPICS = ("metrics", "forecasts", "decisions", "outcomes", "rejects", "heartbeats")
_INFO = ("id", "policy", "job", "time_scale", "replay", "contract")


@dataclass(frozen=True, eq=False)
class RecordedRun:
    """Everything a run left behind; times are wall times unless they are said to be trace times.

    Attributes:
        folder: where it lies.
        info: `run.json`.
        contract: the contract of the job that is reported.
        start, end: of the live load: first and last moment of production.
        clock: trace time at a wall time.
        metrics, forecasts, decisions, outcomes, rejects: one message per row, of this job, in order of wall time.
            Decisions have two columns more: `evaluations` that came to the same, and the last one's time, `until`.
        produced: one produced record per row: partition, offset, produced_at (live load only).
        truth: what the load generator says it produced.
        counts: produced, counted, lost, duplicated.
        batches: the query's micro-batches.
        log: tasks and executors of Spark's event log.
    """

    folder: Path
    info: dict[str, Any]
    contract: Contract
    start: float
    end: float
    clock: Clock
    metrics: pd.DataFrame
    forecasts: pd.DataFrame
    decisions: pd.DataFrame
    outcomes: pd.DataFrame
    rejects: pd.DataFrame
    produced: pd.DataFrame
    truth: dict[str, Any]
    counts: dict[str, Any]
    batches: QueryBatches
    log: EventLog

    @cached_property
    def tasks(self) -> pd.DataFrame:
        """The tasks of the reported query alone."""
        return self.log.tasks[self.log.tasks["query"].isin(self.batches.query)]

    @cached_property
    def seconds(self) -> pd.DataFrame:
        """The seconds of metrics of the live load, as the agent saw them."""
        live = self.metrics["wall_time"].between(self.start, self.end + 1)
        return self.metrics[(self.metrics["kind"] == "interval") & self.metrics["executors"].notna() & live]

    @cached_property
    def arrivals(self) -> pd.DataFrame:
        """The intervals that say what arrived: the history, which knows no executors, and the live seconds."""
        history = self.metrics[(self.metrics["kind"] == "interval") & self.metrics["executors"].isna()]
        return pd.concat([history, self.seconds]) if len(history) else self.seconds

    @cached_property
    def live_decisions(self) -> pd.DataFrame:
        """The decisions made while the load ran."""
        return self.decisions[self.decisions["wall_time"].between(self.start, self.end)]

    @cached_property
    def live_forecasts(self) -> pd.DataFrame:
        """The forecasts served while the load ran."""
        return self.forecasts[self.forecasts["wall_time"].between(self.start, self.end)]

    @cached_property
    def executors(self) -> pd.DataFrame:
        """The executors of the applications that ran the reported query, by the time they were added."""
        return self.log.executors.sort_values("added", ignore_index=True)


def load(folder: Path) -> RecordedRun:
    """Read a run's folder.

    Raises:
        RunError: a file is missing or broken.
        EventLogError: Spark's event log is missing or cannot be read.
    """
    info = json_object(folder / "run.json")
    if missing := [key for key in _INFO if key not in info]:
        raise RunError(f"{folder / 'run.json'}: {missing[0]!r} is missing; it holds {', '.join(info)}.")
    contract = Contract.model_validate(info["contract"])
    truth = json_object(folder / "truth.json")
    frames = {topic: _frame(folder / f"{topic}.jsonl", info["job"]) for topic in TOPICS}
    # A retried micro-batch says the same thing twice.
    frames["decisions"] = _evaluated(_first(frames["decisions"], "id"), frames.pop("heartbeats"))
    batches = read_batches(folder / f"{info['job']}.progress.jsonl")
    log = _of_query(eventlog.read(folder / "eventlog"), batches)
    start, end = float(truth["wall_start"]), float(truth["wall_end"])
    return RecordedRun(
        folder=folder, info=info, contract=contract, start=start, end=end, truth=truth,
        clock=_clock(info["replay"], start, float(info["time_scale"])),
        produced=_produced(folder / "produced.npz", start),
        counts=json_object(folder / "counts.json"), batches=batches, log=log, **frames,
    )  # fmt: skip


_COLUMNS = {
    "metrics": ["job", "kind", "time", "wall_time", "time_scale", "span_s", "arrival_rps", "executors", "lag_records"],
    "forecasts": ["job", "time", "wall_time", "step_s", "levels", "quantiles", "model", "version", "kind"],
    "decisions": ["id", "job", "time", "wall_time", "policy", "executors", "reason", "codes", "inputs", "expected"],
    "outcomes": [
        "decision_id", "job", "wall_time", "status", "reason", "executors_before", "executors_after", "target",
        "decided_at", "applied_at", "confirmed_at", "useful_at", "expected", "observed",
    ],
    "heartbeats": ["job", "by", "wall_time", "standing", "repeats"],
    "rejects": ["topic", "partition", "offset", "by", "reason", "value", "wall_time"],
}  # fmt: skip


def _frame(path: Path, job: str) -> pd.DataFrame:
    rows = json_lines(path) if path.exists() or path.stem != "heartbeats" else []  # older runs have none
    if path.stem != "rejects":
        rows = [row for row in rows if row["job"] == job]
    frame = pd.DataFrame(rows) if rows else pd.DataFrame(columns=_COLUMNS[path.stem])
    return frame.sort_values("wall_time", kind="stable", ignore_index=True)


def _evaluated(decisions: pd.DataFrame, beats: pd.DataFrame) -> pd.DataFrame:
    """The decisions with what signs of life say of the evaluations that came to the same and were not written."""
    standing = beats[beats["by"] == "autoscaler"].groupby("standing")
    repeats = decisions["id"].map(standing["repeats"].max()).fillna(0)
    until = decisions["id"].map(standing["wall_time"].max()).fillna(decisions["wall_time"])
    return decisions.assign(evaluations=1 + repeats.astype(int), until=until.astype(float))


def _first(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    return frame.drop_duplicates(column, ignore_index=True)


def _produced(path: Path, start: float) -> pd.DataFrame:
    with np.load(existing(path)) as arrays:
        frame = pd.DataFrame({name: arrays[name] for name in ("partition", "offset", "produced_at")})
    return frame[frame["produced_at"] >= start - 1].reset_index(drop=True)  # without the warm-up, long before


def _of_query(log: EventLog, batches: QueryBatches) -> EventLog:
    """The log without applications that never ran the query, as the other job of the same run."""
    applications = set(log.tasks.loc[log.tasks["query"].isin(batches.query), "application"])
    executors = log.executors[log.executors["application"].isin(applications)]
    return EventLog(log.tasks, executors, log.queries)


def _clock(replay: dict[str, Any], start: float, scale: float) -> Clock:
    """The replay's clock: the trace's live part begins when production begins."""
    begin = pd.Timestamp(replay["live_start"])
    zoned = begin if begin.tzinfo else begin.tz_localize(replay.get("timezone", "UTC"))
    return Clock(start, zoned.timestamp(), scale)
