"""What a task makes of a micro-batch, sent once: in one transaction with the number of the batch.

The number of the next batch stands in Kafka as the offset of a consumer group, beside the epoch of whoever sent the
last one. A task that is run again finds there that its share was sent; one that still runs elsewhere is shut out by
Kafka (KIP-98), and a query that was begun anew elsewhere, with a higher epoch, shuts out the one before it. Whoever
reads has to read what is committed only (`isolation.level`).
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from configs.sections import Kafka
from pipelines.kafka.connection import BrokerError
from pipelines.kafka.librdkafka import make_client

WAIT_S, AGAIN_S = 30.0, 0.2
_WRITER: dict[str, Any] = {"linger.ms": 5, "transaction.timeout.ms": 60_000}
_MOVING = (
    KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.UNSTABLE_OFFSET_COMMIT,
)  # fmt: skip
"""Codes of a broker that will answer soon."""
_READER: dict[str, Any] = {"enable.auto.commit": False, "isolation.level": "read_committed"}


class OutRecord(NamedTuple):
    """A record to send; `topic` is named without the prefix."""

    topic: str
    key: bytes | None
    value: bytes | None


class BatchMark(NamedTuple):
    """What was sent last of a query's part: number of the next batch, and the epoch of whoever sent it."""

    next_batch: int
    epoch: int


class SupersededError(BrokerError):
    """The query was begun anew elsewhere with a higher epoch; whoever gets this stops."""


class BatchWriter:
    """Sends what one part of a query makes, micro-batch by micro-batch.

    Raises:
        BrokerError: no broker is set; whether it answers is not checked yet.
        SettingsError: a security option without a counterpart.
    """

    def __init__(self, kafka: Kafka, query: str, part: int, epoch: int, marks: str) -> None:
        """A writer that has sent nothing yet.

        Args:
            kafka: broker, security and prefix.
            query: name that is the same wherever the query runs.
            part: number of the part; the same records of a batch always come in the same part.
            epoch: higher by one wherever the query is begun anew elsewhere.
            marks: a topic with more partitions than `part`, by whose partitions the marks are kept.
        """
        self._kafka, self._epoch = kafka, epoch
        self._name = f"{kafka.prefix}{query}"
        self._place = TopicPartition(kafka.topic(marks), part)
        self._producer: Any = None
        self._group: Any = None
        self._next: int | None = None

    def send(self, batch: int, records: Iterable[OutRecord]) -> int | None:
        """Send records of a micro-batch in one transaction; returns how many, None where they were sent before.

        Where another task has taken the place of this one since the last batch, it takes it back, once: whichever of
        both commits first is right.

        Raises:
            SupersededError: the query runs elsewhere with a higher epoch.
            BrokerError: the broker refuses, does not answer within 30 s, or shut this writer out; sent is nothing or
                all, which the next call finds.
        """
        made, known = list(records), self._next is not None
        try:
            return self._send(batch, made)
        except KafkaException as error:
            self.forget()
            if not (known and _is_shut_out(error)):
                raise self._refused(error) from None
        try:
            return self._send(batch, made)
        except KafkaException as error:
            self.forget()
            raise self._refused(error) from None

    def claim(self, next_batch: int | None = None) -> BatchMark:
        """Shut out whoever sent for this part before with a lower epoch, and return the mark from now on.

        Args:
            next_batch: number of the first batch that will be sent; None: the one after the last that was sent.

        Raises:
            SupersededError: somebody has claimed it with a higher epoch.
            BrokerError: as `send`.
        """
        try:
            found = self._begin()
            mark = BatchMark(found.next_batch if next_batch is None else next_batch, self._epoch)
            self._producer.begin_transaction()
            self._commit(mark)
        except KafkaException as error:
            self.forget()
            raise self._refused(error) from None
        return mark

    def has_mark(self) -> bool:
        """Return whether the broker knows what was sent last of this part, or that nothing was; shuts out nobody.

        Raises:
            BrokerError: as `send`.
        """
        try:
            return bool(self._read()[0].offset >= 0)
        except KafkaException as error:
            raise self._refused(error) from None

    def forget(self) -> None:
        """Begin anew at the next call: what is known of the broker may have ceased to hold."""
        self._producer, self._next = None, None

    def _send(self, batch: int, records: list[OutRecord]) -> int | None:
        if self._next is None:
            self._begin()
        if self._next is not None and batch < self._next:
            return None
        self._producer.begin_transaction()
        for one in records:
            self._produce(one)
        self._commit(BatchMark(batch + 1, self._epoch))
        return len(records)

    def _produce(self, one: OutRecord) -> None:
        while True:
            try:
                self._producer.produce(self._kafka.topic(one.topic), one.value, one.key)
                return
            except BufferError:  # the client's queue is full: it is emptied by callbacks
                self._producer.poll(0.1)

    def _commit(self, mark: BatchMark) -> None:
        place = TopicPartition(self._place.topic, self._place.partition, mark.next_batch, str(mark.epoch))
        self._producer.send_offsets_to_transaction([place], self._group, WAIT_S)
        self._producer.commit_transaction(WAIT_S)
        self._next = mark.next_batch

    def _begin(self) -> BatchMark:
        """Take the part over, and read its mark."""
        identity = f"{self._name}-{self._place.partition}"
        self._producer = make_client(Producer, self._kafka, {**_WRITER, "transactional.id": identity})
        self._producer.init_transactions(WAIT_S)
        found, self._group = self._read()
        mark = BatchMark(0, 0) if found.offset < 0 else BatchMark(found.offset, int(found.metadata or 0))
        if mark.epoch > self._epoch:
            self.forget()
            raise SupersededError(
                f"{self._name}: part {self._place.partition} is written by epoch {mark.epoch}, this is {self._epoch}. "
                "The query was moved; stop this one."
            )
        self._next = mark.next_batch
        return mark

    def _read(self) -> tuple[Any, Any]:
        """The group's offset, below 0 where it has none, and what a transaction has to know of the group."""
        reader = make_client(Consumer, self._kafka, {**_READER, "group.id": self._name})
        try:
            return self._committed(reader), reader.consumer_group_metadata()
        finally:
            reader.close()

    def _committed(self, reader: Any) -> Any:
        """The group's offset; a broker that has just begun to keep them, or moves them, is asked again."""
        until = time.monotonic() + WAIT_S
        while True:
            try:
                return reader.committed([self._place], WAIT_S)[0]
            except KafkaException as error:
                if error.args[0].code() not in _MOVING or time.monotonic() > until:
                    raise
                time.sleep(AGAIN_S)

    def _refused(self, error: KafkaException) -> BrokerError:
        return BrokerError(
            f"{self._name}: part {self._place.partition} was not sent: {error.args[0].str()}. It is sent again when "
            "the task is run again."
        )


def _is_shut_out(error: KafkaException) -> bool:
    told = error.args[0]
    return bool(told.fatal()) or told.code() in (
        KafkaError._FATAL, KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH,
    )  # fmt: skip
