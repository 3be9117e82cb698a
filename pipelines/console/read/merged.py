"""Records of several topics in the order of their time, while each topic is read at its own pace."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Collection, Iterable

from pipelines.kafka.broker import Place, Record


class MergedTopics:
    """Holds records back until none that was sent before them can come any more.

    Else a topic of few records would be read long before one of many, and what was decided in an hour would be known
    before its metrics.
    """

    def __init__(self) -> None:
        """Nothing is held yet."""
        self._held: list[tuple[float, int, Record]] = []
        self._count = itertools.count()
        self._came: dict[Place, float] = {}

    def add(self, records: Iterable[Record], unread: Collection[Place]) -> list[Record]:
        """Take records, and return those that are in turn, by their time stamps.

        Args:
            records: that were read, in order per partition.
            unread: partitions that are not at their ends; nothing later than their newest record is returned.
        """
        for record in records:
            place = (record.topic, record.partition)
            self._came[place] = max(self._came.get(place, -math.inf), record.timestamp)
            heapq.heappush(self._held, (record.timestamp, next(self._count), record))
        front = min((self._came.get(place, -math.inf) for place in unread), default=math.inf)
        found = []
        while self._held and self._held[0][0] <= front:
            found.append(heapq.heappop(self._held)[2])
        return found
