"""A replay that is met, and what is done for it in a thread of its own: the others go on being paced meanwhile."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tidecast.orders import ReplayOrder
from tidecast.replay.query import ReplayQuery

log = logging.getLogger("tidecast")

POOL = "replay"
"""Pool of Spark's fair scheduler in which replays run; in an allocation file live records' pool should have the cores
first (`minShare`). Without `spark.scheduler.mode=FAIR` pools have no effect."""
WAIT_S = 5.0
"""How long a driver that ends waits for a publication; one that it cuts short is repeated by the next agent."""
AGAIN_MOST_S = 600.0
"""Longest wait before a gap that fails is tried again; a query that has read for as long had failed for once."""
TELL = 4
"""Failures in a row from which on a gap that is tried again says that it has failed."""
CANCEL_S = 0.25
"""Seconds between two cancellations of the Spark jobs of what is to end: it may have more than one."""


def enter_pool() -> None:
    """Let the jobs of this thread, and of queries that it starts, run in the replays' pool."""
    if (context := _context()) is not None:
        context.setLocalProperty("spark.scheduler.pool", POOL)


class Aside:
    """Copies an order's range and starts its query, compares it, or publishes it; once, in the replays' pool.

    Attributes:
        order: that it was begun for.
    """

    def __init__(self, order: ReplayOrder, act: Callable[[ReplayOrder], Any], what: str) -> None:
        """Begin it.

        Args:
            order: of the replay.
            act: what is done for it.
            what: a word for it.
        """
        self.order = order
        self._act, self._what = act, what
        self._result: Any = None
        self._error: Exception | None = None
        self._group = f"tidecast-{order.job}-{what}-{order.id}"
        self._thread = threading.Thread(target=self._run, name=self._group, daemon=True)
        self._thread.start()

    @property
    def going_on(self) -> bool:
        """Whether it has not ended."""
        return self._thread.is_alive()

    @property
    def failed(self) -> bool:
        """Whether it has ended by an error."""
        return self._error is not None

    def result(self) -> Any:
        """Return what `act` returned, once it has ended.

        Raises:
            Exception: what it has failed with.
        """
        if self._error is not None:
            raise self._error
        return self._result

    def wait(self) -> None:
        """Wait up to WAIT_S for its end."""
        self._thread.join(WAIT_S)

    def cancel_jobs(self) -> None:
        """Cancel the Spark jobs that it runs just now, so that it fails soon."""
        if (context := _context()) is not None:
            context.cancelJobGroup(self._group)

    def end(self) -> None:
        """Have it end, and stop the query that it has started; what it holds is let go of after that alone."""
        while self.going_on:
            self.cancel_jobs()
            self._thread.join(CANCEL_S)
        if self._result is not None:
            self._result.stop()

    def _run(self) -> None:
        try:
            enter_pool()
            if (context := _context()) is not None:
                context.setJobGroup(self._group, f"{self._what} of replay {self.order.id}")
            self._result = self._act(self.order)
        except Exception as error:
            log.debug("%s: %s of replay %s failed", self.order.job, self._what, self.order.id, exc_info=True)
            self._error = error


@dataclass
class MetReplay:
    """A replay as this application has met it.

    Attributes:
        query: that reads it.
        begun_s: since when it is to be read, seconds of a steady clock.
        starting: copies its range and starts its query.
        closing: publishes or compares it, once all of it is read.
        compared: what a comparison came to, until it is to be published.
        unsettled: when (seconds of a steady clock) it is published again, and why, and the wall time of the order that
            was met as it was published; "": nothing is published yet.
        held: until when (seconds of a steady clock) it is not met, and why, and the wall time of its order.
        read_since: since when (seconds of a steady clock) its query reads.
        failures: of a gap, in a row: since all of it was read, or its query has read for long.
        over: wall time of the order that has ended; a later one is met.
    """

    query: ReplayQuery | None = None
    begun_s: float | None = None
    starting: Aside | None = None
    closing: Aside | None = None
    compared: str | None = None
    unsettled: tuple[float, str, float] = (0.0, "", 0.0)
    held: tuple[float, str, float] = (0.0, "", 0.0)
    read_since: float = 0.0
    failures: int = 0
    over: float = 0.0

    @property
    def needs_no_rate(self) -> bool:
        """Whether nothing of it is to be read now: its range is copied, or all of it was read."""
        return bool(self.starting or self.closing or self.unsettled[1]) or self.compared is not None

    def take(self, query: ReplayQuery) -> None:
        """Have a query read it, from now on."""
        self.query, self.read_since = query, time.monotonic()

    def end_query(self) -> ReplayQuery | None:
        """Stop and return its query; if it is begun again, it goes on from the query's checkpoint."""
        query = self.query
        if query is not None:
            query.stop()
        self.query, self.begun_s, self.closing, self.compared, self.unsettled = None, None, None, None, (0.0, "", 0.0)
        return query

    def hold(self, order: ReplayOrder, seconds: float, why: str) -> None:
        """Have an order wait; what was to publish or compare it is called again then."""
        self.held, self.closing = (time.monotonic() + seconds, why, order.wall_time), None

    def waits(self, order: ReplayOrder) -> bool:
        """Return whether an order is to wait; a newer one, as to cancel it, is met at once."""
        return time.monotonic() < self.held[0] and order.wall_time <= self.held[2]

    def rests(self, order: ReplayOrder) -> bool:
        """Return whether it is not published again yet; for a newer order, as to resume it, it is at once."""
        return time.monotonic() < self.unsettled[0] and order.wall_time <= self.unsettled[2]

    def try_again(self, order: ReplayOrder, error: str, first_s: float) -> None:
        """Have a gap that failed be met again, from its publication if that did; after twice as long each time."""
        now = time.monotonic()
        if self.closing is not None:
            anew = not self.unsettled[1]  # all of it was read since it failed last
        else:
            anew = self.query is not None and now - self.read_since >= AGAIN_MOST_S
        self.failures = 1 if anew else self.failures + 1
        after_s = min(first_s * 2 ** min(self.failures - 1, 10), AGAIN_MOST_S)
        why = f"it failed and is tried again in {after_s:.0f} s: {error}"
        if self.closing is not None:  # it keeps its query: another one would wait for a rate, and has nothing to read
            self.closing, self.unsettled = None, (now + after_s, why, order.wall_time)
        else:
            self.end_query()
            self.hold(order, after_s, why)

    def state(self, usual: str) -> str:
        """Return what is said of it while it waits: that it has failed where it does so again and again."""
        return "failed" if self.failures >= TELL else usual


def _context() -> Any:
    from pyspark import SparkContext

    return SparkContext._active_spark_context
