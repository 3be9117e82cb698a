"""Rate, busy share and batch time of a job since the last look (evaluation of its policy), live or in the twin.

A batch is known only when it has ended, and looks are often shorter than batches; so shares are taken over the time
that the ended batches span, from the end of the batch before the first of them to the end of the last.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.policy.copies import copy_with
from models.policy.core.capacity import Floats

LEAST_SPAN_S = 1e-6
"""Seconds that batches span at least for a rate: of fewer a record that nobody can have measured tells, and the rate
may be beyond all numbers."""


@dataclass(frozen=True)
class BatchSums:
    """Sums over the batches that ended since the last look (evaluation), and the shares last known.

    Attributes:
        ended_at: epoch seconds at which the newest batch ended; None before the first.
        count, rows, duration_s: batches since the last look, their records and their seconds.
        span_s: seconds from each batch's end to the next one's, summed.
        work, slots: slot-seconds of work, and of the executors that were there, summed.
        processed_rps, busy, in_batch: as in `View`, from the newest look that saw a batch; None before one.
    """

    ended_at: float | None = None
    count: int = 0
    rows: int = 0
    duration_s: float = 0.0
    span_s: float = 0.0
    work: float = 0.0
    slots: float = 0.0
    processed_rps: float | None = None
    busy: float | None = None
    in_batch: float | None = None


def add_batch(seen: BatchSums, wall: float, rows: int, duration_s: float, work_s: float, slots: float) -> BatchSums:
    """Add one more batch to the sums.

    Args:
        seen: the sums so far.
        wall: epoch seconds at which the batch ended.
        rows: its records.
        duration_s: its duration.
        work_s: seconds of that which were work, not overhead.
        slots: parallel slots that it ran on.
    """
    span = _span_s(seen, wall, duration_s)
    return copy_with(
        seen, ended_at=wall, count=seen.count + 1, rows=seen.rows + rows, duration_s=seen.duration_s + duration_s,
        span_s=seen.span_s + span, work=seen.work + work_s * slots, slots=seen.slots + span * slots,
    )  # fmt: skip


def busiest_share(known: float | None, seen: BatchSums, sample: dict[str, Any], cores: int) -> float | None:
    """Return the share of the time since the batch before in which the cores of the busiest executor ran tasks.

    Args:
        known: what it was; returned where this batch does not tell.
        seen: the sums without this batch.
        sample: of kind "batch": "wall_time" (epoch s of its end), "batch_s", and maybe "busiest_s", seconds of tasks.
        cores: of an executor.
    """
    worked_s, span = sample.get("busiest_s"), _span_s(seen, sample["wall_time"], sample["batch_s"] or 0.0)
    return known if worked_s is None or span <= 0 else float(min(worked_s / (cores * span), 1.0))


def tasks_s(sample: dict[str, Any], slots: float) -> float | None:
    """Return the seconds that a batch's tasks took side by side, or its longest stage; None: unknown."""
    run_s, stage_s = sample.get("run_s"), sample.get("stage_s")
    return None if run_s is None or stage_s is None else max(run_s / slots, stage_s)


def _span_s(seen: BatchSums, wall: float, duration_s: float) -> float:
    gap = duration_s if seen.ended_at is None else wall - seen.ended_at
    return max(gap, duration_s)  # the two come from different clocks


def measure_shares(sums: Floats, last: Floats, began: NDArray[np.bool_], lag: Floats) -> Floats:
    """Compute (runs, 3) processed records/s, busy share and share of time in a batch since the last look.

    A look is an evaluation of the policy. Busy share: slot-seconds of work over slot-seconds available, at most 1.
    Where no batch ended since, the last shares hold (one may be running), or 0 if fewer than one record waits. NaN
    before the first batch.

    Args:
        sums: (runs, 6), since the last look: batches, records, seconds in batches, seconds from each batch's end to the
            next one's, slot-seconds of work, and slot-seconds available.
        last: (runs, 3) shares of the last look, in the order of the result.
        began: (runs,) whether any batch has ended yet.
        lag: (runs,) records that wait.
    """
    count, rows, duration, span, work, slots = sums.T
    new, idle = (count > 0) & (span > LEAST_SPAN_S), began & (lag < 0.5)
    per = np.where(new, span, 1.0)
    busy = np.minimum(work / np.where(slots > 0, slots, np.inf), 1.0)
    now = np.empty((len(sums), 3))
    now[:, 0], now[:, 1], now[:, 2] = rows / per, busy, duration / per
    found: Floats = np.where(new[:, None], now, np.where(idle[:, None], 0.0, last))
    return found


def close_look(seen: BatchSums, lag_records: int) -> tuple[BatchSums, float | None]:
    """Close the period since the last look (evaluation of the policy): compute its shares and begin the sums anew.

    Returns:
        Sums of zero with the same `ended_at` and the new `processed_rps` (records/s), `busy` and `in_batch` (shares, 0
        to 1), each None before the first batch; and the mean seconds of the period's batches, None without any.
    """
    _, *sums, rps, busy, in_batch = vars(seen).values()
    last = np.array([[rps, busy, in_batch]], float)  # None is NaN
    began, lag = np.array([seen.ended_at is not None]), np.array([float(lag_records)])
    now = measure_shares(np.array([sums], float), last, began, lag)[0].tolist()
    rps, busy, in_batch = (None if math.isnan(value) else value for value in now)
    known = BatchSums(seen.ended_at, processed_rps=rps, busy=busy, in_batch=in_batch)
    return known, seen.duration_s / seen.count if seen.count and seen.span_s > LEAST_SPAN_S else None
