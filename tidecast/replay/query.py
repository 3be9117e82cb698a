"""One replay's query: its read limit follows the rate, its progress is counted in offsets, or files, of the range."""

from __future__ import annotations

import logging
import math
import re
import time
from typing import Any

from tidecast.orders import ReplayOrder
from tidecast.replay.pace import SLOW_START_S, WORTH, Balance, Pace, Reached, apart_s, fixed_part, rows_per_batch
from tidecast.replay.pauses import Patience
from tidecast.replay.source import places_read
from tidecast.replay.staged import StagedRange, rows_at_once
from tidecast.spark.admission import Admission
from tidecast.spark.cluster import Cluster
from tidecast.spark.progress import Batch, ProgressReader
from tidecast.spark.sensors import Partition

log = logging.getLogger("tidecast")

READING = "Processing new data"
"""How Spark says in a query's status that a batch is run that reads records."""
_RAISED = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n)+(\S.*(?:\n: .*)?)")
"""What Python raised last. Of an error of the JVM py4j says that one occurred, and in the next line which."""


class ReplayQuery:
    """A query that reads an order's range.

    Attributes:
        newest: its newest batch that read records; None before one.
    """

    def __init__(self, order: ReplayOrder, query: Any, warm: bool = False) -> None:
        """Follow a query that this process has started.

        Args:
            order: that it meets.
            query: what `.start()` returned.
            warm: whether a dry run was its first batch.

        Raises:
            tidecast.spark.cluster.ClusterError: it is none of this process, or its read limit cannot be set
                (AdmissionError).
        """
        self.newest: Batch | None = None
        self._order, self._query = order, query
        self._first, self._past = places_read(order), order.past
        self._cluster = Cluster(query)
        self._reader = ProgressReader(self._cluster.jquery)
        self._admission = Admission(query)
        self._committed: dict[Partition, int] = {}
        self._pace: Pace | None = None
        self._task_s: list[float] = [math.inf] if warm else []  # of which nothing was told
        self._admitted: int | None = None
        self._grows = False  # whether the next batch may read as much as may follow the one before
        self._began: float | None = None
        self._came: float | None = None
        self._next_at = 0.0
        self._due_since: float | None = None
        self._paused_at: float | None = None
        self._reading_since = time.time()
        self._staged = StagedRange(query) if order.table else None
        self._unit = rows_at_once(order) if order.table else len(self._first)
        self._worth = self._unit * (1 if order.table else WORTH)
        self._rps = 0.0
        self._balance, self._reached, self._allowed_at = Balance(), Reached(), time.monotonic()
        self._patience, self._in_vain, self._live_s, self._reading = Patience(), False, 0.0, False

    def poll(self) -> bool:
        """Read what its batches tell; return whether all of the range is committed.

        Raises:
            RuntimeError: the query has failed, or was stopped by somebody else.
            py4j.protocol.Py4JError: the JVM does not answer.
        """
        # Before its batches are counted: one that ends in between is counted next time, and none is begun until then.
        self._reading = self._query.status["message"] == READING
        for batch in self._reader.new_batches():
            self._committed.update(batch.ends)
            began = batch.finished - batch.batch_s
            if batch.rows:
                self._came = self._rate(batch, began)
                self._owe(batch)
                self._pace = self._paced(batch)
                self.newest, self._began = batch, began
        if self.newest is None:  # one that goes on after all of its range was committed has no batch to report
            self._committed.update(self._reader.committed())
        if self._is_read():
            return True
        if not self._query.isActive:
            failure = self._query.exception()
            raise RuntimeError(f"its query has ended before the range was read: {why_ended(failure)}") from failure
        return False

    def admit(self, rps: float, may_begin: bool = True, live_s: float = 0.0) -> None:
        """Let it read so many records per wall second from its next batch on; 0 pauses it.

        Args:
            rps: records per wall second.
            may_begin: whether live records leave room for a batch now; else it waits as long as `Patience` has it.
            live_s: what the newest batch of live records took.

        Raises:
            tidecast.spark.admission.AdmissionError: its source takes no limit.
            py4j.protocol.Py4JError: the JVM does not answer.
        """
        self._live_s = live_s
        if not self._admission.sources():
            return  # its first batch is being planned; it reads as little as `replay_stream` says
        now = time.monotonic()
        self._allow(now)
        if self._paused_at is not None:
            if self._due_since is not None:
                self._due_since += now - self._paused_at  # nobody looked for a pause between live batches meanwhile
            self._paused_at, self._began = None, None
        self._rps = rps
        if rps <= 0:
            self._began = None  # the time until it goes on is no batch's
        if not self._reading:  # else what it reads is not counted yet
            waits = self._order.apart is None and self._due_since is not None
            self._balance.bound(rps, self._worth, self._order.records - self._done(), saves=waits)
        rows = 0
        if rps <= 0 or self._reading or self._balance.rows < 0 or now < self._next_at:
            self._due_since = None  # the rate has not allowed it until now, or Spark would go on at once
        else:
            self._due_since = now if self._due_since is None else self._due_since
            self._in_vain = not may_begin and now - self._due_since > self._patience.seconds
            if may_begin or self._in_vain:  # else live records need the cores
                rows = self._next_rows(rps)
        if rows != self._admitted:
            self._admission.admit(rows, self._unit if self._staged else None)
            self._admitted = rows

    def pause(self) -> None:
        """Let it begin no batch until `admit` is called again; where that fails, its own next turn tells of it."""
        if self._paused_at is None:
            now = time.monotonic()
            self._allow(now)
            self._paused_at = now
        try:
            if self._admission.sources():
                self._admission.admit(0, self._unit if self._staged else None)
                self._admitted = 0
        except Exception as error:
            log.warning("%s: replay %s cannot be paused: %s", self._order.job, self._order.id, error)

    @property
    def served_rps(self) -> float | None:
        """Records/s of its newest batch while that ran; None before one."""
        return self.newest.rows / self.newest.batch_s if self.newest is not None and self.newest.batch_s > 0 else None

    def measured(self) -> dict[str, Any]:
        """Return the fields of `ReplayProgress` that its batches tell."""
        done = self._done()
        if self._pace is None or self.newest is None:
            return {"done": done, "reading_since": self._reading_since}
        pace, came, reached = self._pace, self._came, self._reached.share
        return {
            "done": done, "rps": None if came is None else round(came, 3), "rows": pace.rows,
            "batch_s": round(self.newest.batch_s, 3), "task_s": round(pace.task_s, 3), "work_s": round(pace.work_s, 3),
            "reading_since": self._reading_since, "reached": None if reached is None else round(reached, 3),
        }  # fmt: skip

    def stop(self) -> None:
        """Stop the query, if it runs; what it has committed stays."""
        if self._query.isActive:  # Spark logs each stop, also of what has ended
            self._query.stop()

    def _is_read(self) -> bool:
        if self._staged is not None:
            read, files = self._staged.files()
            return 0 < files == read
        return all(self._committed.get(place, first) >= self._past[place] for place, first in self._first.items())

    def _done(self) -> int:
        """How many of the order's records are committed; of a table by its files, which are of one size."""
        if self._staged is not None:
            read, files = self._staged.files()
            return self._order.records * read // files if files else 0
        return sum(
            min(max(self._committed.get(place, 0), first), self._past[place]) - first
            for place, first in self._first.items()
        )

    def _next_rows(self, rps: float) -> int:
        split = self._pace is not None and self._pace.was_split(self._order.task_rows)
        rows = rows_per_batch(rps, self._pace, self._order.task_s, self._unit, self._worth, split, self._balance.rows)
        self._grows = self._pace is not None and rows >= self._pace.may_grow_to
        return rows

    def _allow(self, now: float) -> None:
        """Count what the rate has allowed until now."""
        seconds, self._allowed_at = now - self._allowed_at, now
        self._balance.allow(self._rps, seconds)
        if self._paused_at is None:  # else another one was started, and it could not have read
            self._reached.allow(self._rps, seconds)

    def _owe(self, batch: Batch) -> None:
        """The next batch is read when the rate has made up for this one, and live records have had as long."""
        now = time.monotonic()
        self._allow(now)
        self._balance.read(batch.rows)
        if self._finds_out(batch):
            self._reached.pass_over()
        else:
            self._reached.end(batch.rows)
        beside_s = self._live_s if self._in_vain else 0.0  # what waits for a pause leaves live batches alone until then
        self._patience, self._in_vain, self._due_since = self._patience.after(self._in_vain), False, None
        alone = self._order.apart is not None
        self._next_at = now + (0.0 if alone else apart_s(batch.batch_s, beside_s) - batch.batch_s)

    def _finds_out(self, batch: Batch) -> bool:
        """Whether a batch, the one after `_pace`, was one of those by which it is found out what a batch may hold."""
        if self._pace is None or time.time() - self._reading_since < SLOW_START_S:
            return True
        grew = self._pace.first or batch.rows > self._pace.rows  # else the records that it was let read are not there
        return self._reached.share is None and self._grows and grew

    def _rate(self, batch: Batch, began: float) -> float | None:
        """Records/s from the start of the batch before to that of this one; of the first, or after a pause, its own."""
        if self._began is not None and self._pace is not None and began > self._began:
            return self._pace.rows / (began - self._began)
        return batch.rows / batch.batch_s if batch.batch_s > 0 else None

    def _paced(self, batch: Batch) -> Pace:
        stages = self._cluster.batch_stages(batch.run_id, batch.batch_id)
        _, task_s, tasks = max(
            ((stage.run_s, stage.run_s / stage.tasks, stage.tasks) for stage in stages if stage.tasks),
            default=(0, 0.0, 0),
        )
        self._task_s.append(task_s)
        work_s, fixed_s = sum(stage.run_s for stage in stages), fixed_part(self._task_s, self._order.task_s)
        return Pace(batch.rows, task_s, work_s, fixed_s, len(self._task_s) == 1, tasks, batch.span)


def why_ended(failure: BaseException | None) -> str:
    """Return what a query has ended with: of an error that Python raised, as a sink's, its own words alone.

    Spark tells these behind its own and the whole stack, where nobody comes to them in a line.

    Args:
        failure: as the query tells it; None: it was stopped.
    """
    if failure is None:
        return "it was stopped"
    raised = _RAISED.findall(f"{failure}")
    return str(raised[-1]).replace("\n", "") if raised else f"{failure}"
