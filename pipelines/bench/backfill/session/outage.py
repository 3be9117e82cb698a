"""A session with an outage: a job that merges is killed beside its load, and started again; what became of it."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from pipelines.bench.backfill.arrangement import SERVICE_MS
from pipelines.bench.backfill.cells import MeasuredCell
from pipelines.bench.backfill.loads import draw_arrivals, mean_rps
from pipelines.bench.backfill.outages import HOLD_S, SETTLED_S, TARGET_S, OutageSession, back_after
from pipelines.bench.backfill.session.merged_job import WINDOW_MS
from pipelines.bench.backfill.session.producer import SentRecords, producing
from pipelines.bench.backfill.session.recorded import keeps_up
from pipelines.bench.backfill.session.run import LOOK_S, PATIENCE_S, drain, write_contract
from pipelines.jobs.launch import read_first_offsets
from pipelines.jobs.plans.merged import table_of
from pipelines.jobs.progress_log import progress_file
from pipelines.kafka.broker import Follower, read_records
from pipelines.kafka.publisher import Publisher
from pipelines.report.recorded.batches import read_batches
from pipelines.report.recorded.lines import json_lines
from pipelines.report.seconds import commit_times
from pipelines.stack.processes import Process, ProcessError
from pipelines.stack.stack import Stack
from tidecast.control import clock_key
from tidecast.messages import Control, MessageError, decode
from tidecast.orders import ReplayProgress
from tidecast.recovery.epochs import read_epochs

STOP_S = 60.0
"""Seconds that a job has for its clean end."""
Windows = Counter[tuple[str, int]]
"""Records by key and begin of the window, epoch ms."""


class Came(NamedTuple):
    """When the job was started again and its gap was filled (None: it had none), epoch seconds; live records."""

    restarted: float
    filled: float | None
    sent: SentRecords


def measure_outage(stack: Stack, cell: MeasuredCell, how: OutageSession, folder: Path) -> dict[str, Any]:
    """Run a session and return what it showed; blocks for the outage and some minutes.

    Returns:
        As `recorded.read_session`, without rates and latencies; `back_s` and `filled_s` from the start of the process,
        `began_s` (the same to its first batch), `wrong` of `windows` that are not what the topic's records come to.

    Raises:
        ProcessError: a process ended, or did not get ready.
        BrokerError, kafka.errors.KafkaError: the broker does not answer.
        RunError, OSError: a file is missing, broken or cannot be written.
    """
    folder.mkdir(parents=True)
    write_contract(stack.settings.contracts_dir, how.contract(cell.name, None))
    came = _run(stack, cell, how, folder)
    log = progress_file(folder, cell.name)
    batches, sent, epochs = read_batches(log), came.sent, read_epochs(folder / f"{cell.name}.checkpoint")
    committed = commit_times(sent.partition, sent.offset, batches.committed, batches.ends)
    window_ms = np.floor(1000 * sent.produced_at / WINDOW_MS) * WINDOW_MS
    hidden = window_ms < max((epoch.whole_from for epoch in epochs), default=0)  # until the gap is filled
    live = sent.produced_at >= came.restarted
    latency_s = np.where(hidden, np.inf, committed - sent.produced_at)
    before = committed[~live].max(initial=-np.inf)
    filled = float(before) if how.order == "in_order" and np.isfinite(before) else came.filled
    again = back_after(sent.produced_at[live], latency_s[live], came.restarted)
    shown, truth = _shown(folder, cell.name), _truth(stack, folder, cell.name)
    return {
        "seconds": how.expected_s, "latency": [], "p99_s": None, "limit_s": TARGET_S, "rps": None, "rates": [],
        "done_s": None, "exact": shown == truth, "decisions": 0, "differing": 0, "refused": None,
        **again._asdict(), "began_s": _first_batch(log, came.restarted),
        "filled_s": None if filled is None else filled - came.restarted,
        "wrong": sum(shown[each] != truth[each] for each in {*shown, *truth}), "windows": len(truth),
    }  # fmt: skip


def _run(stack: Stack, cell: MeasuredCell, how: OutageSession, folder: Path) -> Came:
    job, log, kafka = cell.name, progress_file(folder, cell.name), stack.settings.kafka
    rps = mean_rps(cell.load, how.most_s)
    arrivals = draw_arrivals(cell.load, how.most_s, how.most_s, how.seed)
    now = time.time()
    with closing(Publisher(kafka)) as publisher:  # a managed job waits for its clock: here the wall's, no trace's
        publisher.send("control", clock_key(job), Control(job, now, wall_start=now, trace_start=now, time_scale=1.0))
    with (
        _started(stack, job, folder) as live,
        producing(kafka, rps) as producer,
        closing(Follower(kafka, ["replays"], start="latest")) as told,
    ):
        live.wait_until(lambda: keeps_up(log, job, rps), "keep up with its live records", PATIENCE_S)
        producer.begin(arrivals, time.time())
        time.sleep(SETTLED_S)
        producer.check()
        live.kill()
        time.sleep(how.down_s)
        restarted, before = time.time(), len(json_lines(log))
        live = stack.respawn(f"{job}-live")
        filled, deadline = None, restarted + how.most_s - SETTLED_S - how.down_s
        while time.time() < deadline:
            filled = _filled(told, job) or filled
            if not live.running():
                raise ProcessError(f"{job}-live ended.\n{live.last_lines()}")
            producer.check()
            back = len(json_lines(log)) > before + 2 and keeps_up(log, job, rps)
            if back and (filled is not None or how.order == "in_order"):
                break
        time.sleep(2 * LOOK_S + TARGET_S + HOLD_S)
        sent = producer.stop()
        drain(sent.partition, sent.offset, folder, job)
        return Came(restarted, filled, sent)


@contextmanager
def _started(stack: Stack, job: str, folder: Path) -> Iterator[Process]:
    """The job's process, beside the autoscaler's; both are ended, the job first and cleanly."""
    module = ["-m", "pipelines.bench.backfill.session.merged_job", "--run-dir", str(folder), "--job", job]
    commands = {
        f"{job}-live": [*module, "--service-ms", str(SERVICE_MS)],
        f"{job}-autoscaler": ["-m", "tidecast", "autoscale", "--checkpoint", str(folder / "autoscaler")],
    }
    started: list[Process] = []
    try:
        for name, words in commands.items():
            started.append(stack.spawn(name, [sys.executable, *words]))
        yield started[0]
    finally:
        for name in [*commands][: len(started)]:
            stack.end(name, STOP_S)


def _filled(told: Follower, job: str) -> float | None:
    """When a gap of the job was in its table, epoch seconds; None where nothing says so within LOOK_S."""
    for record in told.poll(LOOK_S):
        with suppress(MessageError):
            said = decode(ReplayProgress, record.value)
            if said.job == job and said.state == "done":
                return said.wall_time
    return None


def _first_batch(log: Path, since: float) -> float | None:
    """Seconds from a moment on to the begin of a job's first batch; None: there was none."""
    began = (float(pd.Timestamp(one["timestamp"]).timestamp()) for one in json_lines(log))
    return min((at - since for at in began if at >= since), default=None)


def _shown(folder: Path, job: str) -> Windows:
    """What readers of the job's table see."""
    from pipelines.spark.session import local_session
    from tidecast.merge import read_results

    spark = local_session("outage", delta=True)
    try:
        rows = read_results(spark, str(table_of(folder, job))).collect()
    finally:
        spark.stop()
    return Counter({(row["key"], row["_window_start"]): row["n"] for row in rows})


def _truth(stack: Stack, folder: Path, job: str) -> Windows:
    """What the topic's records come to, from the job's first one on."""
    first, found = read_first_offsets(folder, job)["events"], Windows()
    for record in read_records(stack.settings.kafka, "events"):
        if record.offset >= first[record.partition]:
            found[record.key or "", round(1000 * record.timestamp) // WINDOW_MS * WINDOW_MS] += 1
    return found
