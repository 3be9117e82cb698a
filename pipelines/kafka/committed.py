"""What readers of committed records see of a topic."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, TopicPartition

from configs.sections import Kafka
from pipelines.kafka.broker import topic_offsets
from pipelines.kafka.connection import BrokerError
from pipelines.kafka.librdkafka import make_client

WAIT_S = 30.0
_READER = {
    "group.id": "tidecast-committed", "enable.auto.commit": False, "isolation.level": "read_committed",
    "enable.partition.eof": True,
}  # fmt: skip


class CommittedRecord(NamedTuple):
    """A record; `at_s`: when it was sent, epoch seconds."""

    key: bytes | None
    value: bytes | None
    at_s: float


def read_committed(kafka: Kafka, topic: str, newest: int | None = None) -> Iterator[CommittedRecord]:
    """Yield each record that is committed now, in order per partition.

    Args:
        kafka: the broker, its security and the topics' prefix.
        topic: name without the prefix.
        newest: yield only records at the last so many offsets of each partition, marks of transactions among them; None
            yields all.

    Raises:
        BrokerError: no broker is set, no such topic, or nothing more came for 30 s.
        SettingsError: a security option without a counterpart.
    """
    begins = {
        partition: first if newest is None else max(first, end - newest)
        for partition, (first, end) in topic_offsets(kafka, topic).items()
    }
    reader, left = make_client(Consumer, kafka, _READER), {*begins}
    try:
        reader.assign([TopicPartition(kafka.topic(topic), partition, first) for partition, first in begins.items()])
        until = time.monotonic() + WAIT_S
        while left:
            message = reader.poll(1.0)
            error = None if message is None else message.error()
            if message is not None and error is None:
                yield CommittedRecord(message.key(), message.value(), message.timestamp()[1] / 1000)
            elif error is not None and error.code() == KafkaError._PARTITION_EOF:
                left.discard(message.partition())
            elif time.monotonic() > until:  # the client itself tries again by itself, and for ever
                why = "" if error is None else f" ({error.str()})"
                raise BrokerError(
                    f"topic {kafka.topic(topic)!r} at {kafka.bootstrap}: nothing more came for {WAIT_S:g} s{why}. "
                    "See that the broker runs (`make up` starts one), then start again."
                )
            else:
                continue
            until = time.monotonic() + WAIT_S
    finally:
        reader.close()
