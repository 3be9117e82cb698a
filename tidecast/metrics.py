"""What an agent measures of a job, as it stands on the topic `metrics`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from tidecast.fields import (
    COUNT_MOST,
    SHOWN,
    Bounds,
    Count,
    Executors,
    JobName,
    MessageError,
    OneOf,
    Rate,
    Scale,
    Seconds,
    Span,
    Tasks,
    Time,
    validate,
)
from tidecast.wire import SCHEMA

ARRIVALS_MOST = 1e9
"""Most records/s that an interval may tell of: no topic takes more, so that an agent has miscounted them."""


@dataclass(frozen=True)
class MetricSample:
    """One interval (`kind="interval"`, usually a second) or one micro-batch (`kind="batch"`) of a job.

    An interval carries arrivals and lag, measured at the broker; a batch carries what Spark reports; both carry the
    executors, and `cores`, the tasks that these run at once. The sample covers job time `[time, time + span_s)` and was
    measured at `wall_time`. A back-dated history record is an interval with a long span. `_rps`: records per wall
    second; `_s`: wall seconds (`span_s`: job's).

    Where a batch's time went: `planning_s`, `offsets_s`, `log_s` beside its tasks; summed over tasks `state_commit_s`,
    `run_s`, of that `gc_s` (garbage collection) and `sink_wait_s` (tasks of the last stage that waited), and
    `spilled_bytes` (to disk); now and then `task_median_s` and `task_max_s` of its heaviest stage, and `busiest_s`,
    what the tasks of the executor that worked most took together. `operator_rows`:
    records of each step inside the query, by its name, where it counts them (`tidecast job up`). `application`: id of
    the Spark application that measured it. `cannot_hold`: why live records of its query cannot be held back, and what
    to do; None where they can, or that is not known yet.
    """

    job: JobName
    kind: Annotated[str, OneOf(("interval", "batch"))]
    time: Time
    wall_time: Time
    time_scale: Scale = 1.0
    span_s: Span = 1.0
    arrival_rps: Annotated[float, Bounds(0, ARRIVALS_MOST)] | None = None
    processed_rps: Rate | None = None
    lag_records: Count | None = None
    batch_id: Count | None = None
    batch_rows: Count | None = None
    batch_s: Seconds | None = None
    stage_s: Seconds | None = None
    executors: Executors | None = None
    pending_executors: Executors | None = None
    cores: Count | None = None
    task_ceiling: Tasks | None = None
    watermark_lag_s: float | None = None
    state_rows: Count | None = None
    latency_p50_s: Seconds | None = None
    latency_p95_s: Seconds | None = None
    latency_max_s: Seconds | None = None
    planning_s: Seconds | None = None
    offsets_s: Seconds | None = None
    log_s: Seconds | None = None
    state_commit_s: Seconds | None = None
    run_s: Seconds | None = None
    gc_s: Seconds | None = None
    sink_wait_s: Seconds | None = None
    spilled_bytes: Count | None = None
    task_median_s: Seconds | None = None
    task_max_s: Seconds | None = None
    busiest_s: Seconds | None = None
    mode: str | None = None
    operator_rows: dict[str, Any] | None = None
    application: str | None = None
    cannot_hold: str | None = None
    schema: int = SCHEMA

    def check(self) -> None:
        """Raise a MessageError if an interval lacks its arrival rate, or a step's records are no count."""
        if self.kind == "interval" and self.arrival_rps is None:
            raise MessageError("arrival_rps is missing from an interval")
        for name, rows in (self.operator_rows or {}).items():
            validate(f"operator_rows[{name[:SHOWN]!r}]", rows, int, Bounds(0, COUNT_MOST))
