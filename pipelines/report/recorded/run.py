"""A run's folder as one value."""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from configs.contract import Contract
from models.policy.received.rehearsal import Rehearsal
from pipelines.registry.forecasters import read_rehearsal
from pipelines.report.recorded import eventlog
from pipelines.report.recorded.backfill import RecordedBackfill, read_backfill
from pipelines.report.recorded.batches import QueryBatches, read_batches
from pipelines.report.recorded.dump import DUMPED
from pipelines.report.recorded.lines import RunError, existing, json_lines, json_object
from tidecast.control import Clock

_INFO = ("id", "policy", "job", "time_scale", "replay", "contract")


@dataclass(frozen=True, eq=False)
class RecordedRun:
    """Everything in a run's folder; times are epoch seconds of the wall clock unless they are said to be trace times.

    Attributes:
        folder: where it lies.
        info: `run.json`.
        contract: the contract of the job that is reported.
        start, end: of the live load: first and last moment of production.
        clock: trace time at a wall time.
        arrivals: the intervals of metrics that say what arrived: the history, which knows no executors, and live ones.
        forecasts, decisions: one message per row, of this job and made while the load ran, in order of wall time.
            Decisions have two columns more: `evaluations` that came to the same, and the last one's time, `until`.
        outcomes, rejects: one message per row. What a message leaves out is NaN, in these tables and those above.
        produced: one produced record per row: partition, offset, produced_at (live load only).
        truth: what the load generator says it produced.
        counts: produced, counted, lost, duplicated.
        batches: the query's micro-batches.
        tasks: of the query, as in `eventlog.EventLog`.
        executors: of the applications that ran the query, by the time they were added.
        rehearsal: what the job's policies had learned of its past when the load began; None where they had nothing.
        backfill: of the live day; None where it had none.
    """

    folder: Path
    info: dict[str, Any]
    contract: Contract
    start: float
    end: float
    clock: Clock
    arrivals: pd.DataFrame
    forecasts: pd.DataFrame
    decisions: pd.DataFrame
    outcomes: pd.DataFrame
    rejects: pd.DataFrame
    produced: pd.DataFrame
    truth: dict[str, Any]
    counts: dict[str, Any]
    batches: QueryBatches
    tasks: pd.DataFrame
    executors: pd.DataFrame
    rehearsal: Rehearsal | None = None
    backfill: RecordedBackfill | None = None


def load_run(folder: Path) -> RecordedRun:
    """Read a run's folder: its JSON files, records, query progress and Spark's event log.

    Raises:
        RunError: a file is missing or broken, or `run.json` lacks a key.
        EventLogError: Spark's event log is missing or cannot be read.
        KeyError: another file lacks a field.
        TypeError, ValueError: a file holds a wrong value, e.g. `run.json` an invalid contract; `produced.npz` is no
            archive.
        OSError: a file cannot be read.
    """
    info = json_object(folder / "run.json")
    if missing := [key for key in _INFO if key not in info]:
        raise RunError(f"{folder / 'run.json'}: {missing[0]!r} is missing; it holds {', '.join(info)}.")
    job, truth = info["job"], json_object(folder / "truth.json")
    start, end = float(truth["wall_start"]), float(truth["wall_end"])
    metrics, forecasts, decisions, outcomes, rejects, beats = (
        _messages(folder, topic, job)
        for topic in ("metrics", "forecasts", "decisions", "outcomes", "rejects", "heartbeats")
    )
    intervals = metrics[metrics["kind"] == "interval"]
    history = intervals["executors"].isna()
    live = intervals["wall_time"].between(start, end + 1)
    decisions = _evaluated(decisions.drop_duplicates("id"), beats)  # a retried micro-batch says the same twice
    batches = read_batches(folder / f"{job}.progress.jsonl")
    log = eventlog.read_event_logs(folder / "eventlog")
    tasks = log.tasks[log.tasks["query"].isin(batches.query)]
    executors = log.executors[log.executors["application"].isin(tasks["application"])]  # not those of another job
    return RecordedRun(
        folder=folder, info=info, contract=Contract.model_validate(info["contract"]), start=start, end=end,
        clock=_clock(info["replay"], start, float(info["time_scale"])),
        arrivals=pd.concat([intervals[history], intervals[~history & live]]),
        forecasts=forecasts[forecasts["wall_time"].between(start, end)],
        decisions=decisions[decisions["wall_time"].between(start, end)],
        outcomes=outcomes, rejects=rejects, produced=_produced(folder / "produced.npz", start), truth=truth,
        counts=json_object(folder / "counts.json"), batches=batches, tasks=tasks,
        executors=executors.sort_values("added", ignore_index=True), rehearsal=_rehearsal(folder, job, start),
        backfill=read_backfill(folder),
    )  # fmt: skip


def _rehearsal(folder: Path, job: str, start: float) -> Rehearsal | None:
    """The one that the autoscaler had at the start of the load, else the first that it was given.

    It may have had that of an earlier champion before; one that was trained in the run brings one of its own.
    """
    times = {version: version.stat().st_mtime for version in (folder / "autoscaler.rehearsals" / job).glob("*")}
    given = sorted(times, key=times.__getitem__)
    had = [version for version in given if times[version] <= start]
    return read_rehearsal((had[-1:] or given)[0]) if given else None


def _messages(folder: Path, topic: str, job: str) -> pd.DataFrame:
    path = folder / f"{topic}.jsonl"
    rows = json_lines(path) if path.exists() or topic != "heartbeats" else []  # older runs have none
    rows = [row for row in rows if row.get("job", job) == job]  # rejects have no job
    declared = [field.name for field in fields(DUMPED[topic])]  # a message leaves out what is None
    frame = pd.DataFrame(rows, columns=[*dict.fromkeys(chain(declared, *rows))])
    return frame.sort_values("wall_time", kind="stable", ignore_index=True)


def _evaluated(decisions: pd.DataFrame, beats: pd.DataFrame) -> pd.DataFrame:
    """The decisions with what signs of life say of the evaluations that came to the same and were not written."""
    standing = beats[beats["by"] == "autoscaler"].groupby("standing")
    repeats = decisions["id"].map(standing["repeats"].max()).fillna(0)
    until = decisions["id"].map(standing["wall_time"].max()).fillna(decisions["wall_time"])
    return decisions.assign(evaluations=1 + repeats.astype(int), until=until.astype(float))


def _produced(path: Path, start: float) -> pd.DataFrame:
    with np.load(existing(path)) as arrays:
        frame = pd.DataFrame({name: arrays[name] for name in ("partition", "offset", "produced_at")})
    return frame[frame["produced_at"] >= start - 1].reset_index(drop=True)  # without the warm-up, long before


def _clock(replay: dict[str, Any], start: float, scale: float) -> Clock:
    """The replay's clock: the trace's live part begins when production begins."""
    begin = pd.Timestamp(replay["live_start"])
    zoned = begin if begin.tzinfo else begin.tz_localize(replay.get("timezone", "UTC"))
    return Clock(start, zoned.timestamp(), scale)
