"""What readers of committed records see of a topic."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, TopicPartition

from configs.sections import Kafka
from pipelines.kafka.broker import topic_offsets
from pipelines.kafka.connection import RIGHTS, BrokerError, TopicError
from pipelines.kafka.librdkafka import make_client

WAIT_S = 30.0
_READER = {
    "group.id": "tidecast-committed", "enable.auto.commit": False, "isolation.level": "read_committed",
    "enable.partition.eof": True, "auto.offset.reset": "earliest",  # where the first ones are deleted meanwhile
}  # fmt: skip


class CommittedRecord(NamedTuple):
    """A record; `at_s`: when it was sent, epoch seconds."""

    key: bytes | None
    value: bytes | None
    at_s: float


def read_committed(kafka: Kafka, topic: str, newest: int | None = None) -> Iterator[CommittedRecord]:
    """Yield each record that is committed when it is begun, in order per partition; what comes later is left out.

    Args:
        kafka: the broker, its security and the topics' prefix.
        topic: name without the prefix.
        newest: yield only records at the last so many offsets of each partition, marks of transactions among them; None
            yields all.

    Raises:
        BrokerError: no broker is set, no such topic, one that this user may not read (TopicError), or nothing more came
            for 30 s of partitions that are not read to their end.
        SettingsError: a security option without a counterpart.
    """
    name, bounds = kafka.topic(topic), topic_offsets(kafka, topic)
    begins = {
        partition: first if newest is None else max(first, end - newest) for partition, (first, end) in bounds.items()
    }
    reader, left = make_client(Consumer, kafka, _READER), {*begins}
    try:
        reader.assign([TopicPartition(name, partition, first) for partition, first in begins.items()])
        until = time.monotonic() + WAIT_S
        while left:
            message = reader.poll(1.0)
            error = None if message is None else message.error()
            if message is not None and message.partition() in left and _is_of_one(error):
                _, end = bounds[message.partition()]
                if error is None and message.offset() < end:
                    yield CommittedRecord(message.key(), message.value(), message.timestamp()[1] / 1000)
                if error is not None or message.offset() >= end - 1:
                    left.discard(message.partition())
                until = time.monotonic() + WAIT_S
            elif error is not None and error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                raise TopicError(f"the broker at {kafka.bootstrap} forbids to read topic {name!r}. {RIGHTS}")
            elif time.monotonic() > until:  # the client itself tries again by itself, and for ever
                why = "" if error is None else f" ({error.str()})"
                raise BrokerError(
                    f"topic {name!r} at {kafka.bootstrap}: nothing more came for {WAIT_S:g} s{why}. "
                    "See that the broker runs (`make up` starts one), then start again."
                )
    finally:
        reader.close()


def _is_of_one(error: KafkaError | None) -> bool:
    """Whether what a poll returned is of its partition: a record, or that there is no more."""
    return error is None or error.code() == KafkaError._PARTITION_EOF
