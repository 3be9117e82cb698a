"""The truth of a run: what was produced, record for record, as files; and how what was counted compares."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from configs.sections import Kafka
from pipelines.jobs.events import LoadEvent, event_ms
from pipelines.jobs.windows import JOB, WINDOW_MS, result_key, totals_per_key
from pipelines.kafka.broker import read_records

Windows = Mapping[str, Mapping[str, int]]
"""Number of events (`n`) and sum of their sequence numbers (`seq_sum`), by the key of the window's record."""
_NOTHING = {"n": 0, "seq_sum": 0}


@dataclass(frozen=True)
class Counted:
    """What the main job has counted.

    Attributes:
        windows: {`windows.result_key`: {"n": events, "seq_sum": sum of their sequence numbers}}.
    """

    windows: Windows

    @property
    def totals(self) -> dict[str, dict[str, int]]:
        """The same of each key, sorted: the sums of its windows."""
        return totals_per_key(self.windows, JOB)


def count_windows(events: Iterable[LoadEvent]) -> dict[str, dict[str, int]]:
    """Return {`windows.result_key`: {"n": number of its events, "seq_sum": sum of their sequence numbers}}, sorted."""
    counts: dict[str, dict[str, int]] = {}
    for event in events:
        at = event_ms(event)
        start = at - at % WINDOW_MS
        known = counts.setdefault(result_key(JOB, event.key, start, start + WINDOW_MS), dict(_NOTHING))
        known["n"] += 1
        known["seq_sum"] += event.seq
    return dict(sorted(counts.items()))


def true_windows(expected: Iterable[LoadEvent], withheld: Iterable[LoadEvent]) -> dict[str, Windows]:
    """Return what the job's windows have to come to.

    Args:
        expected: events that live records count.
        withheld: events that come when their windows are final.

    Returns:
        `live`: as `count_windows`, of what live records alone come to; `corrected`: the windows in which some are
        withheld, as they are right, and as they are after a backfill.
    """
    live, late = count_windows(expected), count_windows(withheld)
    both = {name: {of: many + live.get(name, _NOTHING)[of] for of, many in one.items()} for name, one in late.items()}
    return {"live": live, "corrected": both}


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


def read_counts(kafka: Kafka, start: Mapping[int, int] | None = None) -> Counted:
    """Read the job's counts of every window from `results`: the last record of a key holds; an empty one takes it away.

    Args:
        kafka: the broker.
        start: first offset of this run, by partition; None reads the whole topic.

    Raises:
        BrokerError: no broker answers, the topic is not there, or nothing more came for 30 s.
        ValueError: a record is no JSON, or kafka-python has no such security option.
        KeyError: a record lacks `n` or `seq_sum`.
    """
    first = start or {}
    newest: dict[str, bytes] = {}
    for record in read_records(kafka, "results"):
        if record.key and record.key.startswith(f"{JOB}:") and record.offset >= first.get(record.partition, 0):
            newest[record.key] = record.value
    told = {name: json.loads(value) for name, value in newest.items() if value}  # else it was taken back
    return Counted({name: {of: one[of] for of in _NOTHING} for name, one in told.items()})


def compare_counts(truth: Mapping[str, Any], found: Counted) -> dict[str, int]:
    """Compare the job's windows with what was produced.

    A window of which some records are withheld has two right counts: that of live records alone, and the corrected one.
    Equal numbers with different sums of sequence numbers count as one record lost and one duplicated.

    Args:
        truth: content of `truth.json`; `produced` and `windows` are read.
        found: as `read_counts` has them.

    Returns:
        Numbers of records: `produced` and `counted` (in all), `lost` (fewer counted than should be) and `duplicated`
        (more counted), summed over keys and windows, and `late_dropped`: those that are missing in windows that were
        not corrected, because they came too late for live records. produced − late_dropped − lost + duplicated =
        counted.

    Raises:
        KeyError: `truth` lacks `produced` or `windows`, or a window of either lacks `n` or `seq_sum`.
    """
    live: Windows = truth["windows"]["live"]
    corrected: Windows = truth["windows"]["corrected"]
    lost = duplicated = dropped = 0
    for name in {*live, *corrected, *found.windows}:
        alone, have = live.get(name, _NOTHING), found.windows.get(name, _NOTHING)
        right = corrected.get(name, alone)
        want = alone if have["n"] <= alone["n"] else right
        swapped = want["n"] == have["n"] and want["seq_sum"] != have["seq_sum"]
        lost += max(0, want["n"] - have["n"]) + swapped
        duplicated += max(0, have["n"] - want["n"]) + swapped
        dropped += right["n"] - want["n"]
    counted = sum(entry["n"] for entry in found.windows.values())
    return {
        "produced": truth["produced"], "counted": counted, "lost": lost, "duplicated": duplicated,
        "late_dropped": dropped,
    }  # fmt: skip
