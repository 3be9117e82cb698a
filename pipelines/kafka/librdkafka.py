"""Kafka where a tenth of a millisecond counts: librdkafka's client, the only owner of `confluent_kafka`.

Offsets and everything that is not on the fast path stay with `pipelines.kafka.broker`; both take the same settings.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from configs.sections import Kafka
from pipelines.kafka.broker import BrokerError
from pipelines.kafka.security import librdkafka
from tidecast.connection.reach import unreachable

log = logging.getLogger(__name__)
Headers = Sequence[tuple[str, bytes]]
BATCH = 32
"""Records handed over at once, at most."""
STUCK_S = 30.0
"""After so long without a record more the broker is taken for gone, by who reads a topic to its end."""


_COMMON: dict[str, Any] = {
    "reconnect.backoff.ms": 100,
    "reconnect.backoff.max.ms": 1000,
    "socket.nagle.disable": True,
    "log_level": 2,  # refused connections are logged many times a second; an outage shows in what does not come
}

_READER: dict[str, Any] = {
    "group.id": "tidecast-fast",  # the client demands one; partitions are assigned, nothing is committed
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "earliest",
    "fetch.wait.max.ms": 100,  # the broker answers at once when there is something
    "fetch.error.backoff.ms": 10,
}


@dataclass(frozen=True)
class Fetched:
    """A record as it came, with its headers."""

    partition: int
    offset: int
    key: str | None
    value: bytes
    headers: Mapping[str, bytes]


class Sender:
    """Sends without waiting; reports by a callback what the broker has taken. `poll` makes the callbacks."""

    def __init__(self, kafka: Kafka) -> None:
        self._refused: int | None = None
        self._name = kafka.topic
        self._producer = Producer(
            {
                **_options(kafka),
                "linger.ms": 0,
                "acks": "all",
                "enable.idempotence": True,  # a retry may neither double nor overtake
                # Never: what is given up after a while would be sent again behind what came after it.
                "delivery.timeout.ms": 0,
            }
        )

    def send(
        self, topic: str, key: str, value: bytes, headers: Headers, taken: Callable[[bool], None] | None = None
    ) -> None:
        """Queue one record; `taken` is called later with whether the broker has it.

        Raises:
            BrokerError: the queue is full, because the broker has been away for long; the record was not queued.
        """

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None and error.code() != self._refused:
                self._refused = error.code()  # once, not for every message
                log.error("topic %s: the broker refused a message: %s", topic, error.str())
            if taken is not None:
                taken(error is None)

        try:
            self._producer.produce(self._name(topic), value, key.encode(), headers=list(headers), on_delivery=delivered)
        except BufferError:
            raise BrokerError(f"{len(self._producer)} records wait for the broker. Is it there?") from None

    def poll(self) -> None:
        """Make the callbacks that are due; never waits."""
        self._producer.poll(0)

    def close(self, wait_s: float = 5.0) -> None:
        """Wait for what is queued, but not long: what was not taken is in the outbox."""
        self._producer.flush(wait_s)


class Feed:
    """One topic from given offsets on, read by a thread that hands records to `sink` as they come.

    What ends the reading, also an error of `sink`, is in `failure`.
    """

    def __init__(
        self, kafka: Kafka, topic: str, start: Mapping[int, int], sink: Callable[[list[Fetched]], None]
    ) -> None:
        self._topic, self._sink, self._stop = topic, sink, threading.Event()
        self._consumer = _consumer(kafka)
        self._consumer.assign([TopicPartition(kafka.topic(topic), p, offset) for p, offset in start.items()])
        self.failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name=f"feed-{topic}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Leave."""
        self._stop.set()
        self._thread.join(5)

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                first = self._consumer.poll(0.2)
                if first is not None:
                    # Asked for more than is there, `consume` waits for the rest of its time: so it gets none.
                    more = self._consumer.consume(BATCH - 1, 0)
                    self._sink([_fetched(m) for m in (first, *more) if _good(m)])
        except Exception as error:
            self.failure = error
        finally:
            self._consumer.close()


def read_back(kafka: Kafka, topic: str, newest: int | None = None) -> list[Fetched]:
    """The records of a topic up to its present end, with headers; with `newest`, so many per partition at most.

    Raises:
        BrokerError: the broker does not answer, or no longer.
    """
    client, name = _consumer(kafka), kafka.topic(topic)
    try:
        found = client.list_topics(name, 10).topics[name]
        ends: dict[int, int] = {}
        starts = []
        for partition in found.partitions:
            low, high = client.get_watermark_offsets(TopicPartition(name, partition), 10)
            if high > low:
                ends[partition] = high
                starts.append(TopicPartition(name, partition, low if newest is None else max(low, high - newest)))
        client.assign(starts)
        records: list[Fetched] = []
        before: dict[int, int] = {}
        moved = time.monotonic()
        while ends:
            for message in client.consume(1000, 0.5):
                if _good(message):
                    records.append(_fetched(message))
            position = {p.partition: p.offset for p in client.position(starts)}
            ends = {p: end for p, end in ends.items() if position[p] < end}
            if position != before:
                before, moved = position, time.monotonic()
            elif time.monotonic() - moved > STUCK_S:  # the client itself would try for ever
                raise BrokerError(
                    f"topic {topic!r} at {kafka.bootstrap}: nothing more came for {STUCK_S:g} s, {len(records)} "
                    "records were read. See that the broker runs (`make up` starts one), then start again."
                )
        return records
    except KafkaException as error:
        raise BrokerError(f"topic {topic!r}: {unreachable(kafka.bootstrap or '', kafka.security, error)}") from None
    finally:
        client.close()


def _options(kafka: Kafka) -> dict[str, Any]:
    if not kafka.bootstrap:
        raise BrokerError("kafka.bootstrap is not set and no stack is running. `make up` starts one.")
    return {"bootstrap.servers": kafka.bootstrap, **_COMMON, **librdkafka(kafka.security)}


def _consumer(kafka: Kafka) -> Any:
    options = _options(kafka)
    try:
        return Consumer(options | _READER)
    except KafkaException as error:
        raise BrokerError(f"{unreachable(options['bootstrap.servers'], kafka.security, error)}") from None


def _good(message: Any) -> bool:
    error = message.error()
    if error is None:
        return True
    if error.code() in (KafkaError._PARTITION_EOF,) or error.retriable():
        return False
    if error.code() in (KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT, KafkaError._TIMED_OUT):
        return False  # it tries again by itself
    raise KafkaException(error)


def _fetched(message: Any) -> Fetched:
    key = message.key()
    return Fetched(
        message.partition(),
        message.offset(),
        key.decode("utf-8", "replace") if key is not None else None,
        message.value() or b"",
        dict(message.headers() or ()),
    )
