"""Kafka for the pipeline: follow and read topics, which are named without the prefix `kafka.prefix`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from kafka import TopicPartition
from kafka.errors import AuthorizationError

from configs.errors import CorrectableError, SettingsError
from configs.sections import Kafka
from tidecast.connection.reach import UnreachableError
from tidecast.connection.transport import consumer

C = TypeVar("C")
Place = tuple[str, int]
"""A topic, without the prefix, and the number of one of its partitions."""
STUCK_S = 30.0  # seconds without a further record after which `read_records` gives up
RIGHTS = "docs/security.md says which rights on which topics each part needs; kafka-acls.sh --list shows what there is."
"""The remedy where the broker forbids something."""


class BrokerError(CorrectableError, RuntimeError):
    """The broker cannot be reached or refuses; the message names the address and the remedy."""


class TopicError(BrokerError):
    """The broker answers, but a topic is not there, or not for this user: it says nothing about other topics."""


@dataclass(frozen=True)
class Record:
    """One record of a topic (named without the prefix); `timestamp` is Kafka's, epoch seconds; `key` may be None."""

    topic: str
    partition: int
    offset: int
    key: str | None
    value: bytes
    timestamp: float
    headers: Mapping[str, bytes] = field(default_factory=dict)


class Follower:
    """Reads topics as they grow, from the beginning (`start="earliest"`) or from now (`"latest"`); without a group.

    The broker waits for `gather_bytes` of all partitions together before it answers, but 50 ms at most.

    Raises:
        BrokerError: no broker is set or answers within 10 s; TopicError: no such topic, or this user may not see it.
        SettingsError: as `connect_client`.
    """

    def __init__(self, kafka: Kafka, topics: list[str], start: str = "earliest", gather_bytes: int = 1) -> None:
        self._consumer, self._kafka = connect_client(consumer, kafka, fetch_min_bytes=gather_bytes), kafka
        names = [kafka.topic(topic) for topic in topics]
        partitions = [TopicPartition(t, p) for t in names for p in sorted(_partitions(self._consumer, t))]
        self._consumer.assign(partitions)
        seek = self._consumer.seek_to_end if start == "latest" else self._consumer.seek_to_beginning
        seek(*partitions)
        with permitted(kafka):
            for partition in partitions:
                self._consumer.position(partition)  # resolves the seek now, so that "latest" means this moment

    def poll(self, wait_s: float) -> list[Record]:
        """Return what there is, in order per partition, waiting up to `wait_s` (≥ 0) seconds for it; may be empty.

        Raises:
            TopicError: the broker forbids to read a topic, which is named.
        """
        with permitted(self._kafka):
            found = self._consumer.poll(timeout_ms=int(wait_s * 1000))
        return [_record(r, self._kafka.prefix) for records in found.values() for r in records]

    def seek_to_time(self, wall_time: float) -> None:
        """Move every partition to its first record stamped at `wall_time` (epoch seconds) or later, or else to its end.

        Raises:
            ValueError: `wall_time` is negative; else as `ends`.
        """
        partitions = self._consumer.assignment()
        with permitted(self._kafka):
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
        with permitted(self._kafka):
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
        with permitted(self._kafka):
            return {self._place(one): self._consumer.position(one) for one in self._consumer.assignment()}

    def ends(self) -> dict[Place, int]:
        """Return the offset that is written next of each partition.

        Raises:
            TopicError: the broker forbids it.
            kafka.errors.KafkaError: no answer within 30 s (KafkaTimeoutError).
        """
        with permitted(self._kafka):
            ends = self._consumer.end_offsets(self._consumer.assignment())
        return {self._place(one): end for one, end in ends.items()}

    def unread(self, ends: Mapping[Place, int]) -> set[Place]:
        """Return the partitions of which records before these offsets were not polled yet; raises as `ends`."""
        return {place for place, position in self.positions().items() if position < ends[place]}

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()

    def _place(self, partition: TopicPartition) -> Place:
        return partition.topic.removeprefix(self._kafka.prefix), partition.partition


