"""The first batch of a replay run once for nobody, in a calm moment: the one that counts is quick then.

For a query's first batch the driver makes a plan and compiles it, and executors load what it runs. Live records wait
for that: seconds, and many on few cores. Once, before anything is ordered, nobody minds.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from typing import Any

from tidecast.job import Job
from tidecast.orders import ReplayOrder
from tidecast.replay.pace import WORTH
from tidecast.spark.sensors import Offsets

log = logging.getLogger("tidecast")

NAME = "_dry-run"
"""Id of its order, which is sent to nobody; no order and no backfill can have it."""
ALL_MS = (0, 4_102_444_800_000)
"""Range of its results, ms: all of this century, as far as records tell its time."""
WARM_BATCHES = 3
"""Batches with records that live's own query has run before: its own first ones are slow as well."""
WAIT_S, POLL_S = 60.0, 0.1


def first_batch(query: Any, wait_s: float = WAIT_S) -> None:
    """Stop a query once it has run a batch that read records, or has ended, or after some seconds."""
    until = time.monotonic() + wait_s
    try:
        while query.isActive and time.monotonic() < until:
            if any(progress.numInputRows for progress in query.recentProgress):
                return
            time.sleep(POLL_S)
    finally:
        query.stop()


def dry_run_order(job: Job) -> ReplayOrder | None:
    """Return an order of the newest committed records of each partition; None unless live's query is warm and calm.

    Nor is there one in another mode than `act`. It is calm where no record waits that came longer ago than two batches
    take: one that catches up has large batches.
    """
    if job.mode != "act" or job.batches < WARM_BATCHES or not job.committed:
        return None
    if _oldest_s(job, job.committed) > 2 * job.period_s:
        return None
    starts: dict[str, dict[str, int]] = {}
    ends: dict[str, dict[str, int]] = {}
    for (topic, partition), past in job.committed.items():
        starts.setdefault(topic, {})[str(partition)] = max(past - WORTH, 0)
        ends.setdefault(topic, {})[str(partition)] = past
    begin_ms, end_ms = ALL_MS
    return ReplayOrder(NAME, job.name, time.time(), "run", starts, ends, begin_ms=begin_ms, end_ms=end_ms)


def _oldest_s(job: Job, committed: Offsets) -> float:
    """How long the oldest waiting record has waited, seconds; inf where it came before the agent did."""
    waited = [0.0]
    with job.lock:  # the thread that samples offsets changes the curves
        for place, past in committed.items():
            if job.ends.get(place, 0) > past:
                came = job.curves[place].arrival_time(past) if place in job.curves else None
                waited.append(math.inf if came is None else time.time() - came)
    return max(waited)


class DryRun:
    """Runs a job's dry run once, in a thread of its own.

    Attributes:
        done: whether it has run: a first batch that counts is quick.
    """

    def __init__(self, job: Job, dry_run: Callable[[ReplayOrder], None], begin: Callable[[], None]) -> None:
        """Wait for the moment.

        Args:
            job: its state.
            dry_run: runs an order's first batch and leaves nothing behind.
            begin: called in the thread before, for what belongs to a thread, such as Spark's pool.
        """
        self._job, self._run_dry, self._begin = job, dry_run, begin
        self._thread: threading.Thread | None = None
        self.done = False

    def going_on(self, ordered: bool, may_begin: Callable[[], bool]) -> bool:
        """Begin it if the moment has come; return whether it runs.

        Args:
            ordered: whether a replay is: its own first batch comes before a dry run's end.
            may_begin: whether live batches leave the executors free now. Those of a job that has just what it needs
                leave no pause, and its batches would wait for tasks that are as slow as first ones are.
        """
        if self._thread is None and not ordered and (order := dry_run_order(self._job)) is not None and may_begin():
            self._thread = threading.Thread(
                target=self._run, args=(order,), name=f"tidecast-{self._job.name}-dry-run", daemon=True
            )
            self._thread.start()
        return self._thread is not None and self._thread.is_alive()

    def _run(self, order: ReplayOrder) -> None:
        name, began = self._job.name, time.monotonic()
        try:
            self._begin()
            self._run_dry(order)
        except Exception as error:
            log.warning("%s: the first batch of its first replay will be slow: its dry run failed: %s", name, error)
            log.debug("%s: dry run", name, exc_info=True)
        else:
            self.done = True
            log.info("%s: a dry run of a replay's first batch took %.1f s", name, time.monotonic() - began)
