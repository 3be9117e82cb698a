"""What was committed and waits for the broker: sent in order, resent after a crash, deleted once the broker has it."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Protocol

from pipelines.serve.step.records import Outgoing, unpacked
from pipelines.store import Event, Store

NOTE = "record"
"""The header with the forecast's record, less the message: a store that is rebuilt takes it over."""
AGAIN_S = 1.0
"""Wall seconds after which a message that the broker refused is offered again."""
Key = tuple[str, str]
"""Topic, and the record's key there."""
Numbered = tuple[int, Outgoing, int]
"""Number in the store's outbox, message, and commit time of its record, ns."""


class Sends(Protocol):
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

    A message that the broker refuses is offered again after `AGAIN_S` seconds, and later ones of its key wait for it. A
    refused forecast that a newer one of its job has overtaken is dropped (printed).
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
        self._waiting = deque(self._found(number, unpacked(Outgoing, entry)) for number, entry in waiting)
        self._flying: Counter[Key] = Counter()
        self._arrived: dict[Key, int] = {}
        """Newest number that the broker has, by key."""
        self._held: dict[Key, list[Numbered]] = {}
        """Refused, and what came after it, by key."""
        self._again = 0.0

    def __len__(self) -> int:
        return len(self._waiting) + sum(map(len, self._held.values()))

    def committed(self, entries: Sequence[tuple[Event, Outgoing]]) -> None:
        """Queue the outbox entries of the transaction just committed, in order; `send` sends them."""
        for event, entry in entries:
            self._waiting.append((self._next, entry, event.ts))
            self._next += 1

    def send(self, sender: Sends) -> None:
        """Hand what waits to the sender, per key in order; does not wait for the broker.

        The sender reports later what has arrived; that leaves the store's outbox with the next commit. Headers name
        key, version and commit time (ns) of the record, and for a forecast hold the record itself.

        Raises:
            BrokerError: the sender's queue is full; the rest goes on waiting.
        """
        if self._held and time.monotonic() >= self._again:
            self._release()
        while self._waiting:
            _, entry, ts = one = self._waiting[0]
            key = entry.topic, entry.job
            if key in self._held:
                self._held[key].append(self._waiting.popleft())
                continue
            self._flying[key] += 1
            try:
                sender.send(entry.topic, entry.job, entry.value, _headers(entry, ts), self._taken(one))
            except BaseException:
                self._flying[key] -= 1
                raise
            self._waiting.popleft()

    def _release(self) -> None:
        """Offer keys again of which nothing is on its way any more, less forecasts that a newer one has overtaken."""
        self._again = time.monotonic() + AGAIN_S
        for key in [key for key in self._held if not self._flying[key]]:
            held, (topic, job) = sorted(self._held.pop(key)), key
            arrived = self._arrived.get(key, -1) if topic == "forecasts" else -1  # no reject replaces another
            self._waiting.extendleft(reversed([one for one in held if one[0] > arrived]))
            if late := [number for number, *_ in held if number < arrived]:
                self._store.sent(late)
                print(f"serving {job}: {len(late)} refused forecasts are left out: newer ones went", flush=True)

    def _found(self, number: int, entry: Outgoing) -> Numbered:
        record = self._store.get(entry.key, entry.version)
        return number, entry, record.ts if record is not None else 0  # no longer kept, after a very long outage

    def _taken(self, one: Numbered) -> Callable[[bool], None]:
        number, key = one[0], (one[1].topic, one[1].job)

        def reported(good: bool) -> None:
            """Take the sender's report: report the entry to the store as sent, or hold it to be offered again."""
            self._flying[key] -= 1
            if good:
                self._arrived[key] = max(number, self._arrived.get(key, number))
                self._store.sent([number])
            else:
                self._held.setdefault(key, []).append(one)
                self._again = time.monotonic() + AGAIN_S

        return reported


def _headers(entry: Outgoing, ts: int) -> list[tuple[str, bytes]]:
    named = [("key", entry.key), ("version", str(entry.version)), ("ts", str(ts))]
    return [*((name, value.encode()) for name, value in named), *([(NOTE, entry.note)] if entry.note else [])]
