"""How a query begins, as its driver tells whoever started it: its executors are at a batch, and then it works.

A first batch may take long: after an outage, on few executors, or as it was planned for more of them. So an application
is given time from when its executors were last at work, and not from its start alone.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pipelines.placement.job_folder import JobFolder, checkpoint_of
from pipelines.placement.watched_block import BlockEpoch, WatchedBlock
from pipelines.spark.checkpoint.files import Checkpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

LOOK_S, NOTE_S, ALL_THERE_S, WITHOUT_S = 0.2, 1.0, 15.0, 180.0
"""Seconds between two looks, between two notes, after the first work for which executors are waited for, and without
any executor after which that is said."""
_WAITS = ("Waiting for data to arrive", "Waiting for next trigger")


def follow_query(
    stop: threading.Event, spark: SparkSession, query: StreamingQuery, epoch: BlockEpoch, attach: Callable[[], Any]
) -> Any:
    """Wait for a signal or the end of a query; return its agent.

    Notes when its executors are at the first batch, when it works, and when none of them is left. The agent, which
    takes over the executors that are there, is attached when all are that the block was placed with, or after a while.

    Args:
        stop: set by a signal.
        spark: session of the query.
        query: that was started.
        epoch: of the block.
        attach: returns the agent.
    """
    worked_s, noted_s, agent = None, -math.inf, None
    _note_without(epoch, False)
    while query.isActive and not stop.wait(LOOK_S):
        now_s = time.monotonic()
        if worked_s is None and works(spark, query):
            epoch.note_work(os.getpid())
            worked_s = now_s
        elif worked_s is None and now_s - noted_s >= NOTE_S and has_tasks(spark):
            note_tasks(epoch)
            noted_s = now_s
        elif worked_s is not None and now_s - noted_s >= NOTE_S:
            noted_s = now_s
            with suppress(Exception):  # of Spark as it ends, or a disk that is full: the query goes on
                _note_without(epoch, _registered(spark) == 0)
        if agent is None and worked_s is not None:
            late = now_s - worked_s > ALL_THERE_S
            if late or _registered(spark) >= epoch.block.executors:
                agent = attach()
    return agent


def works(spark: SparkSession, query: StreamingQuery) -> bool:
    """Return whether executors have done a batch, or are there with nothing to do."""
    if any("addBatch" in progress["durationMs"] for progress in query.recentProgress):
        return True
    status = query.status
    return _registered(spark) > 0 and status["message"] in _WAITS and not status["isDataAvailable"]


def has_tasks(spark: SparkSession) -> bool:
    """Return whether executors run tasks now: on a cluster that gives none a batch is in progress, and has none."""
    tracker = spark.sparkContext.statusTracker()
    stages = map(tracker.getStageInfo, tracker.getActiveStageIds())
    return any(stage is not None and stage.numActiveTasks > 0 for stage in stages)


def note_tasks(epoch: BlockEpoch) -> None:
    """Note that executors run tasks of a block now."""
    (epoch.folder / "tasks").touch()
    os.utime(epoch.folder / "tasks", ns=(time.time_ns(),) * 2)  # to the nanosecond: two notes are two


def last_tasks_ns(epoch: BlockEpoch) -> int | None:
    """Return when it was noted last that executors ran tasks, ns since 1970; None: never in this epoch."""
    try:
        return (epoch.folder / "tasks").stat().st_mtime_ns
    except FileNotFoundError:
        return None


def without_executors(known: WatchedBlock) -> str:
    """Return what there is to say of a query that worked: that it has had no executor for a while, or has some again.

    Each is said once: "" where it was, and where nothing is the matter.
    """
    try:
        long = time.time() - (known.epoch.folder / "without").stat().st_mtime > WITHOUT_S
    except OSError:  # there is no note
        long = False
    if long == known.without:
        return ""
    known.without, on = long, f"{known.epoch.block.name}: on {known.epoch.block.cluster} it has"
    if not long:
        return f"{on} executors again"
    return (
        f"{on} had no executor for {WITHOUT_S / 60:.0f} minutes, and does nothing. See that its master and workers "
        "run, and whether others have all its cores."
    )


def _note_without(epoch: BlockEpoch, without: bool) -> None:
    """Note that a query has no executor; the time of the note is since when."""
    file = epoch.folder / "without"
    if without and not file.exists():
        file.touch()
    elif not without:
        file.unlink(missing_ok=True)


def did_batch(folder: JobFolder, epoch: BlockEpoch) -> bool:
    """Return whether a query has done a batch in an epoch, beyond those that it brought from the one before."""
    before = folder.before(epoch)
    return _newest_done(epoch) > (-1 if before is None else _newest_done(before))


def has_undone(epoch: BlockEpoch) -> bool:
    """Return whether a query has planned a batch that it has not done."""
    return max(Checkpoint(checkpoint_of(epoch)).offsets, default=-1) > _newest_done(epoch)


def _newest_done(epoch: BlockEpoch) -> int:
    return max(Checkpoint(checkpoint_of(epoch)).commits, default=-1)


def _registered(spark: SparkSession) -> int:
    there: int = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size()
    return there - 1  # the driver is one of them
