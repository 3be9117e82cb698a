"""What was committed and waits for the broker: sent in order, resent after a crash, deleted once the broker has it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from pipelines.serve.records import Outgoing, unpacked
from pipelines.store import Store

NOTE = "record"
"""The header with the forecast's record, less the message: a store that is rebuilt takes it over."""


class Sends(Protocol):
    """Who sends: `pipelines.fast_broker.Sender`, or what a test puts in its place."""

    def send(
        self,
        topic: str,
        key: str,
        value: bytes,
        headers: Sequence[tuple[str, bytes]],
        taken: Callable[[bool], None] | None = None,
    ) -> None:
        """Queue one record; `taken` is told later whether it arrived."""


class Outbox:
    """The store's outbox and what is on its way out of it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        waiting = store.outbox()
        self._next = waiting[-1][0] + 1 if waiting else 0  # as the store numbers them
        self._waiting = deque((number, unpacked(Outgoing, entry)) for number, entry in waiting)

    def __len__(self) -> int:
        return len(self._waiting)

    def committed(self, entries: Sequence[Outgoing]) -> None:
        """These entries were part of the transaction just committed, in this order."""
        for entry in entries:
            self._waiting.append((self._next, entry))
            self._next += 1

    def send(self, sender: Sends) -> None:
        """Send what waits, in order; what the broker has is deleted with the next commit.

        Raises:
            BrokerError: the sender takes no more now; the rest goes on waiting.
        """
        while self._waiting:
            number, entry = self._waiting[0]
            sender.send(entry.topic, entry.job, entry.value, self._headers(entry), self._taken(number, entry))
            self._waiting.popleft()

    def _headers(self, entry: Outgoing) -> list[tuple[str, bytes]]:
        record = self._store.get(entry.key, entry.version)
        ts = record.ts if record is not None else 0  # no longer kept, after a very long outage
        named = [("key", entry.key), ("version", str(entry.version)), ("ts", str(ts))]
        return [*((name, value.encode()) for name, value in named), *([(NOTE, entry.note)] if entry.note else [])]

    def _taken(self, number: int, entry: Outgoing) -> Callable[[bool], None]:
        def told(good: bool) -> None:
            if good:
                self._store.sent([number])
            else:  # the broker was away for longer than the client tries
                self._waiting.append((number, entry))

        return told
