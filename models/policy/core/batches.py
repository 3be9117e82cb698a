"""What the batches since the last look say of a live job: its rate, how busy it is, how long batches take.

A batch is known only when it has ended, and looks are often shorter than batches; so shares are taken over the time
that the ended batches span, from the end of the batch before the first of them to the end of the last.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Batches:
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


def ended(seen: Batches, wall: float, rows: int, duration_s: float, work_s: float, slots: float) -> Batches:
    """After one more batch: it ended at `wall`, and `work_s` of its duration were work on `slots` slots."""
    gap = duration_s if seen.ended_at is None else wall - seen.ended_at
    span = max(gap, duration_s)  # two clocks: a batch cannot be longer than the time it ended in
    return replace(
        seen, ended_at=wall, count=seen.count + 1, rows=seen.rows + rows, duration_s=seen.duration_s + duration_s,
        span_s=seen.span_s + span, work=seen.work + work_s * slots, slots=seen.slots + span * slots,
    )  # fmt: skip


def looked(seen: Batches, lag_records: int) -> tuple[Batches, float | None]:
    """The shares as of now with the sums begun anew, and the mean duration of the batches, None without any.

    Without a new batch the last shares still hold, because one may be running; without any record waiting none is.
    """
    known = replace(seen, count=0, rows=0, duration_s=0.0, span_s=0.0, work=0.0, slots=0.0)
    if seen.count and seen.span_s > 0:
        busy = min(1.0, seen.work / seen.slots) if seen.slots > 0 else 0.0
        shares = {"processed_rps": seen.rows / seen.span_s, "busy": busy, "in_batch": seen.duration_s / seen.span_s}
        return replace(known, **shares), seen.duration_s / seen.count  # type: ignore[arg-type]
    if seen.ended_at is not None and lag_records == 0:
        return replace(known, processed_rps=0.0, busy=0.0, in_batch=0.0), None
    return known, None
