"""Kafka for the pipeline: follow and read topics, which are named without the prefix `kafka.prefix`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Literal

from kafka import TopicPartition

from configs.sections import Kafka
from pipelines.kafka.connection import BrokerError, TopicError, answered, connect_client, no_such_topic
from tidecast.connection.transport import consumer

Start = Literal["earliest", "latest"]
Place = tuple[str, int]
"""A topic, without the prefix, and the number of one of its partitions."""
STUCK_S = 30.0
"""Seconds without a further record after which nobody waits for one that there is."""


@dataclass(frozen=True)
class Record:
    """One record of a topic (named without the prefix); `timestamp` is Kafka's, epoch seconds; `key` may be None.

    A record without a value, as takes a key away where a topic is compacted, has an empty one.
    """

    topic: str
    partition: int
    offset: int
    key: str | None
    value: bytes
    timestamp: float
    headers: Mapping[str, bytes] = field(default_factory=dict)


class Follower:
    """Reads topics as they grow, from the beginning (`start="earliest"`) or from now (`"latest"`); without a group.

    Raises:
        BrokerError: no broker is set or answers within 10 s; TopicError: no such topic, or this user may not see it.
        SettingsError: as `connect_client`.
    """

    def __init__(self, kafka: Kafka, topics: list[str], start: Start = "earliest") -> None:
        self._consumer, self._kafka = connect_client(consumer, kafka), kafka
        try:
            self._assign([kafka.topic(topic) for topic in topics], start)
        except BaseException:
            self._consumer.close()
            raise

    def poll(self, wait_s: float) -> list[Record]:
        """Return what there is, in order per partition, waiting up to `wait_s` (≥ 0) seconds for it; may be empty.

        Raises:
            TopicError: the broker forbids to read a topic, which is named.
        """
        with answered(self._kafka):
            found = self._consumer.poll(timeout_ms=int(wait_s * 1000))
        return [_record(r, self._kafka.prefix) for records in found.values() for r in records]

    def seek_to_time(self, wall_time: float) -> None:
        """Move every partition to its first record stamped at `wall_time` (epoch seconds) or later, or else to its end.

        Raises:
            ValueError: `wall_time` is negative; else as `ends`.
        """
        partitions = self._consumer.assignment()
        with answered(self._kafka):
            ends = self._consumer.end_offsets(partitions)  # before: what comes between the two is found by its time
            firsts = self._consumer.offsets_for_times({p: int(wall_time * 1000) for p in partitions})
        for partition in partitions:
            first = firsts.get(partition)
            self._consumer.seek(partition, ends[partition] if first is None else first.offset)

    def seek_to_newest(self, newest: Mapping[str, int | None]) -> dict[Place, int]:
        """Move each partition to the last so many records of its topic (None: to its first), and return the `ends`.

        Raises:
            KeyError: a followed topic is not named, without the prefix; else as `ends`.
        """
        partitions = self._consumer.assignment()
        with answered(self._kafka):
            firsts = self._consumer.beginning_offsets(partitions)
            ends = self._consumer.end_offsets(partitions)
        for partition in partitions:
            many, first = newest[partition.topic.removeprefix(self._kafka.prefix)], firsts[partition]
            self._consumer.seek(partition, first if many is None else max(first, ends[partition] - many))
        return {self._place(one): end for one, end in ends.items()}

    def seek(self, offsets: Mapping[Place, int]) -> None:
        """Move these partitions to these offsets."""
        for (topic, number), offset in offsets.items():
            self._consumer.seek(TopicPartition(self._kafka.topic(topic), number), offset)

    def positions(self) -> dict[Place, int]:
        """Return the offset that is polled next of each partition; raises as `ends`."""
        with answered(self._kafka):
            return {self._place(one): self._consumer.position(one) for one in self._consumer.assignment()}

    def ends(self) -> dict[Place, int]:
        """Return the offset that is written next of each partition.

        Raises:
            BrokerError: no answer within 30 s; TopicError: the broker forbids it.
        """
        with answered(self._kafka):
            ends = self._consumer.end_offsets(self._consumer.assignment())
        return {self._place(one): end for one, end in ends.items()}

    def unread(self, ends: Mapping[Place, int]) -> set[Place]:
        """Return the partitions of which records before these offsets were not polled yet; raises as `ends`."""
        return {place for place, position in self.positions().items() if position < ends[place]}

    def read_until(self, ends: Mapping[Place, int]) -> Iterator[Record]:
        """Yield what was not polled yet before these offsets, as of `ends`; in order per partition.

        Records behind them that come along are among it: what is polled next goes on after these.

        Raises:
            BrokerError: nothing more came for STUCK_S (30 s); TopicError: the broker forbids to read a topic.
        """
        asked = {TopicPartition(self._kafka.topic(topic), number): end for (topic, number), end in ends.items()}
        yield from _read_until(self._consumer, self._kafka, asked)

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()

    def _assign(self, topics: list[str], start: Start) -> None:
        partitions = [
            TopicPartition(topic, number)
            for topic in topics
            for number in sorted(_partitions(self._consumer, self._kafka, topic))
        ]
        self._consumer.assign(partitions)
        seek = self._consumer.seek_to_end if start == "latest" else self._consumer.seek_to_beginning
        seek(*partitions)
        with answered(self._kafka):
            for partition in partitions:
                self._consumer.position(partition)  # resolves the seek now, so that "latest" means this moment

    def _place(self, partition: TopicPartition) -> Place:
        return partition.topic.removeprefix(self._kafka.prefix), partition.partition


def topic_offsets(kafka: Kafka, topic: str) -> dict[int, tuple[int, int]]:
    """Return {partition: (first offset, next offset to be written)} of a topic, named without the prefix.

    Raises:
        BrokerError: no broker is set or answers within 10 s (30 s for the look-up), no such topic, or one that this
            user may not see.
        SettingsError: as `connect_client`.
    """
    with closing(connect_client(consumer, kafka)) as reader:
        return {partition.partition: bounds for partition, bounds in _bounds(reader, kafka, topic).items()}


def read_records(kafka: Kafka, topic: str, newest: int | None = None) -> Iterator[Record]:
    """Yield a topic's records up to the end that it has when iteration begins, which connects; in order per partition.

    Args:
        kafka: the broker, its security and the topics' prefix.
        topic: name without the prefix.
        newest: yield only records at the last so many offsets of each partition; None yields all.

    Raises:
        BrokerError: no broker is set or answers within 10 s, no such topic, one that this user may not read, or nothing
            more came for STUCK_S (30 s), as no answer about its offsets.
        SettingsError: as `connect_client`.
    """
    with closing(connect_client(consumer, kafka)) as reader:
        bounds = {p: (first, end) for p, (first, end) in _bounds(reader, kafka, topic).items() if end > first}
        ends = {p: end for p, (_, end) in bounds.items()}
        reader.assign(list(ends))
        for partition, (first, end) in bounds.items():
            reader.seek(partition, first if newest is None else max(first, end - newest))
        for record in _read_until(reader, kafka, ends):
            if record.offset < ends[TopicPartition(kafka.topic(topic), record.partition)]:
                yield record


def _read_until(reader: Any, kafka: Kafka, ends: Mapping[TopicPartition, int]) -> Iterator[Record]:
    """Records before these offsets, and what is behind them in the same answers of the broker."""
    count, until_s = 0, time.monotonic() + STUCK_S
    while True:
        with answered(kafka):
            unread = {place for place, end in ends.items() if reader.position(place) < end}
            if not unread:
                return
            found = reader.poll(timeout_ms=500)
        for records in found.values():
            yield from (_record(one, kafka.prefix) for one in records)
            count += len(records)
        if found.keys() & unread:
            until_s = time.monotonic() + STUCK_S
        elif time.monotonic() > until_s:  # the client itself would try for ever
            topics = ", ".join(repr(name) for name in sorted({place.topic for place in unread}))
            raise BrokerError(
                f"topic {topics} at {kafka.bootstrap}: nothing more came for {STUCK_S:g} s, {count} records were read. "
                "See that the broker runs (`make up` starts one), then start again."
            )


def _bounds(reader: Any, kafka: Kafka, topic: str) -> dict[TopicPartition, tuple[int, int]]:
    name = kafka.topic(topic)
    places = [TopicPartition(name, number) for number in sorted(_partitions(reader, kafka, name))]
    with answered(kafka):
        first, last = reader.beginning_offsets(places), reader.end_offsets(places)
    return {place: (first[place], last[place]) for place in places}


def _partitions(client: Any, kafka: Kafka, topic: str) -> set[int]:
    with answered(kafka):
        found = client.partitions_for_topic(topic)
    if not found:
        raise TopicError(no_such_topic(topic))
    return set(found)


def _record(raw: Any, prefix: str) -> Record:
    key = raw.key.decode("utf-8", "replace") if raw.key is not None else None
    topic = raw.topic.removeprefix(prefix)
    return Record(topic, raw.partition, raw.offset, key, raw.value or b"", raw.timestamp / 1000, dict(raw.headers))
