"""When live batches leave the executors free: a replay's batch begins between two of them.

Begun beside a live batch, its tasks stand in the way of each stage of that batch, and its plan in that of the driver.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tidecast.spark.progress import parse_offsets

EARLY = 0.5
"""Share of a usual pause within which a batch may begin: what begins later runs into the next live batch."""
LONG = 2.0
"""Usual pauses after which no live batch is near: nothing comes."""
NEWEST = 0.2
"""Weight of the newest pause in the usual one."""
UNSEEN_S = 2.0
"""Seconds without a look, as while there was no replay, after which it is not known when the pause began."""


LONGEST_S, SHORTEST_S = 5.0, 1.0
"""Seconds that a batch that is due waits for a pause, at most; where live batches leave none it would wait in vain for
good. On a computer three times as slow as usual half of a backfill's time went into waiting."""


@dataclass(frozen=True)
class Patience:
    """How long a replay's batch that is due waits for a pause; half as long after each one that waited in vain.

    Attributes:
        seconds: after which it begins beside live ones: they leave no pause, or its trigger never falls into one.
    """

    seconds: float = LONGEST_S

    def after(self, in_vain: bool) -> Patience:
        """Return that of the next batch, by whether one has waited in vain; back to what it was where pauses come."""
        return Patience(max(self.seconds / 2, SHORTEST_S) if in_vain else min(self.seconds * 2, LONGEST_S))


class LivePauses:
    """Tells whether a batch of a replay may begin now; ask again every fraction of a second, in one thread."""

    def __init__(self, query: Any, clock: Callable[[], float] = time.monotonic) -> None:
        """Follow a live query; None: there is none to be minded.

        Args:
            query: what `.start()` returned.
            clock: seconds that only rise.
        """
        self._query, self._clock = query, clock
        self._began: float | None = None
        self._asked_at = float("-inf")
        self._warm = query is None
        self._usual_s: float | None = None

    def is_first_over(self) -> bool:
        """Return whether the live query has run its first batch, or has looked for records and found none.

        Raises:
            py4j.protocol.Py4JError: the JVM does not answer.
        """
        self._warm = self._warm or self._query.lastProgress is not None
        return self._warm

    def topics(self) -> set[str]:
        """Return the topics whose offsets the live query's newest report tells; none before one, or without a query.

        Raises:
            py4j.protocol.Py4JError: the JVM does not answer.
        """
        last = None if self._query is None else self._query.lastProgress
        sources = [] if last is None else last.get("sources") or []
        return {topic for source in sources for topic, _ in parse_offsets(source.get("endOffset"))}

    def may_begin(self) -> bool:
        """Return whether live batches leave the executors free now.

        Raises:
            py4j.protocol.Py4JError: the JVM does not answer.
        """
        if self._query is None:
            return True
        now = self._clock()
        if now - self._asked_at > UNSEEN_S:
            self._began = None
        self._asked_at = now
        if self._query.status["isTriggerActive"]:
            if self._began is not None:
                length = now - self._began
                usual = length if self._usual_s is None else self._usual_s
                self._usual_s, self._began = usual + NEWEST * (length - usual), None
            return False
        self._began = now if self._began is None else self._began
        since_s, usual_s = now - self._began, self._usual_s
        return usual_s is None or since_s <= EARLY * usual_s or since_s >= LONG * usual_s
