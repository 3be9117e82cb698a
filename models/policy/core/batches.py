"""What the batches since the last look say of a job, live or in the twin: its rate, how busy it is, how long they take.

A batch is known only when it has ended, and looks are often shorter than batches; so shares are taken over the time
that the ended batches span, from the end of the batch before the first of them to the end of the last.
"""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from models.policy.core.capacity import Floats


@dataclass(frozen=True)
class BatchSums:
    """Sums over the batches that ended since the last look, and the shares that were last known.

    Attributes:
        ended_at: wall time at which the newest batch ended; None before one.
        count, rows, duration_s: of the batches since the last look.
        span_s: time from one end to the next, summed.
        work, slots: slot-seconds of work and of executors that were there, summed.
        processed_rps, busy, in_batch: as of `View`, from the newest look with a batch; None before one.
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


def ended(seen: BatchSums, wall: float, rows: int, duration_s: float, work_s: float, slots: float) -> BatchSums:
    """The sums after one more batch: it ended at `wall`, and `work_s` of its duration were work on `slots` slots."""
    gap = duration_s if seen.ended_at is None else wall - seen.ended_at
    span = max(gap, duration_s)  # two clocks: a batch cannot be longer than the time it ended in
    return replace(
        seen, ended_at=wall, count=seen.count + 1, rows=seen.rows + rows, duration_s=seen.duration_s + duration_s,
        span_s=seen.span_s + span, work=seen.work + work_s * slots, slots=seen.slots + span * slots,
    )  # fmt: skip


def shares(sums: Floats, last: Floats, began: NDArray[np.bool_], lag: Floats) -> Floats:
    """(runs, 3) records/s, busy share and share of time in a batch as of now; NaN before the first batch.

    Without a new batch the last shares still hold, because one may be running; without any record waiting none is.

    Args:
        sums: (runs, 6) count, rows, duration, span, work and slots of `BatchSums`, since the last look.
        last: (runs, 3) shares of the last look.
        began: (runs,) whether any batch has ended yet.
        lag: (runs,) records that wait.
    """
    count, rows, duration, span, work, slots = sums.T
    new, idle = (count > 0) & (span > 0), began & (lag < 0.5)
    per = np.where(new, span, 1.0)
    busy = np.minimum(work / np.where(slots > 0, slots, np.inf), 1.0)
    now = np.stack([rows / per, busy, duration / per], axis=1)
    found: Floats = np.where(new[:, None], now, np.where(idle[:, None], 0.0, last))
    return found


def looked(seen: BatchSums, lag_records: int) -> tuple[BatchSums, float | None]:
    """What a look at a job finds: sums begun anew with `shares` as of now, and the batches' mean seconds or None."""
    _, *sums, rps, busy, in_batch = astuple(seen)
    last = np.array([[rps, busy, in_batch]], float)  # None is NaN
    began, lag = np.array([seen.ended_at is not None]), np.array([float(lag_records)])
    now = shares(np.array([sums], float), last, began, lag)[0].tolist()
    rps, busy, in_batch = (None if math.isnan(value) else value for value in now)
    known = BatchSums(seen.ended_at, processed_rps=rps, busy=busy, in_batch=in_batch)
    return known, seen.duration_s / seen.count if seen.count and seen.span_s > 0 else None
