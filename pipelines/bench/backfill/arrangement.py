"""What a cell runs: executors of each application, how its replay is admitted, how much is replayed; pure."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Any, Literal

from pipelines.bench.backfill.cells import ALONE, OURS, PAPER, MeasuredCell
from pipelines.bench.backfill.loads import TOLD, mean_rps

EXECUTORS = 4
"""Cores of the cluster, one for each executor: every arm has these and no more."""
SERVICE_MS = 20
"""Service time of a record, simulated by sleeping, so that executors work side by side on fewer real cores."""
SLOT_RPS = 1000 / SERVICE_MS
CAPACITY_RPS = EXECUTORS * SLOT_RPS
TRIGGER_S, REPLAY_TRIGGER_S, ORDERED_TRIGGER_S = 2, 1, 0.2
"""From micro-batch to micro-batch: of the live query, of a replay with a fixed limit, and of one that is ordered, whose
batches are begun by the agent."""
TARGET_S, BUDGET, INTERVAL_S = 6.0, 0.01, 10
"""Promise of the live job, and the seconds from decision to decision of its contract's controller."""
OVERHEAD_S, LEAD_S = 0.4, 10.0
APART_BATCH_S = 5.0
"""Work that a replay in an application of its own takes in a batch: live records do not wait for it."""
WORK_SHARE, MOST_TIMES = 0.6, 3.0
"""Work of a replay that is to be finished: this share of what the live load leaves free in the cell's minutes; and
after how many times those minutes it is given up."""
AHEAD_S = 60.0
"""Seconds of a replay that are not counted where what it costs in the long run is measured."""

Admission = Literal["none", "ordered", "fixed", "apart"]


@dataclass(frozen=True)
class Arrangement:
    """What a cell runs.

    Attributes:
        live: least and most executors of the live application.
        agent: whether Tidecast's agent and autoscaler look after it; else Spark's own allocation does.
        admission: of the replay: none; ordered of the agent; a fixed `maxOffsetsPerTrigger` in the live application; in
            an application of its own.
        offsets: that limit, records per batch.
        apart: least and most executors of the replay's own application.
        records: to replay.
        by_s: seconds in which that is to be done; None: as soon as possible.
        day_s: of the load (`loads.live_rates`).
        most_s: the longest that it lasts.
        until_done: whether it is over once all is replayed.
        told: by what the capacity that the contract tells is off.
        seed: of the live records; the same for all arms of a turn.
        ahead_s: seconds by which the replay begins before the load does: its cold first batches are not counted.
        by_forecast: whether the replay is admitted beside what is forecast, or by the paper's rule alone.
    """

    live: tuple[int, int]
    agent: bool
    admission: Admission
    offsets: int
    apart: tuple[int, int] | None
    records: int
    day_s: float
    most_s: float
    until_done: bool
    seed: int
    by_s: float | None = None
    told: float = 1.0
    ahead_s: float = 0.0
    by_forecast: bool = True

    @property
    def expected_s(self) -> float:
        """About how long it lasts, seconds."""
        return self.day_s if self.by_s is None else self.by_s

    def contract(self, job: str, limit_s: float | None) -> dict[str, Any]:
        """Return the live job's contract as its file says it; with a limit of the p99 by records, seconds."""
        rule: dict[str, Any] = {} if self.by_forecast else {"admit_by": "arrivals"}
        return live_contract(job, self.live, TARGET_S, limit_s or TARGET_S, SERVICE_MS / 1000 / self.told, **rule)


def live_contract(
    job: str, executors: tuple[int, int], target_s: float, limit_s: float, per_record_s: float,
    overhead_s: float = OVERHEAD_S, **more: Any,
) -> dict[str, Any]:  # fmt: skip
    """Return the contract of a live job of the bench as its file says it.

    Args:
        job: its name.
        executors: least and most.
        target_s: of the promise.
        limit_s: of the p99 by records, seconds.
        per_record_s: work of a record that it tells.
        overhead_s: of a batch, that it tells.
        **more: further fields of `backpressure`.
    """
    path = {"class": "live", "quantile": 0.99, "max_ms": 1000 * limit_s}
    planning = {"overhead_s": overhead_s, "per_record_s": per_record_s, "lead_s": LEAD_S}
    return {
        "job": job, "latency_target_s": target_s, "error_budget": BUDGET,
        "executors": {"min": executors[0], "max": executors[1], "cores": 1}, "planning": planning,
        "backpressure": {"interval_s": INTERVAL_S, "paths": [path], **more},
    }  # fmt: skip


def arrange(cell: MeasuredCell, until_done: bool) -> Arrangement:
    """Arrange a cell in which all executors are there from the beginning.

    Arms: `alone`; `ours`; `paper`, ours without the forecast; `fixed:N`, N records per batch of the replay;
    `split:K`, K executors for live records and the others for the replay, in an application each; `two`, an application
    each that Spark's own allocation scales.

    Args:
        cell: of which load and arm are read.
        until_done: whether it ends with the replay, or the replay outlasts its minutes and has begun AHEAD_S before.

    Raises:
        ValueError: no such arm.
    """
    kind, _, number = cell.arm.partition(":")
    day_s = 60 * cell.minutes
    free = CAPACITY_RPS - mean_rps(cell.load, day_s)
    records = WORK_SHARE * free * day_s if until_done else 1.2 * CAPACITY_RPS * day_s
    admissions: dict[str, Admission] = {
        ALONE: "none", OURS: "ordered", PAPER: "ordered", "fixed": "fixed", "split": "apart", "two": "apart"
    }  # fmt: skip
    if kind not in admissions:
        raise ValueError(f"arm={cell.arm!r}: one of {', '.join(admissions)} is expected")
    live, apart, offsets = (EXECUTORS, EXECUTORS), None, 0
    if kind == "fixed":
        offsets = int(number)
    elif kind == "split":
        live, apart = (int(number), int(number)), (EXECUTORS - int(number), EXECUTORS - int(number))
    elif kind == "two":
        live, apart = (EXECUTORS // 2, EXECUTORS), (1, EXECUTORS)
    if apart is not None:
        offsets = math.ceil(apart[1] * SLOT_RPS * APART_BATCH_S)
    longest = MOST_TIMES if until_done and kind != ALONE else 1.0
    return Arrangement(
        live, apart is None, admissions[kind], offsets, apart, 0 if kind == ALONE else round(records), day_s,
        longest * day_s, until_done and kind != ALONE, seed_of(cell), told=TOLD.get(cell.load, 1.0),
        ahead_s=0.0 if until_done else AHEAD_S, by_forecast=kind != PAPER,
    )  # fmt: skip


def seed_of(cell: MeasuredCell) -> int:
    """Return the seed of a cell's live records: of row, load and turn, so that a turn's arms meet the same ones."""
    return int.from_bytes(hashlib.sha256(f"{cell.row} {cell.load} {cell.turn}".encode()).digest()[:4], "big")
