"""One cell for real: a live job under its load, a replay beside it as its arm has it; what they leave in a folder."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import yaml

from configs.contract import load_contract
from models.backfill.live.task_target import task_target_s
from pipelines.backfill.orders import send_order
from pipelines.bench.backfill.arrangement import ORDERED_TRIGGER_S, REPLAY_TRIGGER_S, SERVICE_MS, Arrangement
from pipelines.bench.backfill.cells import MeasuredCell
from pipelines.bench.backfill.loads import draw_arrivals, issued_forecasts, live_rates
from pipelines.bench.backfill.session.deadline import plan_session
from pipelines.bench.backfill.session.job import DRY, ORDER, READY, REPLAY
from pipelines.bench.backfill.session.producer import LiveProducer, fill_range, forecast_messages, producing
from pipelines.bench.backfill.session.recorded import committed_ends, keeps_up, replayed_at
from pipelines.kafka.broker import Follower
from pipelines.stack.processes import Process, ProcessError
from pipelines.stack.stack import Stack
from tidecast.messages import Decision, MessageError, decode, encode
from tidecast.orders import ReplayOrder

PATIENCE_S, DRAIN_S, LOOK_S = 300.0, 120.0, 2.0
"""Seconds that are waited for what is slow and has not failed, and for the last live records; and between two looks."""
SETTLE_S = 90.0
"""Seconds of live records at a load's first rate before it begins, in every arm: a job that has run for hours has its
code compiled, as many executors as it needs, and, where somebody learns it, a known capacity."""
LONGER = 1.5
"""How far forecasts reach beyond a deadline, in units of it."""


def run_session(stack: Stack, cell: MeasuredCell, how: Arrangement, limit_s: float | None, folder: Path) -> None:
    """Run a cell from the start of its processes to their end; blocks, for its minutes and about one more.

    Leaves in `folder` (made here): what the applications leave, `produced.npz` (partition, offset, produced_at of live
    records), `decisions.jsonl`, and `session.json`: `job`, `began` and `ended` (epoch seconds), `order`, `planned`
    (predicted seconds of a deadline's plan, rising) and `refused` (why there is no plan).

    Args:
        stack: with broker and Spark; its contracts' folder holds this cell's contract alone.
        cell: that is run.
        how: arranged.
        limit_s: most p99 of live records, seconds; None: that of the promise.
        folder: of this cell.

    Raises:
        ProcessError: a process ended, or did not get ready.
        BrokerError, kafka.errors.KafkaError: the broker does not answer.
        OSError: a file cannot be written.
    """
    kafka, job = stack.settings.kafka, cell.name
    folder.mkdir(parents=True)
    write_contract(stack.settings.contracts_dir, how.contract(job, limit_s))
    topic = kafka.topic("events")
    first, past = fill_range(kafka, how.records, how.seed) if how.records else ({}, {})
    issued = issued_forecasts(cell.load, how.day_s, how.most_s, LONGER * (how.by_s or 0.0))
    arrivals = draw_arrivals(cell.load, how.most_s, how.day_s, how.seed)
    rate = float(live_rates(cell.load, np.zeros(1), how.day_s)[0])
    with (
        _started(stack, cell, how, folder) as processes,
        producing(kafka, rate) as producer,
        _hearing(stack, job) as heard,
    ):
        _warm_up(processes, producer, heard, how, folder, rate)
        told: dict[str, Any] = {"job": job, "limit_s": limit_s, "planned": None, "refused": None, "schedule": []}
        short_s = task_target_s(load_contract(job, stack.settings.contracts_dir))
        asked = ReplayOrder(f"{job}-range", job, time.time(), "run", {topic: first}, {topic: past}, task_s=short_s)
        if how.records and how.ahead_s:
            _begin_replay(stack, how, asked, folder)
            _settle(heard, how.ahead_s)
        began = time.time()
        producer.begin(arrivals, began, forecast_messages(job, issued, began, how.most_s) if issued else [])
        order: ReplayOrder | None = asked
        if how.by_s is not None:
            order, more = plan_session(stack.settings, asked, how.by_s)
            told |= more
        if order is not None and not how.ahead_s:
            _begin_replay(stack, how, order, folder)
        with (folder / "decisions.jsonl").open("wb") as decisions:
            awaited = past if how.until_done and told["refused"] is None else {}
            _watch(processes, producer, heard, how, folder, began, awaited, decisions)
        produced = producer.stop()
        told |= {"began": began, "ended": time.time()}
        drain(produced.partition, produced.offset, folder, job)
    told["order"] = {"first": first, "past": past}
    np.savez_compressed(folder / "produced.npz", **produced._asdict())
    (folder / "session.json").write_text(json.dumps(told))


class _Heard:
    """Follows the decisions about one job; `newest` is the last one that was made of an observation."""

    def __init__(self, follower: Follower, job: str) -> None:
        self._follower, self.job = follower, job
        self.newest: Decision | None = None

    def poll(self, seconds: float) -> list[Decision]:
        """Return what was decided since the last call; waits at most so long."""
        found = []
        for record in self._follower.poll(seconds):
            try:
                one = decode(Decision, record.value)
            except MessageError:
                continue
            if one.job == self.job:
                found.append(one)
        seen = [one for one in found if "per_record_s" in one.inputs]  # not those that hold for want of metrics
        self.newest = seen[-1] if seen else self.newest
        return found


def write_contract(folder: Path, contract: dict[str, Any]) -> None:
    """Write a job's contract into the folder of contracts; it is the only one there."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*.yaml"):
        path.unlink()
    (folder / f"{contract['job']}.yaml").write_text(yaml.safe_dump(contract, sort_keys=False))


@contextmanager
def _started(stack: Stack, cell: MeasuredCell, how: Arrangement, folder: Path) -> Iterator[dict[str, Process]]:
    """The processes of a cell by their role; all are ended."""
    job = ["-m", "pipelines.bench.backfill.session.job", "--run-dir", str(folder), "--job", cell.name]
    trigger_s = ORDERED_TRIGGER_S if how.admission == "ordered" else REPLAY_TRIGGER_S
    job += ["--service-ms", str(SERVICE_MS), "--replay-trigger-s", str(trigger_s)]

    def part(name: str, bounds: tuple[int, int], *more: str) -> list[str]:
        return [*job, "--part", name, "--least", str(bounds[0]), "--most", str(bounds[1]), *more]

    offsets = ["--offsets", str(how.offsets)]
    live = [*(["--agent"] if how.agent else []), *(offsets if how.admission == "fixed" else [])]
    commands = {"live": part("live", how.live, *live)}
    if how.apart is not None:
        commands["apart"] = part(REPLAY, how.apart, *offsets)
    if how.agent:
        commands["autoscaler"] = ["-m", "tidecast", "autoscale", "--checkpoint", str(folder / "autoscaler")]
    started: dict[str, Process] = {}
    try:
        for role, words in commands.items():
            started[role] = stack.spawn(f"{cell.name}-{role}", [sys.executable, *words])
        yield started
    finally:
        for role in reversed(started):
            stack.end(f"{cell.name}-{role}")


@contextmanager
def _hearing(stack: Stack, job: str) -> Iterator[_Heard]:
    with closing(Follower(stack.settings.kafka, ["decisions"], start="latest")) as follower:
        yield _Heard(follower, job)


def _warm_up(
    processes: dict[str, Process], producer: LiveProducer, heard: _Heard, how: Arrangement, folder: Path, rate: float
) -> None:  # fmt: skip
    """Wait until everybody works without a backlog, and something was decided where somebody decides."""
    live = processes["live"]
    live.wait_until((folder / f"{READY}-live").exists, "get ready", PATIENCE_S)
    log = folder / f"{heard.job}.progress.jsonl"
    live.wait_until(lambda: keeps_up(log, heard.job, rate), "keep up with its live records", PATIENCE_S)
    if "apart" in processes:
        processes["apart"].wait_until((folder / f"{READY}-{REPLAY}").exists, "get ready", PATIENCE_S)
    if how.agent:
        autoscaler = processes["autoscaler"]
        autoscaler.wait_until(lambda: bool(heard.poll(0.2) and heard.newest), "decide about the job", PATIENCE_S)
        live.wait_until((folder / DRY).exists, "run a replay's first batch dry", PATIENCE_S)
    _settle(heard, SETTLE_S)
    producer.check()


def _settle(heard: _Heard, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        heard.poll(LOOK_S)


def _begin_replay(stack: Stack, how: Arrangement, order: ReplayOrder, folder: Path) -> None:
    if how.admission == "ordered":
        send_order(stack.settings.kafka, order)
    elif how.admission in ("fixed", "apart"):
        (folder / ORDER).write_bytes(encode(order))


def _watch(
    processes: dict[str, Process], producer: LiveProducer, heard: _Heard, how: Arrangement, folder: Path, began: float,
    past: dict[str, int], decisions: BinaryIO,
) -> None:  # fmt: skip
    """Wait until the cell is over, and write down what is decided."""
    job = heard.job
    log = folder / (f"{job}-{REPLAY}.progress.jsonl" if "apart" in processes else f"{job}.progress.jsonl")
    while time.time() < began + how.most_s:
        for one in heard.poll(LOOK_S):
            decisions.write(encode(one) + b"\n")
        for role, process in processes.items():
            if not process.running():
                raise ProcessError(f"{role} ended.\n{process.last_lines()}")
        producer.check()
        if how.until_done and (not past or replayed_at(log, REPLAY, past) is not None):
            return


def drain(partition: Any, offset: Any, folder: Path, job: str) -> None:
    """Wait until the last live records are committed, DRAIN_S at most.

    Args:
        partition: (N,) of the records.
        offset: (N,) of them.
        folder: of the cell.
        job: whose progress tells.
    """
    wanted = {int(part): int(offset[partition == part].max()) + 1 for part in np.unique(partition)}
    deadline = time.monotonic() + DRAIN_S
    while time.monotonic() < deadline:
        ends = committed_ends(folder / f"{job}.progress.jsonl", job)
        if all(ends.get(part, 0) >= end for part, end in wanted.items()):
            return
        time.sleep(LOOK_S)
