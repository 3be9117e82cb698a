"""The agent's way out: messages are queued at once and sent by a thread of its own; no broker holds up a sensor."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

from kafka.errors import KafkaError, KafkaTimeoutError

from tidecast.connection.reach import connection_fault
from tidecast.connection.signing import HEADER, SigningKeys
from tidecast.connection.transport import producer
from tidecast.messages import Message, MessageError, encode

log = logging.getLogger("tidecast")

TOPICS, CONTROL = ("metrics", "outcomes", "rejects"), "control"
KEPT = 20_000  # messages kept while the broker is away; beyond that the oldest are dropped
SILENT_S = 2.0  # seconds without an acknowledgement after which it is looked whether the broker can be reached
LOOK_S = 1.0  # seconds between two looks

Entry = tuple[str, str, bytes]  # topic without the prefix, key, value


class Outbox:
    """A queue of up to KEPT messages in front of a Kafka producer; `enqueue` never blocks.

    While no connection to the broker opens, messages wait in the queue, whose newest KEPT (20,000) outlast an outage of
    any length. Those of its first seconds, until that is seen, are the producer's already: of an outage of over 120 s
    they are lost, but for messages to CONTROL. Losses are logged when they begin, by topic, and their number when the
    topic takes messages again, or at the end.
    """

    def __init__(
        self, bootstrap: str, security: Mapping[str, Any], client_id: str, prefix: str = "",
        signing: SigningKeys | None = None,
    ) -> None:  # fmt: skip
        self._address, self._security, self._client_id, self._prefix = bootstrap, security, client_id, prefix
        self._signing = signing
        self._queue: queue.Queue[Entry] = queue.Queue(KEPT)
        self._next: Entry | None = None
        self._producer: Any = None
        self._reached = self._away = False
        self._silent_since: float | None = None  # when the first message since the last acknowledgement was sent
        self._looked_at = float("-inf")
        self._lock = threading.RLock()  # of what follows: the producer's thread says what became of messages
        self._came = threading.Condition(self._lock)  # that a message waits
        self._flying: Counter[str] = Counter()  # by topic, what the producer has
        self._lost: Counter[str] = Counter()  # by topic, since the last acknowledgement of it
        self._newest: dict[str, Entry] = {}  # by key, of the messages to CONTROL that were not acknowledged

    def enqueue(self, topic: str, key: str, message: Message) -> None:
        """Queue one message for the thread that calls `send_next`; returns at once.

        Args:
            topic: name without the prefix.
            key: of the record.
            message: dropped and logged if it holds NaN or an infinite number; the oldest message of a full queue (KEPT,
                20,000) is lost for it, of those to CONTROL only what a newer one has replaced.

        Raises:
            TypeError: a field holds a value that JSON does not know.
        """
        try:
            entry = (topic, key, encode(message))
        except MessageError as error:
            log.error("not sent to %s: %s", topic, error)
            return
        with self._lock:
            if topic == CONTROL:
                self._newest[key] = entry
            self._put(entry)

    @property
    def waiting(self) -> bool:
        """Whether a message has not been acknowledged yet, nor is lost."""
        with self._lock:
            return bool(self._next or not self._queue.empty() or any(self._flying.values()))

    def _put(self, entry: Entry) -> None:
        """Queue it, at the cost of the oldest ones if there is no room; the last word of a key to CONTROL stays."""
        waiting = [entry]
        while waiting:
            try:
                self._queue.put_nowait(waiting[-1])
                waiting.pop()
            except queue.Full:
                oldest = self._queue.get_nowait()
                if self._newest.get(oldest[1]) is oldest and len(self._newest) < KEPT:
                    waiting.append(oldest)
                else:
                    self._count_lost(oldest[0], f"{KEPT} newer ones wait")
        self._came.notify()

    def send_next(self, wait_s: float = 0.2) -> bool:
        """Hand the oldest queued message to the Kafka producer; waits up to `wait_s` seconds for one.

        The first call connects: up to 10 s, then 5 s for each of 3 topics. Where nothing was acknowledged for SILENT_S
        (2 s) a connection is tried, once in LOOK_S (1 s), up to 3 s per address; while none opens the message stays in
        the queue. One that the broker does not acknowledge within 120 s is lost; one to CONTROL, of which the last one
        of its key holds, is queued again unless a newer one was enqueued.

        Returns:
            Whether a message was handed over.

        Raises:
            UnreachableError: the broker has not answered the first connection within 10 s; the queue is kept.
            kafka.errors.KafkaTimeoutError: the topic (at the first connection any of TOPICS) is unknown after 5 s.
                While no connection to the broker can be opened, the message is kept for the next call; else it is lost,
                but one to CONTROL is queued again behind the others.
            kafka.errors.KafkaError: the message is over 1 MiB, or not allowed on the topic; it is lost.
            ValueError: a security option is unknown or has no such value.
        """
        if self._producer is None:
            self._producer = producer(self._address, self._security, client_id=self._client_id, max_block_ms=5000)
            for topic in TOPICS:  # known before an outage, so that sending needs no answer during one
                self._producer.partitions_for(self._prefix + topic)
        if self._is_away():
            time.sleep(wait_s)
            return False
        with self._came:
            if not self._next and self._queue.empty():
                self._came.wait(wait_s)
            try:
                message = self._next or self._queue.get_nowait()
            except queue.Empty:
                return False
            self._next, (topic, key, value) = None, message
            self._flying[topic] += 1
        if self._silent_since is None:
            self._silent_since = time.monotonic()
        try:
            future = self._producer.send(
                self._prefix + topic, key=key.encode(), value=value, headers=self._headers(topic, key, value)
            )
        except KafkaError as error:
            kept = isinstance(error, KafkaTimeoutError) and connection_fault(self._address)
            with self._lock:
                self._flying[topic] -= 1
                if kept:
                    self._next = message
                else:
                    self._give_up(message, error)
            raise
        future.add_errback(self._take_refusal, message)
        future.add_callback(self._take_acknowledgement, message)
        return True

    def _is_away(self) -> bool:
        """Whether the broker is silent, and no connection to it opens."""
        since, now, fault = self._silent_since, time.monotonic(), ""
        if since is not None and now - since >= SILENT_S:
            if now - self._looked_at < LOOK_S:
                return self._away
            fault, self._looked_at = connection_fault(self._address), time.monotonic()
        if bool(fault) != self._away:
            self._away = bool(fault)
            log.warning("messages wait: %s" if fault else "messages are sent again%s", fault)
        return self._away

    def _headers(self, topic: str, key: str, value: bytes) -> list[tuple[str, bytes]]:
        """The signature of what agents obey; of what they merely tell there is none."""
        if self._signing is None or topic != CONTROL:
            return []
        return [(HEADER, self._signing.sign(self._prefix + topic, key, value))]

    def close(self, timeout_s: float = 5.0) -> None:
        """Send the rest of the queue, wait up to `timeout_s` seconds for acknowledgements, and close the producer.

        Call it when no other thread calls `send_next` any more. A send may take 5 s more, and the close 1 s. If
        `send_next` never connected, the queue is dropped. How many the broker has not acknowledged by then is logged.

        Raises:
            kafka.errors.KafkaError: a message could not be sent, and those behind it are lost; or not everything was
                acknowledged in time: kafka-python 3 leaves a thread behind then, which goes on with what it has.
        """
        if self._producer is None:
            return
        try:
            while self.send_next(0):
                pass
            self._producer.flush(timeout=timeout_s)
            if left := self._queue.qsize():
                raise KafkaTimeoutError(f"{left} messages wait for the broker at {self._address}")
        finally:
            try:
                self._producer.close(timeout=1)
            finally:
                self._lose_rest()

    def _lose_rest(self) -> None:
        with self._lock:
            rest = [*([self._next] if self._next else []), *self._queue.queue]
            self._lost += self._flying + Counter(topic for topic, *_ in rest)
            for topic, lost in self._lost.items():
                log.warning("%d messages to %s were not acknowledged by the broker at %s", lost, topic, self._address)

    def _take_acknowledgement(self, message: Entry, _: Any) -> None:
        topic, key, _ = message
        self._silent_since = None
        with self._lock:
            self._flying[topic] -= 1
            if not self._reached:
                log.info("%s: %s reach the broker at %s", key, topic, self._address)
            self._reached = True
            if self._newest.get(key) is message:
                del self._newest[key]
            if lost := self._lost.pop(topic, 0):
                log.warning("%s reach the broker at %s again; %d messages were lost", topic, self._address, lost)

    def _take_refusal(self, message: Entry, error: BaseException) -> None:
        with self._lock:
            self._flying[message[0]] -= 1
            self._give_up(message, error)

    def _give_up(self, message: Entry, error: BaseException) -> None:
        """Count a message as lost, or queue it again if nothing else says what it says."""
        topic, key, _ = message
        with self._lock:
            if topic != CONTROL or not getattr(error, "retriable", False):
                self._count_lost(topic, repr(error))
            elif self._newest.get(key) is message:  # of its key the last one on the topic holds
                log.warning("a message to %s is sent again: %r", topic, error)
                self._put(message)

    def _count_lost(self, topic: str, why: str) -> None:
        self._lost[topic] += 1
        if self._lost[topic] == 1:
            log.warning(
                "a message to %s at %s was lost, more may be, their number follows: %s", topic, self._address, why
            )
