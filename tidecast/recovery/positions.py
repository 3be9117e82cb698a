"""Where a Kafka source's topics begin and end, and which records wait, asked with the source's options."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from tidecast.connection.security import translate_spark_options
from tidecast.connection.transport import consumer
from tidecast.recovery.checkpoint import RecoveryError
from tidecast.spark.sensors import Partition
from tidecast.spark.source import BOOTSTRAP, subscribed_topics

FIRST_S = 10.0
"""How long the first records that wait are waited for, seconds."""


class Positions:
    """Offsets of the topics that a source subscribes to; a context manager."""

    def __init__(self, source: Mapping[str, str]) -> None:
        """Connect; waits up to 10 s.

        Args:
            source: options of Spark's Kafka source.

        Raises:
            RecoveryError: it names no broker, or topics otherwise than by `subscribe`; or a topic is not there.
            tidecast.connection.reach.UnreachableError: the broker does not answer.
            ValueError, OSError: its security options cannot be translated.
        """
        options = {name.lower(): value for name, value in source.items()}
        topics = subscribed_topics([options])
        if BOOTSTRAP not in options or not topics:
            raise RecoveryError(f"source {sorted(options)}: {BOOTSTRAP} and subscribe, topics by name, are expected")
        self._client: Any = consumer(options[BOOTSTRAP], translate_spark_options(options))
        try:
            parts = {topic: sorted(self._client.partitions_for_topic(topic) or ()) for topic in topics}
            if missing := [topic for topic, numbers in parts.items() if not numbers]:
                raise RecoveryError(f"topic {missing[0]!r} is not on the broker at {options[BOOTSTRAP]}")
        except BaseException:
            self._client.close()
            raise
        self.places = [(topic, number) for topic, numbers in parts.items() for number in numbers]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    def begins(self) -> dict[Partition, int]:
        """Return the first offset that each partition holds."""
        return _plain(self._client.beginning_offsets(self._known()))

    def ends(self) -> dict[Partition, int]:
        """Return the offset of each partition's next record."""
        return _plain(self._client.end_offsets(self._known()))

    def at(self, wall_s: float, ends: Mapping[Partition, int]) -> dict[Partition, int]:
        """Return the offset of each partition's first record that is stamped then or later, or its end."""
        found = self._client.offsets_for_times({place: max(int(wall_s * 1000), 0) for place in self._known()})
        at = {(place.topic, place.partition): one.offset for place, one in found.items() if one is not None}
        return {place: min(at.get(place, end), end) for place, end in ends.items()}

    def oldest_s(self, starts: Mapping[Partition, int]) -> float | None:
        """Return the oldest stamp of the first records from some offsets on, epoch seconds; None where none comes."""
        from kafka import TopicPartition

        places = [TopicPartition(*place) for place in starts]
        self._client.assign(places)
        for place in places:
            self._client.seek(place, starts[place.topic, place.partition])
        stamps: dict[Any, float] = {}
        until = time.monotonic() + FIRST_S
        while len(stamps) < len(places) and time.monotonic() < until:
            for place, records in self._client.poll(timeout_ms=500).items():
                stamps.setdefault(place, records[0].timestamp / 1000)
        return min(stamps.values(), default=None)

    def _known(self) -> list[Any]:
        from kafka import TopicPartition

        return [TopicPartition(*place) for place in self.places]


def _plain(found: Mapping[Any, int]) -> dict[Partition, int]:
    return {(place.topic, place.partition): at for place, at in found.items()}
