"""The agent's way out: messages are queued at once and sent by a thread of its own; no broker holds up a sensor."""

from __future__ import annotations

import logging
import queue
from collections.abc import Mapping
from typing import Any

from kafka.errors import KafkaTimeoutError

from tidecast.connection.reach import connection_fault
from tidecast.connection.signing import HEADER, SigningKeys
from tidecast.connection.transport import producer
from tidecast.messages import Message, MessageError, encode

log = logging.getLogger("tidecast")

TOPICS, CONTROL = ("metrics", "outcomes", "rejects"), "control"
KEPT = 20_000  # messages kept while the broker is away; beyond that the oldest are dropped


class Outbox:
    """A queue of up to KEPT messages in front of a Kafka producer; `enqueue` never blocks."""

    def __init__(
        self, bootstrap: str, security: Mapping[str, Any], client_id: str, prefix: str = "",
        signing: SigningKeys | None = None,
    ) -> None:  # fmt: skip
        self._address, self._security, self._client_id, self._prefix = bootstrap, security, client_id, prefix
        self._signing = signing
        self._queue: queue.Queue[tuple[str, str, bytes]] = queue.Queue(KEPT)
        self._next: tuple[str, str, bytes] | None = None
        self._producer: Any = None
        self._reached = False

    def enqueue(self, topic: str, key: str, message: Message) -> None:
        """Queue one message for the thread that calls `send_next`; returns at once.

        Args:
            topic: name without the prefix.
            key: of the record.
            message: dropped and logged if it holds NaN or an infinite number; the oldest message of a full queue (KEPT,
                20,000) is dropped for it.

        Raises:
            TypeError: a field holds a value that JSON does not know.
        """
        try:
            entry = (topic, key, encode(message))
        except MessageError as error:
            log.error("not sent to %s: %s", topic, error)
            return
        self._put(entry)

    def _put(self, entry: tuple[str, str, bytes]) -> None:
        while True:
            try:
                return self._queue.put_nowait(entry)
            except queue.Full:
                log.warning("the broker at %s takes nothing; the oldest message is dropped", self._address)
                self._queue.get_nowait()

    def send_next(self, wait_s: float = 0.2) -> bool:
        """Hand the oldest queued message to the Kafka producer; waits up to `wait_s` seconds for one.

        The first call connects: up to 10 s, then 5 s for each of 3 topics. A message that is not acknowledged by the
        broker within 120 s is logged as lost; one to CONTROL, of which the last one holds, is queued again.

        Returns:
            Whether there was a message.

        Raises:
            UnreachableError: the broker has not answered the first connection within 10 s; the queue is kept.
            kafka.errors.KafkaTimeoutError: the topic (at the first connection any of TOPICS) is unknown after 5 s.
                While no connection to the broker can be opened, the message is kept for the next call; else it is lost.
            kafka.errors.KafkaError: the message is over 1 MiB, or not allowed on the topic; it is lost.
            ValueError: a security option is unknown or has no such value.
        """
        if self._producer is None:
            self._producer = producer(self._address, self._security, client_id=self._client_id, max_block_ms=5000)
            for topic in TOPICS:  # known before an outage, so that sending needs no answer during one
                self._producer.partitions_for(self._prefix + topic)
        try:
            message = self._next or self._queue.get(timeout=wait_s)
        except queue.Empty:
            return False
        self._next, (topic, key, value) = None, message
        try:
            future = self._producer.send(
                self._prefix + topic, key=key.encode(), value=value, headers=self._headers(topic, key, value)
            )
        except KafkaTimeoutError:
            if connection_fault(self._address):
                self._next = message
            raise
        future.add_errback(self._log_lost, message)
        if not self._reached:
            future.add_callback(self._log_first, message)
        return True

    def _headers(self, topic: str, key: str, value: bytes) -> list[tuple[str, bytes]]:
        """The signature of what agents obey; of what they merely tell there is none."""
        if self._signing is None or topic != CONTROL:
            return []
        return [(HEADER, self._signing.sign(self._prefix + topic, key, value))]

    def close(self, timeout_s: float = 5.0) -> None:
        """Send the rest of the queue, wait up to `timeout_s` seconds for acknowledgements, and close the producer.

        Call it when no other thread calls `send_next` any more. A send may take 5 s more, and the close 1 s. If
        `send_next` never connected, the queue is dropped. A message that the broker refuses is logged, not raised.

        Raises:
            kafka.errors.KafkaError: a message could not be sent, and those behind it are lost; or not everything was
                acknowledged in time. The producer is closed all the same.
        """
        if self._producer is None:
            return
        try:
            while self.send_next(0):
                pass
            self._producer.flush(timeout=timeout_s)
        finally:
            self._producer.close(timeout=1)

    def _log_first(self, message: tuple[str, str, bytes], _: Any) -> None:
        topic, key, _ = message
        if not self._reached:
            log.info("%s: %s reach the broker at %s", key, topic, self._address)
        self._reached = True

    def _log_lost(self, message: tuple[str, str, bytes], error: BaseException) -> None:
        topic, *_ = message
        if topic == CONTROL and getattr(error, "retriable", False):
            log.warning("a message to %s is sent again: %r", topic, error)
            self._put(message)
        else:
            log.warning("a message to %s was lost: %r", topic, error)
