"""The agent's way out: messages are queued at once and sent by a thread of its own; no broker holds up a sensor."""

from __future__ import annotations

import logging
import queue
from collections.abc import Mapping
from typing import Any

from tidecast.connection.transport import producer
from tidecast.messages import Message, MessageError, encode

log = logging.getLogger("tidecast")

TOPICS = ("metrics", "outcomes", "rejects")
KEPT = 20_000
"""Messages kept while the broker is away, hours of them; beyond that the oldest are dropped."""


class Outbox:
    """A queue of up to KEPT messages in front of a Kafka producer; `send` never blocks and never raises."""

    def __init__(self, bootstrap: str, security: Mapping[str, Any], client_id: str, prefix: str = "") -> None:
        self._address, self._security, self._client_id, self._prefix = bootstrap, security, client_id, prefix
        self._queue: queue.Queue[tuple[str, str, bytes]] = queue.Queue(KEPT)
        self._producer: Any = None

    def send(self, topic: str, key: str, message: Message) -> None:
        """Queue one message for the thread that calls `step`; returns at once.

        A message that cannot be encoded is logged and dropped; when the queue is full, the oldest message is dropped.
        """
        try:
            entry = (topic, key, encode(message))
        except MessageError as error:
            log.error("not sent to %s: %s", topic, error)
            return
        while True:
            try:
                return self._queue.put_nowait(entry)
            except queue.Full:
                log.warning("the broker at %s takes nothing; the oldest message is dropped", self._address)
                self._queue.get_nowait()

    def step(self, wait_s: float = 0.2) -> bool:
        """Hand one queued message to the Kafka producer; waits up to `wait_s` seconds for one.

        Connects at the first call. A message that the broker does not acknowledge within two minutes is logged as lost.

        Returns:
            Whether there was a message.

        Raises:
            UnreachableError: the broker has not answered yet; the queue is kept.
            kafka.errors.KafkaError: the topic is not there or the producer's memory is full for 5 s; the message is
                lost.
            ValueError: a security option makes no sense.
        """
        if self._producer is None:
            self._producer = producer(self._address, self._security, client_id=self._client_id, max_block_ms=5000)
            for topic in TOPICS:  # known before an outage, so that sending needs no answer during one
                self._producer.partitions_for(self._prefix + topic)
        try:
            topic, key, value = self._queue.get(timeout=wait_s)
        except queue.Empty:
            return False
        self._producer.send(self._prefix + topic, key=key.encode(), value=value).add_errback(_lost, topic)
        return True

    def close(self, timeout_s: float = 5.0) -> None:
        """Send the rest of the queue, wait up to `timeout_s` seconds for acknowledgements, and close the producer.

        What is queued is dropped if the broker was never reached.

        Raises:
            kafka.errors.KafkaError: not everything was acknowledged in time; the producer is closed all the same.
        """
        if self._producer is None:
            return
        try:
            while self.step(0):
                pass
            self._producer.flush(timeout=timeout_s)
        finally:
            self._producer.close(timeout=1)


def _lost(topic: str, error: BaseException) -> None:
    log.warning("a message to %s was lost: %r", topic, error)
