"""A session of a drawn workload: a job that merges, and faults that are carried out; held against the drawn truth."""

from __future__ import annotations

import time
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import psutil

from models.workload.generator import Workload, draw_workload
from models.workload.truth import truth_of
from pipelines.bench.backfill.cells import MeasuredCell
from pipelines.bench.backfill.loads import PARTITIONS, Floats, LiveRecords
from pipelines.bench.backfill.outages import TARGET_S
from pipelines.bench.backfill.session.merged_job import WINDOW_MS, group_of
from pipelines.bench.backfill.session.merging import Bounded, Windows, judge_table, read_table, running
from pipelines.bench.backfill.session.producer import SentRecords, name_of, producing
from pipelines.bench.backfill.session.recorded import committed_ends
from pipelines.bench.backfill.session.run import LOOK_S, write_contract
from pipelines.bench.backfill.workloads import DELAY_MS, PATIENCE_S, WorkloadSession
from pipelines.bench.planned_faults.carrier import FaultCarrier, carrying
from pipelines.bench.site.way import Way
from pipelines.jobs.progress_log import progress_file
from pipelines.kafka.broker import Follower
from pipelines.report.operation import Operation, asked_of, describe_operation
from pipelines.report.recorded.batches import read_batches
from pipelines.report.recorded.eventlog import read_event_logs
from pipelines.report.recorded.lines import json_lines
from pipelines.report.seconds import commit_times, executor_seconds, latency_by_second
from pipelines.stack.executors import executors_of
from pipelines.stack.ports import HOST
from pipelines.stack.processes import Process, ProcessError, find_processes
from pipelines.stack.stack import Stack
from tidecast.messages import Decision, MessageError, decode

WARM, WARM_RPS = 3, 10.0
"""Batches before the workload begins, and records/s of them."""


class WorkloadRun(NamedTuple):
    """What a session left that is in no file; it began at an epoch second, and the workload's times are since then."""

    began: float
    workload: Workload
    sent: SentRecords
    carrier: FaultCarrier
    decisions: list[Decision]
    memory_mb: float


def measure_workload(stack: Stack, cell: MeasuredCell, how: WorkloadSession, folder: Path) -> dict[str, Any]:
    """Run a session and return what it showed; blocks for its minutes and a few more.

    Returns:
        As `merging.judged_session`, `wrong` being windows that are not what the workload comes to; `carried` and
        `missed`, faults that were carried out (with the process, where it was one) and that met nobody; and
        `operation`, as `report.operation.describe_operation`, with `executor_h`.

    Raises:
        ProcessError: a process ended that was to live, or did not get ready or done in time.
        BrokerError, kafka.errors.KafkaError: the broker does not answer.
        RunError, EventLogError, OSError: a file is missing, broken or cannot be written.
    """
    folder.mkdir(parents=True)
    write_contract(stack.settings.contracts_dir, how.contract(cell.name))
    came = _run(stack, cell, how, folder)
    table = read_table(stack, cell.name, folder, how.sampled)
    since_ms = 1000 * came.began - WINDOW_MS  # windows before are of the records that warmed the job up
    shown = {window: one for window, one in table.shown.items() if window[1] >= since_ms}
    truth = drawn_truth(came.workload, round(1000 * came.began), how.sampled)
    judged = judge_table(table._replace(shown=shown, batch=_since(table.batch, since_ms)), how.expected_s, truth)
    error, bound = errors_of(shown, truth, table.absent) if how.sampled else (None, None)
    return {
        **judged, "carried": [[*fault, pid] for fault, pid in came.carrier.done], "missed": came.carrier.missed,
        "operation": _operation(cell.name, folder, came, error, bound),
    }  # fmt: skip


def drawn_truth(workload: Workload, began_ms: int, sampled: bool = False) -> Windows:
    """Return what a workload comes to by the generator's truth: net records by key, or group of keys, and window.

    Args:
        workload: its times are since its begin.
        began_ms: when it began, ms since the epoch, where a window begins.
        sampled: whether by group.
    """
    found = Windows()
    for window, one in truth_of(workload.records, WINDOW_MS).items():
        key = name_of(window.key).decode()
        found[group_of(key) if sampled else key, began_ms + window.start] += one.records
    return found