def topic_offsets(kafka: Kafka, topic: str) -> dict[int, tuple[int, int]]:
    """Return {partition: (first offset, next offset to be written)} of a topic, named without the prefix.

    Raises:
        BrokerError: no broker is set or answers within 10 s, no such topic, or one that this user may not see.
        SettingsError: as `connect_client`.
        kafka.errors.KafkaError: the look-up is not answered within 30 s (KafkaTimeoutError).
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
            more came for STUCK_S (30 s).
        SettingsError: as `connect_client`.
        kafka.errors.KafkaError: the offsets are not known within 30 s (KafkaTimeoutError).
    """
    with closing(connect_client(consumer, kafka)) as reader:
        bounds = {p: (first, end) for p, (first, end) in _bounds(reader, kafka, topic).items() if end > first}
        ends = {p: end for p, (_, end) in bounds.items()}
        reader.assign(list(ends))
        for partition, (first, end) in bounds.items():
            reader.seek(partition, first if newest is None else max(first, end - newest))
        count, deadline = 0, time.monotonic() + STUCK_S
        while any(reader.position(p) < end for p, end in ends.items()):
            with permitted(kafka):
                by_partition = reader.poll(timeout_ms=500)
            if by_partition:
                for partition, records in by_partition.items():
                    yield from (_record(r, kafka.prefix) for r in records if r.offset < ends[partition])
                    count += len(records)
                deadline = time.monotonic() + STUCK_S
            elif time.monotonic() > deadline:  # the client itself would try for ever
                raise BrokerError(
                    f"topic {topic!r} at {kafka.bootstrap}: nothing more came for {STUCK_S:g} s, {count} records were "
                    "read. See that the broker runs (`make up` starts one), then start again."
                )


def connect_client(make: Callable[..., C], kafka: Kafka, **options: Any) -> C:
    """Connect a kafka-python client to the broker of the settings: calls `make(address, security, **options)`.

    Raises:
        BrokerError: no broker is set or answers within 10 s.
        SettingsError: `kafka.security` has an unknown option or a wrong value, or a port of the address is no number.
    """
    try:
        return make(bootstrap_address(kafka), kafka.security, **options)
    except UnreachableError as error:
        raise BrokerError(
            f"{error} `make up` starts a broker; settings: TIDECAST_KAFKA__BOOTSTRAP, kafka.security."
        ) from None
    except ValueError as error:
        named = next((f"kafka.security.{key}" for key in kafka.security if key in str(error)), None)
        where = named or f"kafka.bootstrap={kafka.bootstrap}"
        said = str(error).removeprefix("security: ")
        raise SettingsError(f"{where}: {said}. docs/attach.md shows both settings.") from None


@contextmanager
def permitted(kafka: Kafka) -> Iterator[None]:
    """Turn what the broker forbids in the `with` block into a TopicError that names the topics and the remedy."""
    try:
        yield
    except AuthorizationError as error:
        raise TopicError(f"the broker at {kafka.bootstrap} forbids it: {error}. {RIGHTS}") from None


def bootstrap_address(kafka: Kafka) -> str:
    """Return the broker's address in the settings, `host:port`.

    Raises:
        BrokerError: none is set.
    """
    if not kafka.bootstrap:
        raise BrokerError("kafka.bootstrap is not set and no stack is running. `make up` starts one.")
    return kafka.bootstrap


def _bounds(reader: Any, kafka: Kafka, topic: str) -> dict[TopicPartition, tuple[int, int]]:
    places = [TopicPartition(kafka.topic(topic), p) for p in sorted(_partitions(reader, kafka.topic(topic)))]
    with permitted(kafka):
        first, last = reader.beginning_offsets(places), reader.end_offsets(places)
    return {place: (first[place], last[place]) for place in places}


def _partitions(client: Any, topic: str) -> set[int]:
    found = client.partitions_for_topic(topic)
    if not found:
        raise TopicError(
            f"topic {topic!r} does not exist on the broker, or this user may not see it. `tidecast autoscale` or "
            f"`tidecast up` creates our topics. {RIGHTS}"
        )
    return set(found)


def _record(raw: Any, prefix: str) -> Record:
    key = raw.key.decode("utf-8", "replace") if raw.key is not None else None
    topic = raw.topic.removeprefix(prefix)
    return Record(topic, raw.partition, raw.offset, key, raw.value, raw.timestamp / 1000, dict(raw.headers))
