"""How often a managed job's state is kept whole: Young's interval, set on Spark's own settings when its query starts.

With changelog checkpoints every micro-batch keeps what it has changed, and a restart loses nothing. A snapshot of all
of the state is where a restart begins to restore, so its interval is one of snapshots alone, and the trigger stays as
it was set (unified batch-stream runtime paper, checkpoints and recovery).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import groupby, pairwise
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Any, NamedTuple

from configs.limits import RecoveryTerms
from models.contract.slow.recovery import checkpoint_interval, youngs_interval
from pipelines.jobs.progress_log import newest_lines, progress_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DELTAS = "spark.sql.streaming.stateStore.minDeltasForSnapshot"
"""Micro-batches after which a commit makes a snapshot on the executor's disk."""
MAINTENANCE = "spark.sql.streaming.stateStore.maintenanceInterval"
"""How often a thread of each executor brings the newest snapshot to the checkpoint."""
FIRST_MTBF_S = 3600.0
"""Mean time between failures that is believed of a job that has not run for long; it weighs as one failure."""
LEAST_MAINTENANCE_S, MOST_MAINTENANCE_S = 5, 60
"""Spark's own is 60 s; the thread looks through the folders of every state store."""
_TAKEN = ("rocksdbCommitFlushLatency", "rocksdbCommitCheckpointLatency")
"""What a commit with a snapshot takes beyond one without: ms, summed over the state stores."""


class StateCommits(NamedTuple):
    """What the batches of a job told of its state.

    Attributes:
        period_s: from one batch's begin to the next, median.
        snapshot_s: by which a snapshot makes a batch longer, mean; state stores commit side by side.
        mtbf_s: mean time between its ends, as far back as was read; whoever stopped it, state was restored after.
    """

    period_s: float
    snapshot_s: float
    mtbf_s: float


class SnapshotInterval(NamedTuple):
    """How often a snapshot is made, and brought to the checkpoint; `text` says why, for people."""

    deltas: int
    maintenance_s: int
    text: str


def read_commits(lines: Iterable[str]) -> StateCommits | None:
    """Return what a job's earlier batches told; None where no two of them, or no snapshot, were seen.

    Args:
        lines: of `<job>.progress.jsonl`, the newest; one that was cut off by a kill is left out.
    """
    periods: list[float] = []
    taken: list[float] = []
    ran_s, runs = 0.0, 0
    for _, group in groupby(_batches(lines), key=lambda one: one["runId"]):
        told = [(datetime.fromisoformat(one["timestamp"]).timestamp(), _snapshot_s(one)) for one in group]
        begins = [begin for begin, _ in told]
        periods += [late - early for early, late in pairwise(begins) if late > early]
        taken += [seconds for _, seconds in told if seconds > 0]
        ran_s, runs = ran_s + begins[-1] - begins[0], runs + 1
    if not periods or not taken:
        return None
    return StateCommits(median(periods), fmean(taken), (FIRST_MTBF_S + ran_s) / (1 + runs))


def snapshot_interval(found: StateCommits, terms: RecoveryTerms) -> SnapshotInterval:
    """Return τ = √(2·C·MTBF) in micro-batches, less the wait for the thread that brings a snapshot to the checkpoint.

    Args:
        found: C, MTBF, and how long a micro-batch is.
        terms: which may shorten or lengthen it; where both cannot hold, `rpo_s` is kept and the text says so.
    """
    period_s, cost_s, mtbf_s = found
    best_s = checkpoint_interval(cost_s, mtbf_s, terms)
    fewest = max(math.ceil(cost_s / terms.overhead_max / period_s), 1)
    wait_s = min(best_s / 5, terms.rpo_s - fewest * period_s)
    maintenance_s = min(max(int(wait_s), LEAST_MAINTENANCE_S), MOST_MAINTENANCE_S)
    most = max(int((terms.rpo_s - maintenance_s) / period_s), 1)
    deltas = min(max(int((best_s - maintenance_s) / period_s), fewest), most)
    youngs_s = youngs_interval(cost_s, mtbf_s)
    text = (
        f"a snapshot of its state every {deltas} micro-batches of {period_s:.2g} s, brought to the checkpoint "
        f"within {maintenance_s} s: a snapshot takes {1000 * cost_s:.0f} ms, a failure is expected every "
        f"{mtbf_s / 60:.0f} min, so every {youngs_s:.0f} s costs least"
    )
    if best_s != youngs_s:
        text += f", as far as rpo_s={terms.rpo_s:g} and overhead_max={terms.overhead_max:.1%} allow"
    if deltas < fewest:
        share, allowed_s = cost_s / (deltas * period_s), math.ceil(fewest * period_s) + LEAST_MAINTENANCE_S
        text += (
            f"; snapshots take {share:.1%} of the time, overhead_max is {terms.overhead_max:.1%}: keep less state, or "
            f"allow rpo_s={allowed_s}"
        )
    if (oldest_s := deltas * period_s + maintenance_s) > terms.rpo_s:
        text += f"; the newest snapshot may be {oldest_s:.3g} s old, rpo_s is {terms.rpo_s:g}: allow as much"
    return SnapshotInterval(deltas, maintenance_s, text)


def set_snapshots(spark: SparkSession, run_dir: Path, job: str, terms: RecoveryTerms) -> str:
    """Set the interval of a session whose query is about to start; says what was set, and why.

    Args:
        spark: the job's session.
        run_dir: its folder, with what it has told before; at its first start Spark's own interval stays.
        job: its name.
        terms: of its contract.

    Raises:
        OSError: the file cannot be read.
    """
    found = read_commits(newest_lines(progress_file(run_dir, job)))
    if found is None:
        return "snapshots of its state as Spark makes them, until it has told what they take"
    chosen = snapshot_interval(found, terms)
    spark.conf.set(DELTAS, str(chosen.deltas))
    spark.conf.set(MAINTENANCE, f"{chosen.maintenance_s}s")
    return chosen.text


def _batches(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        try:
            progress = json.loads(line)
        except ValueError:
            continue
        if "addBatch" in progress.get("durationMs", {}):
            yield progress


def _snapshot_s(progress: dict[str, Any]) -> float:
    """Seconds that a batch's snapshots took in its tasks; 0 where it made none."""
    found = 0.0
    for state in progress.get("stateOperators", []):
        told = state.get("customMetrics", {})
        found += sum(told.get(name, 0) for name in _TAKEN) / max(state.get("numStateStoreInstances", 1), 1)
    return found / 1000
