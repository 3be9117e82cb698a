"""What a session left in its folder, as numbers: latency of live records, progress of the replay, rates decided."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from models.policy.replays.recomputed import recompute_rate
from pipelines.bench.backfill.arrangement import Arrangement
from pipelines.bench.backfill.loads import PARTITIONS, Floats, Integers
from pipelines.bench.backfill.ratio import NEVER, PER_S, latency_quantile
from pipelines.bench.backfill.session.job import REPLAY, REPLAYED
from pipelines.report.recorded.batches import QueryBatches, read_batches
from pipelines.report.recorded.lines import json_lines
from pipelines.report.seconds import commit_times

WARM_BATCHES, SLACK = 5, 1.3
"""Batches with records before a load begins; how many times the records that should have come a batch may hold."""


def read_session(folder: Path, how: Arrangement) -> dict[str, Any]:
    """Read a cell's folder.

    Returns:
        `seconds` (wall, from the load's begin to its end, or to the end of a replay that was to be done), `latency`
        (hundredths of a second by the second of production), `p99_s` (None without records), `limit_s`; `done_s` (from
        the begin until all was replayed; in an application of its own from its first batch on; None: it was not),
        `rps` (replayed records/s in `seconds`), `exact` (whether the plan saw just the range; None: not to its end);
        `rates` ((seconds, records/s) as decided), `decisions` (how many carried a rate) and `differing` (how many of
        these do not follow from their inputs to the bit); `planned`, `futures`, `refused`, `schedule` of a deadline.

    Raises:
        RunError, OSError: a file is missing or broken.
        KeyError, ValueError: one lacks a field.
    """
    told = json.loads((folder / "session.json").read_text())
    job, began = told["job"], told["began"]
    live = queries_of(folder / f"{job}.progress.jsonl")[job]
    replay = _replay_lines(folder, job)
    past = told["order"]["past"] if how.records else {}
    done_at = None if replay is None or not past else _reached(read_batches(replay), past)
    ended = told["ended"] if done_at is None or not how.until_done else done_at
    seconds = min(ended - began, how.most_s)
    with np.load(folder / "produced.npz") as produced:
        latency = latency_by_second(
            produced["partition"], produced["offset"], produced["produced_at"], read_batches(live), began, seconds
        )
    start = began if how.apart is None or replay is None else _first_start(read_batches(replay), began)
    decided = json_lines(folder / "decisions.jsonl")
    with_rate = [one for one in decided if one.get("replay_rps") is not None and "replay" in one["inputs"]]
    return {
        "seconds": seconds, "latency": latency, "p99_s": latency_quantile([latency]), "limit_s": told["limit_s"],
        "done_s": None if done_at is None else done_at - start,
        "rps": None if replay is None else _between(replay, told["order"], began, began + seconds) / seconds,
        "exact": None if done_at is None or replay is None else counted_rows(replay, done_at) == how.records,
        "rates": [(one["wall_time"] - began, one["replay_rps"]) for one in with_rate],
        "decisions": len(with_rate),
        "differing": sum(recompute_rate(one["inputs"]["replay"]) != one["replay_rps"] for one in with_rate),
        **{name: told.get(name) for name in ("planned", "futures", "refused", "schedule")},
    }  # fmt: skip


def latency_by_second(
    partition: Integers, offset: Integers, produced_at: Floats, batches: QueryBatches, began: float, seconds: float
) -> list[list[int]]:
    """Return the latency of live records, hundredths of a second, by the second of their production.

    Args:
        partition: (N,) of the records.
        offset: (N,) of them.
        produced_at: (N,) epoch seconds.
        batches: of the live query.
        began: epoch seconds of the first second.
        seconds: whole ones of these are looked at.
    """
    committed = commit_times(partition, offset, batches.committed, batches.ends)
    took = np.minimum(np.round((committed - produced_at) * PER_S), NEVER)
    second = np.floor(produced_at - began).astype(np.int64)
    found: list[list[int]] = [[] for _ in range(int(seconds))]
    for at, one in zip(second.tolist(), took.tolist(), strict=True):
        if 0 <= at < len(found):
            found[at].append(int(one))
    return found


def queries_of(path: Path) -> dict[str, Path]:
    """Split an application's progress log by the name of the query; returns the files, beside it."""
    lines: dict[str, list[str]] = {}
    for one in json_lines(path):
        lines.setdefault(one["name"], []).append(json.dumps(one))
    found = {name: path.with_name(f"{path.name}.{name}") for name in lines}
    for name, file in found.items():
        file.write_text("\n".join(lines[name]) + "\n")
    return found


def committed_ends(path: Path, query: str) -> dict[int, int]:
    """Return the next offset per partition of `events` that a running query has committed."""
    ends: dict[int, int] = {}
    for one in json_lines(path) if path.is_file() else []:
        if one["name"] == query:
            ends |= _offsets(one, "endOffset")
    return ends


def replayed_at(path: Path, query: str, past: Mapping[str, int]) -> float | None:
    """Return when a running query had committed all of a range, epoch seconds; None: it has not."""
    ends = committed_ends(path, query)
    if not all(ends.get(int(part), 0) >= end for part, end in past.items()):
        return None
    return _reached(read_batches(queries_of(path)[query]), past)


def keeps_up(path: Path, query: str, rps: float) -> bool:
    """Return whether a running query takes what comes: WARM_BATCHES with records, and no backlog in the newest two.

    A batch without a backlog has the records that came since the one before began, and leaves none to the next.
    """
    lines = [one for one in json_lines(path) if one["name"] == query] if path.is_file() else []
    taken = [one for one in lines if one["numInputRows"]]
    began = [pd.Timestamp(one["timestamp"]).timestamp() for one in taken]
    rows = [one["numInputRows"] for one in taken]
    newest = range(len(taken))[-2:]
    return len(taken) >= WARM_BATCHES and all(
        rows[at] <= SLACK * rps * (began[at] - began[at - 1]) + PARTITIONS
        and _offsets(taken[at], "endOffset") == _offsets(taken[at], "latestOffset")
        for at in newest
    )


def counted_rows(path: Path, until: float) -> int:
    """Return how many records of its range a replay's plan saw in the batches that were committed by then."""
    batches, lines = read_batches(path), json_lines(path)
    known = {one["batchId"]: one.get("observedMetrics", {}).get(REPLAYED, {}).get("n") or 0 for one in lines}
    within = batches.ids[batches.committed <= until + 1e-3]
    return sum(known[int(one)] for one in set(within.tolist()))


def _offsets(progress: Mapping[str, Any], name: str) -> dict[int, int]:
    """Offsets per partition of `events` that a progress tells under a name of Spark's."""
    found: dict[int, int] = {}
    for source in progress["sources"]:
        told = source[name]
        told = json.loads(told) if isinstance(told, str) else told
        found |= {int(part): at for part, at in (told or {}).get("events", {}).items()}
    return found


def _replay_lines(folder: Path, job: str) -> Path | None:
    """Progress of the replay's query, in whichever application it ran; None where it has finished no batch."""
    for name in (f"{job}-{REPLAY}", job):
        path = folder / f"{name}.progress.jsonl"
        if path.is_file() and REPLAY in (found := queries_of(path)):
            return found[REPLAY]
    return None


def _reached(batches: QueryBatches, past: Mapping[str, int]) -> float | None:
    """Commit time of the batch with which all of a range was read."""
    whole = np.ones(len(batches.committed), dtype=bool)
    for part, end in past.items():
        whole &= batches.ends.get(int(part), np.zeros(len(whole), np.int64)) >= end
    return float(batches.committed[int(np.argmax(whole))]) if whole.any() else None


def _first_start(batches: QueryBatches, began: float) -> float:
    return max(float(batches.started[0]), began)


def _between(path: Path, order: Mapping[str, Any], began: float, ended: float) -> int:
    return _replayed(path, order, ended) - _replayed(path, order, began)


def _replayed(path: Path, order: Mapping[str, Any], until: float) -> int:
    """Records of a range that were committed by then."""
    batches, first, past = read_batches(path), order["first"], order["past"]
    count = int((batches.committed <= until + 1e-3).sum())
    ends = {part: int(ends[count - 1]) for part, ends in batches.ends.items()} if count else {}
    return sum(min(max(ends.get(int(part), at), at), past[part]) - at for part, at in first.items())
