"""Kafka by librdkafka's client, for the fast path, where 0.1 ms counts; `transactions` uses it, and nobody else.

Offsets and everything that is not on the fast path stay with `pipelines.kafka.broker`; both take the same settings.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from configs.errors import SettingsError
from configs.sections import Kafka
from pipelines.kafka.broker import Record
from pipelines.kafka.connection import BrokerError, bootstrap_address
from pipelines.kafka.security import librdkafka_options

log = logging.getLogger(__name__)
Headers = Sequence[tuple[str, bytes]]
BATCH = 32
"""Most records in one call of a feed's `sink`."""
_COMMON: dict[str, Any] = {
    "reconnect.backoff.ms": 100,
    "reconnect.backoff.max.ms": 1000,
    "socket.nagle.disable": True,
    "log_level": 2,  # refused connections are logged many times a second; an outage shows in what does not come
}
GROUP = "tidecast-fast"
"""Of readers on the fast path: the client demands one; partitions are assigned, nothing is committed."""
_READER: dict[str, Any] = {
    "group.id": GROUP,
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "earliest",
    "fetch.wait.max.ms": 100,  # the broker answers at once when there is something
    "fetch.error.backoff.ms": 10,
}
_WRITER: dict[str, Any] = {
    "linger.ms": 0,
    "acks": "all",
    "enable.idempotence": True,  # a retry may neither double nor overtake
    "delivery.timeout.ms": 0,  # never: what is given up after a while would be sent again behind what came after it
}
_PASSING = (
    KafkaError._PARTITION_EOF, KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT, KafkaError._TIMED_OUT,
)  # fmt: skip


class Sender:
    """Sends records without waiting and retries for ever; delivery is reported by callbacks, which `poll` makes.

    Raises:
        BrokerError: no broker is set; whether it answers is not checked.
        SettingsError: a security option without a counterpart or of a wrong value, e.g. a certificate that is no file.
    """

    def __init__(self, kafka: Kafka) -> None:
        self._refused: int | None = None
        self._name = kafka.topic
        self._producer = make_client(Producer, kafka, _WRITER)

    def send(
        self, topic: str, key: str, value: bytes, headers: Headers, taken: Callable[[bool], None] | None = None
    ) -> None:
        """Queue one record in memory; never waits for the broker.

        Args:
            topic: name without the prefix.
            key: the record's key.
            value: the record's value.
            headers: (name, value) pairs.
            taken: called later, inside `poll` or `close`, with True if the broker has acknowledged the record, else
                False; what it raises comes out there.

        Raises:
            BrokerError: the client's queue (100,000 records or 1 GiB) is full, as the broker takes none; not queued.
            confluent_kafka.KafkaException: the client refuses the record, e.g. as larger than 1 MB.
        """

        def on_delivery(error: KafkaError | None, message: Message) -> None:
            """Log a refusal unless the one logged before had the same reason, and call `taken`."""
            if error is not None and error.code() != self._refused:
                self._refused = error.code()  # once, not for every message
                log.error("topic %s: the broker refused a message: %s", topic, error.str())
            if taken is not None:
                taken(error is None)

        try:
            self._producer.produce(
                self._name(topic), value, key.encode(), headers=list(headers), on_delivery=on_delivery
            )
        except BufferError:
            raise BrokerError(f"{len(self._producer)} records wait for the broker. Is it there?") from None

    def poll(self) -> None:
        """Make the delivery callbacks that are due; never waits."""
        self._producer.poll(0)

    def close(self, wait_s: float = 5.0) -> None:
        """Wait up to `wait_s` seconds until all that is queued is acknowledged or refused, and make the callbacks."""
        self._producer.flush(wait_s)


class Feed:
    """Reads one topic in a thread, from given offsets on, and calls `sink` with up to BATCH records as they come.

    `failure` is the error that ended the reading, `sink`'s own included; None while it goes on. Outages are waited out.

    Raises:
        BrokerError: no broker is set.
        SettingsError: as `Sender`.
    """

    def __init__(
        self, kafka: Kafka, topic: str, start: Mapping[int, int], sink: Callable[[list[Record]], None]
    ) -> None:
        self._prefix, self._sink, self._stop = kafka.prefix, sink, threading.Event()
        self._consumer = make_client(Consumer, kafka, _READER)
        self._consumer.assign([TopicPartition(kafka.topic(topic), p, offset) for p, offset in start.items()])
        self.failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name=f"feed-{topic}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Tell the thread to end and wait up to 5 s for it; it closes the consumer."""
        self._stop.set()
        self._thread.join(5)

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                first = self._consumer.poll(0.2)
                if first is not None:
                    # Asked for more than is there, `consume` waits for the rest of its time: so it gets none.
                    more = self._consumer.consume(BATCH - 1, 0)
                    self._sink([_record(m, self._prefix) for m in (first, *more) if _good(m)])
        except Exception as error:
            self.failure = error
        finally:
            self._consumer.close()


def make_client(client: Callable[[dict[str, Any]], Any], kafka: Kafka, options: Mapping[str, Any]) -> Any:
    """Make a client of librdkafka with the settings' address and security, and options of its own.

    Raises:
        BrokerError: no broker is set; whether it answers is not checked.
        SettingsError: a security option without a counterpart or of a wrong value, e.g. a certificate that is no file.
    """
    common = {"bootstrap.servers": bootstrap_address(kafka), **_COMMON, **librdkafka_options(kafka.security)}
    try:
        return client({**common, **options})
    except KafkaException as error:  # no broker is asked yet
        shown = {name: value for name, value in kafka.security.items() if "password" not in name}
        raise SettingsError(f"kafka.security={shown}: {error.args[0].str()}. Correct it, or name a PEM file.") from None


def _good(message: Any) -> bool:
    error = message.error()
    if error is None:
        return True
    if error.retriable() or error.code() in _PASSING:
        return False  # it tries again by itself
    raise KafkaException(error)


def _record(message: Any, prefix: str) -> Record:
    key = message.key()
    return Record(
        message.topic().removeprefix(prefix), message.partition(), message.offset(),
        key.decode("utf-8", "replace") if key is not None else None, message.value() or b"",
        message.timestamp()[1] / 1000, _headers(message),
    )  # fmt: skip


def _headers(message: Any) -> dict[str, bytes]:
    """A record's headers; none where a name of one is no UTF-8, which the client cannot give."""
    try:
        return dict(message.headers() or ())
    except (UnicodeDecodeError, SystemError):  # the latter where the client returns in spite of the former
        return {}
