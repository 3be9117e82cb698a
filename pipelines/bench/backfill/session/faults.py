"""A session in which all goes wrong: executor, driver and a publication killed, a replay cancelled and repeated."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pipelines.backfill.ordering import AskedRange, make_order
from pipelines.backfill.orders import change_order, read_orders, read_progress, send_order
from pipelines.bench.backfill.cells import MeasuredCell
from pipelines.bench.backfill.faults import FaultySession
from pipelines.bench.backfill.loads import draw_arrivals, mean_rps
from pipelines.bench.backfill.session.merging import judged_session, running
from pipelines.bench.backfill.session.producer import LiveProducer, producing
from pipelines.bench.backfill.session.recorded import keeps_up
from pipelines.bench.backfill.session.run import PATIENCE_S, drain, write_contract
from pipelines.jobs.plans.merged import table_of
from pipelines.jobs.progress_log import progress_file
from pipelines.kafka.broker import Follower
from pipelines.stack.executors import oldest_executor
from pipelines.stack.processes import Process, ProcessError
from pipelines.stack.stack import Stack
from tidecast.backfill.namespace import read_spec
from tidecast.orders import ReplayProgress

AWAY_S = 45.0
"""Seconds for which the killed driver is away: long enough that the newest records come first after it."""
LATE_S = 20.0
"""How long after a range's end records of it may come, seconds: more than the live query surely takes; none does."""
COMPARED_S = 1.0
"""Seconds from a written shadow table to the kill: the live table is compared with it, or merged, by then."""
GAP = "gap-1"
"""The order that the job itself places when its newest records come first."""
FAULTS = (
    "a replay cancelled in its middle and ordered again", "an executor killed beside the second one",
    "the driver killed while that is published", "the newest records first after that",
)  # fmt: skip


class _Replays:
    """What the job's agent says of its replays."""

    def __init__(self, told: Follower, job: str, producer: LiveProducer) -> None:
        self._told, self._job, self._producer = told, job, producer
        self.newest: dict[str, ReplayProgress] = {}

    def wait(self, name: str, reached: Callable[[ReplayProgress], bool], live: Process, seconds: float) -> None:
        """Wait until the newest that is said of a replay is so.

        Raises:
            ProcessError: the job ended, it was not said in time, or the replay failed.
        """
        deadline = time.monotonic() + seconds
        while True:
            for record in self._told.poll(0.1):
                if (one := read_progress(self._job, record.key, record.value)) is not None:
                    self.newest[one.id] = one
                    if one.id == name and reached(one):
                        return
            said = self.newest.get(name)
            if said is not None and reached(said):
                return
            if said is not None and said.state == "failed":
                raise ProcessError(f"replay {name} failed: {said.reason}")
            self._producer.check()
            if not live.running() or time.monotonic() > deadline:
                raise ProcessError(f"replay {name} stayed {said}.\n{live.last_lines()}")


def measure_faults(stack: Stack, cell: MeasuredCell, how: FaultySession, folder: Path) -> dict[str, Any]:
    """Run a session and return what it showed; blocks for some minutes.

    Returns:
        As `merging.judged_session`, and `faults`, FAULTS.

    Raises:
        ProcessError: a process ended that was to live, or a replay failed, was not done in time, or was published
            before it could be killed.
        BrokerError, kafka.errors.KafkaError: the broker does not answer.
        RunError, OSError: a file is missing, broken or cannot be written.
    """
    folder.mkdir(parents=True)
    write_contract(stack.settings.contracts_dir, how.contract(cell.name))
    _run(stack, cell, how, folder)
    return judged_session(stack, cell.name, folder, how.expected_s, how.sampled, faults=FAULTS)


def _run(stack: Stack, cell: MeasuredCell, how: FaultySession, folder: Path) -> None:
    job, log, kafka = cell.name, progress_file(folder, cell.name), stack.settings.kafka
    rps = mean_rps(cell.load, how.most_s)
    with (
        running(stack, job, how.offsets, folder, how.sampled) as live,
        producing(kafka, rps) as producer,
        closing(Follower(kafka, ["replays"], start="latest")) as told,
    ):
        live.wait_until(lambda: keeps_up(log, job, rps), "keep up with its live records", PATIENCE_S)
        began = time.time()
        producer.begin(draw_arrivals(cell.load, how.most_s, how.most_s, how.seed), began)
        time.sleep(how.range_s + 2 * LATE_S)  # all of it has come, and its windows are final
        replays = _Replays(told, job, producer)
        name = _order(stack, job, began, how.range_s)
        replays.wait(name, _is_read, live, how.most_s)
        change_order(kafka, job, name, "cancel")
        replays.wait(name, lambda said: said.state == "cancelled", live, PATIENCE_S)
        live.wait_until(lambda: read_orders(kafka, job)[name].wanted == "done", "note the cancellation", PATIENCE_S)
        _order(stack, job, began, how.range_s)  # under the same name
        replays.wait(name, _is_read, live, how.most_s)
        _kill_executor(stack, live)
        replays.wait(name, lambda said: said.state == "read", live, how.most_s)
        _kill_publishing(live, table_of(folder, job), name)
        time.sleep(AWAY_S)
        live = stack.respawn(f"{job}-live")
        for order in (name, GAP):
            replays.wait(order, lambda said: said.state == "done", live, how.most_s)
        live.wait_until(lambda: keeps_up(log, job, rps), "keep up with its live records", how.most_s)
        sent = producer.stop()
        drain(sent.partition, sent.offset, folder, job)


def _order(stack: Stack, job: str, began: float, seconds: float) -> str:
    """Order the range from a moment on that many seconds long; returns the replay's name, which follows from that."""
    begin, end = (datetime.fromtimestamp(at, UTC).isoformat() for at in (began, began + seconds))
    order = make_order(stack.settings, AskedRange(job, begin, end, late_s=LATE_S))
    send_order(stack.settings.kafka, order)
    return order.id


def _is_read(said: ReplayProgress) -> bool:
    """Whether a part of a replay's range is read, and not all of it."""
    return said.state == "running" and 0 < said.done < said.records


def _kill_executor(stack: Stack, live: Process) -> None:
    victim = oldest_executor(stack.id, live.pid)
    if victim is None:
        raise ProcessError(f"{live.name} has no executor that could be killed")
    victim.process.kill()


def _kill_publishing(live: Process, table: Path, name: str) -> None:
    """Kill the driver while it brings what a replay has written into the live table."""

    def state() -> tuple[str, bool]:
        spec = read_spec(table, name)
        return ("", False) if spec is None else (spec.state, spec.last.written)

    live.wait_until(lambda: state()[1], f"write all of {name}", PATIENCE_S)
    time.sleep(COMPARED_S)
    live.kill()
    if state()[0] == "published":
        raise ProcessError(f"replay {name} was published before its driver could be killed: measure the row again")
