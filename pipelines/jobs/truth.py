"""The truth of a run: what was produced, record for record, as files in the run's folder."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.jobs.events import LoadEvent


def per_key(events: Iterable[LoadEvent]) -> dict[str, dict[str, int]]:
    """Number of events and sum of their sequence numbers, by key."""
    counts: dict[str, dict[str, int]] = defaultdict(lambda: {"n": 0, "seq_sum": 0})
    for event in events:
        counts[event.key]["n"] += 1
        counts[event.key]["seq_sum"] += event.seq
    return dict(sorted(counts.items()))


def read_warm_up(run_dir: Path) -> list[LoadEvent]:
    """The warm-up events of this run so far."""
    path = run_dir / "warmup.json"
    return [LoadEvent(*entry) for entry in json.loads(path.read_text())] if path.is_file() else []


def write_warm_up(run_dir: Path, events: Sequence[LoadEvent]) -> None:
    """Replace the warm-up events of this run."""
    (run_dir / "warmup.json").write_text(json.dumps(events))


def write_truth(
    run_dir: Path,
    truth: dict[str, Any],
    places: Sequence[Any],
    produced_at: NDArray[np.float64],
    late: NDArray[np.bool_],
) -> None:
    """Write `truth.json`, `produced.csv` and `produced.npz`.

    Args:
        run_dir: folder of the run.
        truth: content of `truth.json`; `wall_start` is second 0 of `produced.csv`.
        places: (N,) partition and offset of every acknowledged record of the replay.
        produced_at: (N,) epoch seconds at which it was produced.
        late: (N,) whether that was later than it happened.
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
