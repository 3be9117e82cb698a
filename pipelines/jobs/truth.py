"""The truth of a run: what was produced, record for record, as files; and how what was counted compares."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from configs.sections import Kafka
from pipelines.jobs.events import LoadEvent
from pipelines.kafka.broker import read_records

Counts = Mapping[str, Mapping[str, int]]
"""Number of events (`n`) and sum of their sequence numbers (`seq_sum`), by key."""


def count_per_key(events: Iterable[LoadEvent]) -> dict[str, dict[str, int]]:
    """Return {key: {"n": number of its events, "seq_sum": sum of their sequence numbers}}, sorted by key."""
    counts: dict[str, dict[str, int]] = defaultdict(lambda: {"n": 0, "seq_sum": 0})
    for event in events:
        counts[event.key]["n"] += 1
        counts[event.key]["seq_sum"] += event.seq
    return dict(sorted(counts.items()))


def read_warm_up(run_dir: Path) -> list[LoadEvent]:
    """Read the run's warm-up events from `warmup.json`; empty if there is no such file.

    Raises:
        OSError, ValueError: the file cannot be read, or is no JSON.
    """
    path = run_dir / "warmup.json"
    return [LoadEvent(*entry) for entry in json.loads(path.read_text())] if path.is_file() else []


def write_warm_up(run_dir: Path, events: Sequence[LoadEvent]) -> None:
    """Write the run's warm-up events to `warmup.json`, in place of those there.

    Raises:
        OSError: it cannot be written.
    """
    (run_dir / "warmup.json").write_text(json.dumps(events))


def write_truth(
    run_dir: Path, truth: dict[str, Any], places: Sequence[Any], produced_at: NDArray[np.float64],
    late: NDArray[np.bool_],
) -> None:  # fmt: skip
    """Write `truth.json`, `produced.csv` (second, records) and `produced.npz` (place, time and `late` per record).

    `truth.json` is written last, so that its presence shows that all three are complete. Files there are replaced.

    Args:
        run_dir: folder of the run, must exist.
        truth: JSON values, content of `truth.json`; `wall_start` (epoch seconds) is second 0 of `produced.csv`.
        places: (N,) objects with the `partition` and `offset` of every acknowledged record of the replay.
        produced_at: (N,) epoch seconds at which it was produced.
        late: (N,) whether that was later than it happened.

    Raises:
        OSError: a file cannot be written.
        ValueError: a record was produced 1 s or more before `wall_start`.
        KeyError: `truth` lacks `wall_start`.
        TypeError: `truth` holds a value that JSON does not know.
    """
    np.savez_compressed(
        run_dir / "produced.npz",
        partition=np.array([place.partition for place in places], dtype=np.int32),
        offset=np.array([place.offset for place in places], dtype=np.int64),
        produced_at=produced_at,
        late=late,
    )
    seconds = np.bincount((produced_at - truth["wall_start"]).astype(np.int64)).tolist()
    with (run_dir / "produced.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("second", "produced"), *enumerate(seconds)])
    # Last: whoever sees it finds the others complete.
    (run_dir / "truth.json").write_text(json.dumps(truth, indent=1))


def read_counts(kafka: Kafka, start: Mapping[int, int] | None = None) -> dict[str, dict[str, int]]:
    """Read the job's final count of every key from `results`: the last record of a key holds.

    Args:
        kafka: the broker.
        start: first offset of this run, by partition; None reads the whole topic.

    Returns:
        {key: {"n": events, "seq_sum": sum of their sequence numbers}}.

    Raises:
        BrokerError: no broker answers, the topic is not there, or nothing more came for 30 s.
        kafka.errors.KafkaTimeoutError: the broker gives no offsets within 30 s.
        ValueError: a record is no JSON, or kafka-python has no such security option.
        KeyError: a record lacks `key`, `n` or `seq_sum`.
    """
    first, records = start or {}, read_records(kafka, "results")
    totals = (json.loads(r.value) for r in records if r.value is not None and r.offset >= first.get(r.partition, 0))
    return {total["key"]: {"n": total["n"], "seq_sum": total["seq_sum"]} for total in totals}


def compare_counts(truth: Mapping[str, Any], found: Counts) -> dict[str, int]:
    """Compare the job's counts with what was produced.

    Equal numbers of a key with different sums of sequence numbers count as one record lost and one duplicated.

    Args:
        truth: content of `truth.json`; `produced` and `per_key` are read.
        found: counts by key, from `read_counts`.

    Returns:
        Numbers of records: `produced` and `counted` (in all), `lost` (fewer counted than produced) and `duplicated`
        (more counted), the last two summed over the keys.

    Raises:
        KeyError: `truth` lacks `produced` or `per_key`, or a key of either lacks `n` or `seq_sum`.
    """
    expected: Counts = truth["per_key"]
    lost = duplicated = 0
    nothing = {"n": 0, "seq_sum": 0}
    for key in set(expected) | set(found):
        want, have = expected.get(key, nothing), found.get(key, nothing)
        swapped = want["n"] == have["n"] and want["seq_sum"] != have["seq_sum"]
        lost += max(0, want["n"] - have["n"]) + swapped
        duplicated += max(0, have["n"] - want["n"]) + swapped
    total = sum(entry["n"] for entry in found.values())
    return {"produced": truth["produced"], "counted": total, "lost": lost, "duplicated": duplicated}
