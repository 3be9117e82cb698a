"""What was committed and waits for the broker: sent in order, resent after a crash, deleted once the broker has it."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Protocol

from pipelines.serve.step.records import OutgoingMessage, decode_value
from pipelines.store import Event, Store

RECORD_HEADER = "record"
"""The header with the forecast's record, less the message: a store that is rebuilt takes it over."""
RETRY_S = 1.0
"""Wall seconds after which a message that the broker refused is offered again."""
Key = tuple[str, str]
"""Topic, and the record's key there."""
Numbered = tuple[int, OutgoingMessage, int]
"""Number in the store's outbox, message, and commit time of its record, ns."""


class MessageSender(Protocol):
    """What `StoreOutbox` sends by: `pipelines.kafka.librdkafka.Sender`, or a test's stand-in."""

    def send(
        self, topic: str, key: str, value: bytes, headers: Sequence[tuple[str, bytes]],
        taken: Callable[[bool], None] | None = None,
    ) -> None:  # fmt: skip
        """Queue one record; `taken` is called later with whether the broker has it.

        Raises:
            BrokerError: the queue is full; nothing was queued.
        """


class StoreOutbox:
    """Sends what the store's outbox holds to Kafka, per topic and key in the order of commits.

    A message that the broker refuses is offered again after `RETRY_S` wall seconds, and later ones of its key wait for
    it. A refused forecast that a newer one of its job has overtaken is dropped (printed).
    """

    def __init__(self, store: Store) -> None:
        """Load what the store's outbox still holds; it is sent first.

        Raises:
            StoreError: the store cannot be read.
            msgspec.DecodeError: an entry cannot be decoded.
        """
        self._store = store
        waiting = store.outbox()
        self._next = waiting[-1][0] + 1 if waiting else 0  # as the store numbers them
        self._waiting = deque(self._found(number, decode_value(OutgoingMessage, entry)) for number, entry in waiting)
        self._in_flight: Counter[Key] = Counter()
        self._newest_delivered: dict[Key, int] = {}
        """Newest number that the broker has, by key."""
        self._held: dict[Key, list[Numbered]] = {}
        """Refused, and what came after it, by key."""
        self._retry_at = 0.0

    def __len__(self) -> int:
        return len(self._waiting) + sum(map(len, self._held.values()))

    def holds_forecast(self, job: str) -> bool:
        """Return whether a forecast of a job waits here: a heartbeat would vouch for it."""
        key = "forecasts", job
        return key in self._held or any((entry.topic, entry.job) == key for _, entry, _ in self._waiting)

    def queue(self, entries: Sequence[tuple[Event, OutgoingMessage]]) -> None:
        """Queue the outbox entries of the transaction just committed, in their order; `send` sends them."""
        for event, entry in entries:
            self._waiting.append((self._next, entry, event.ts))
            self._next += 1

    def send(self, sender: MessageSender) -> None:
        """Hand all waiting messages to the sender, per topic and key in order; does not wait for the broker.

        A message that the sender reports as acknowledged leaves the LMDB store's outbox with the next commits, 64 in
        each. Each has the headers "key", "version" and "ts" (commit time in ns, as decimal text; "0" if its record is
        no longer kept), a forecast also "record" (its `ForecastValue` without the message).

        Args:
            sender: to Kafka.

        Raises:
            BrokerError: the sender's queue is full; the rest goes on waiting.
            confluent_kafka.KafkaException: the client refuses a message, which stays first.
        """
        if self._held and time.monotonic() >= self._retry_at:
            self._release()
        while self._waiting:
            _, entry, ts = numbered = self._waiting[0]
            key = entry.topic, entry.job
            if key in self._held:
                self._held[key].append(self._waiting.popleft())
                continue
            self._in_flight[key] += 1
            try:
                sender.send(entry.topic, entry.job, entry.value, _headers(entry, ts), self._on_report(numbered))
            except BaseException:
                self._in_flight[key] -= 1
                raise
            self._waiting.popleft()

    def _release(self) -> None:
        """Offer keys again of which nothing is on its way any more, less forecasts that a newer one has overtaken."""
        self._retry_at = time.monotonic() + RETRY_S
        for key in [key for key in self._held if not self._in_flight[key]]:
            held, (topic, job) = sorted(self._held.pop(key)), key
            newest = self._newest_delivered.get(key, -1) if topic == "forecasts" else -1  # no reject replaces another
            self._waiting.extendleft(reversed([one for one in held if one[0] > newest]))
            if late := [number for number, *_ in held if number < newest]:
                self._store.mark_sent(late)
                print(f"serving {job}: {len(late)} refused forecasts are left out: newer ones went", flush=True)

    def _found(self, number: int, entry: OutgoingMessage) -> Numbered:
        record = self._store.get(entry.key, entry.version)
        return number, entry, record.ts if record is not None else 0  # no longer kept, after a very long outage

    def _on_report(self, numbered: Numbered) -> Callable[[bool], None]:
        number, entry, _ = numbered
        key = entry.topic, entry.job

        def take_report(delivered: bool) -> None:
            """Mark the entry as sent in the store if the broker has acknowledged it, else offer it again after 1 s."""
            self._in_flight[key] -= 1
            if delivered:
                self._newest_delivered[key] = max(number, self._newest_delivered.get(key, number))
                self._store.mark_sent([number])
            else:
                self._held.setdefault(key, []).append(numbered)
                self._retry_at = time.monotonic() + RETRY_S

        return take_report


def _headers(entry: OutgoingMessage, ts: int) -> list[tuple[str, bytes]]:
    named = [("key", entry.key), ("version", str(entry.version)), ("ts", str(ts))]
    return [*((name, value.encode()) for name, value in named), *([(RECORD_HEADER, entry.note)] if entry.note else [])]