def errors_of(shown: Bounded, truth: Windows, absent: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Return (W,) absolute errors and half widths of the bounds of all windows that are shown or true.

    One that is not shown is 0, with the bound `absent`.
    """
    windows = sorted({*shown, *truth})
    told = np.array([shown.get(one, (0.0, absent)) for one in windows]).reshape(-1, 2)
    return np.abs(told[:, 0] - [truth[one] for one in windows]), told[:, 1]


def as_sent(workload: Workload) -> LiveRecords:
    """Return a workload's records as they are sent; each key in a partition, so that hot keys make hot partitions."""
    records = workload.records
    inserted: dict[tuple[int, int, int], list[int]] = {}
    takes_back = np.full(len(records), -1)
    for number, (key, value, t_e, _, mult) in enumerate(records.rows()):
        alike = inserted.setdefault((key, value, t_e), [])
        if mult < 0:
            takes_back[number] = alike.pop()
        else:
            alike.append(number)
    return LiveRecords(records.t_i / 1000, records.key, records.key % PARTITIONS, takes_back)


def stamps_of(workload: Workload) -> Floats:
    """Return (N,) the records' event times, seconds; half a millisecond more, as stamps are cut to whole ones."""
    return workload.records.t_e / 1000 + 0.0005


def _run(stack: Stack, cell: MeasuredCell, how: WorkloadSession, folder: Path) -> WorkloadRun:
    job, log, kafka = cell.name, progress_file(folder, cell.name), stack.settings.kafka
    workload = draw_workload(how.shape(), how.seed)
    arrivals = as_sent(workload)
    with (
        closing(Way([int(str(kafka.bootstrap).rpartition(":")[2])], of_broker=True)) as way,
        running(stack, job, how.offsets, folder, how.sampled, DELAY_MS, f"{HOST}:{way.ports[0]}") as live,
        producing(kafka, WARM_RPS) as producer,
        closing(Follower(kafka, ["decisions"], start="latest")) as told,
    ):
        live.wait_until(lambda: log.is_file() and len(json_lines(log)) >= WARM, "finish its first batches", PATIENCE_S)
        # A window's begin, one further on: no record of the workload falls into a window of those before.
        began = (time.time() * 1000 // WINDOW_MS + 2) * WINDOW_MS / 1000
        producer.begin(arrivals, began, stamp_s=stamps_of(workload))
        until = began + float(arrivals.at_s[-1]) + LOOK_S
        decisions: list[Decision] = []
        memory_mb = 0.0
        with carrying(workload.faults, began, partial(_workers, stack, live), way) as carrier:
            while time.time() < until or not carrier.finished:
                decisions += _decided(told, job)
                memory_mb = max(memory_mb, _memory_mb(stack, live))
                producer.check()
                if not live.running():
                    raise ProcessError(f"{live.name} ended.\n{live.last_lines()}")
        if carrier.failure is not None:
            raise carrier.failure
        sent = producer.stop()
        ends = {int(part): int(sent.offset[sent.partition == part].max()) + 1 for part in np.unique(sent.partition)}

        def is_done() -> bool:
            reached = committed_ends(log, job)
            return all(reached.get(part, 0) >= end for part, end in ends.items())

        live.wait_until(is_done, "commit the last records", PATIENCE_S)
        return WorkloadRun(began, workload, sent, carrier, decisions + _decided(told, job), memory_mb)


def _workers(stack: Stack, live: Process) -> list[psutil.Process]:
    return [one.process for one in executors_of(stack.id, live.pid)]


def _decided(told: Follower, job: str) -> list[Decision]:
    """What was decided about the job since the last call; waits for LOOK_S at most."""
    found = []
    for record in told.poll(LOOK_S):
        with suppress(MessageError):
            found.append(decode(Decision, record.value))
    return [one for one in found if one.job == job]


def _memory_mb(stack: Stack, live: Process) -> float:
    """Memory of the job's driver and its executors, MiB."""
    held = 0
    for process in [*find_processes([live.pid]), *_workers(stack, live)]:
        with suppress(psutil.Error):
            held += process.memory_info().rss
    return held / 2**20


def _since(windows: Any, since_ms: float) -> Windows:
    return Windows({window: one for window, one in windows.items() if window[1] >= since_ms})


def _operation(job: str, folder: Path, came: WorkloadRun, error: Any, bound: Any) -> dict[str, Any]:
    """The report of what a session left, from its begin to its last commit."""
    batches, sent, began = read_batches(progress_file(folder, job)), came.sent, came.began
    committed = commit_times(sent.partition, sent.offset, batches.committed, batches.ends)
    live_s = float(committed.max()) - began
    during = (batches.committed >= began) & (batches.committed <= began + live_s)
    spark = read_event_logs(folder / "eventlog")
    tasks = spark.tasks[spark.tasks["end"].between(began, began + live_s)]
    seconds = latency_by_second(sent.produced_at, committed, began, int(np.ceil(live_s)))
    decisions = pd.DataFrame([vars(one) for one in came.decisions])
    added, removed = (spark.executors[name].to_numpy(float) for name in ("added", "removed"))
    return {
        **describe_operation(Operation(
            live_s, sent.produced_at - began, committed - began, (batches.committed - batches.watermarks)[during],
            [fault.at_s for fault, _ in came.carrier.done], seconds["latency_max_s"].to_numpy(float), TARGET_S,
            (tasks["end"] - tasks["start"]).to_numpy(float), asked_of(decisions), round(came.memory_mb),
            error=error, bound=bound,
        )),
        "executor_h": round(executor_seconds(added, removed, began, began + live_s) / 3600, 4),
    }  # fmt: skip
