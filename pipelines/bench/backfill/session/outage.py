"""A session with an outage: a job that merges is killed beside its load, and started again; what became of it."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from pipelines.backfill.orders import read_progress
from pipelines.bench.backfill.cells import MeasuredCell
from pipelines.bench.backfill.loads import draw_arrivals, mean_rps
from pipelines.bench.backfill.outages import HOLD_S, SETTLED_S, TARGET_S, OutageSession, back_after
from pipelines.bench.backfill.session.merged_job import WINDOW_MS
from pipelines.bench.backfill.session.merging import judged_session, running
from pipelines.bench.backfill.session.producer import SentRecords, producing
from pipelines.bench.backfill.session.recorded import keeps_up
from pipelines.bench.backfill.session.run import LOOK_S, PATIENCE_S, drain, write_contract
from pipelines.jobs.progress_log import progress_file
from pipelines.kafka.broker import Follower
from pipelines.report.recorded.batches import read_batches
from pipelines.report.recorded.lines import json_lines
from pipelines.report.seconds import commit_times
from pipelines.stack.processes import ProcessError
from pipelines.stack.stack import Stack
from tidecast.recovery.epochs import read_epochs


class Came(NamedTuple):
    """When the job was started again and its gap was filled (None: it had none), epoch seconds; live records."""

    restarted: float
    filled: float | None
    sent: SentRecords


def measure_outage(stack: Stack, cell: MeasuredCell, how: OutageSession, folder: Path) -> dict[str, Any]:
    """Run a session and return what it showed; blocks for the outage and some minutes.

    Returns:
        As `merging.judged_session`; `back_s` and `filled_s` from the start of the process, `began_s` (the same to its
        first batch).

    Raises:
        ProcessError: a process ended, or did not get ready.
        BrokerError, kafka.errors.KafkaError: the broker does not answer.
        RunError, OSError: a file is missing, broken or cannot be written.
    """
    folder.mkdir(parents=True)
    write_contract(stack.settings.contracts_dir, how.contract(cell.name))
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
    return judged_session(
        stack,
        cell.name,
        folder,
        how.expected_s,
        **again._asdict(),
        began_s=_first_batch(log, came.restarted),
        filled_s=None if filled is None else filled - came.restarted,
    )


def _run(stack: Stack, cell: MeasuredCell, how: OutageSession, folder: Path) -> Came:
    job, log, kafka = cell.name, progress_file(folder, cell.name), stack.settings.kafka
    rps = mean_rps(cell.load, how.most_s)
    arrivals = draw_arrivals(cell.load, how.most_s, how.most_s, how.seed)
    with (
        running(stack, job, how.offsets, folder) as live,
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


def _filled(told: Follower, job: str) -> float | None:
    """When a gap of the job was in its table, epoch seconds; None where nothing says so within LOOK_S."""
    for record in told.poll(LOOK_S):
        said = read_progress(job, record.key, record.value)
        if said is not None and said.state == "done":
            return said.wall_time
    return None


def _first_batch(log: Path, since: float) -> float | None:
    """Seconds from a moment on to the begin of a job's first batch; None: there was none."""
    began = (float(pd.Timestamp(one["timestamp"]).timestamp()) for one in json_lines(log))
    return min((at - since for at in began if at >= since), default=None)
