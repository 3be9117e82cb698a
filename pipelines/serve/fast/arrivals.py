"""A sample as it came, what became of it, and where it goes if it cannot be accepted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pipelines.serve.fast.closing import Left
from pipelines.serve.net.wire import Answer, Found, Refused, took
from pipelines.serve.step.keys import quarantine_key
from pipelines.serve.step.records import Outgoing, packed
from pipelines.store import Store
from pipelines.store.writing.event import Event
from tidecast.messages import Reject, encode

CURSOR = "cursor"
"""Under which it is kept where to go on in the log."""


class Arrival(NamedTuple):
    """A sample as it came.

    Attributes:
        raw: the message, JSON.
        at: (topic, partition, offset) of a record of the log; None for what came by socket.
        cursor: what the cursor is after it.
        key: of a record of the log; None where nobody looked.
    """

    raw: bytes
    at: tuple[str, int, int] | None = None
    cursor: bytes = b""
    key: str | None = None


class Made(NamedTuple):
    """What one arrival did; it holds once its transaction does."""

    verdict: str
    left: Sequence[Left] = ()
    found: Sequence[Found] = ()
    refused: Refused | None = None


def answered(made: Made) -> Answer:
    """The answer on the wire, once the transaction stands."""
    if made.refused is not None:
        return made.refused
    fresh = [Found(left.version, left.event.ts, left.event_time, left.value) for left in made.left]
    return took(made.verdict, [*fresh, *made.found])


def move(event: Event, arrival: Arrival) -> None:
    """Put the cursor behind a record of the log, in the transaction that takes it."""
    if arrival.at is not None:
        event.set_meta(CURSOR, arrival.cursor)


def set_aside(
    event: Event, store: Store, leaving: list[tuple[Event, Outgoing]], arrival: Arrival, why: str, now: float
) -> None:
    """Keep a record of the log that cannot be accepted, with the reason, and send it to `rejects`.

    Args:
        event: open.
        store: where the others are.
        leaving: what the open transaction puts into the outbox.
        arrival: from the log.
        why: the reason.
        now: wall time.
    """
    assert arrival.at is not None, "a client is told itself"
    topic = arrival.at[0]
    value = encode(Reject.of(*arrival.at, "serving", why, arrival.raw, now))
    key = quarantine_key(topic)
    newest = store.get(key)
    waiting = sum(entry.key == key for _, entry in leaving)  # in the open transaction, too
    version = (0 if newest is None else newest.version) + 1 + waiting
    event.put(key, value, version)
    entry = Outgoing("rejects", topic, key, version, b"", value)
    event.outbox(packed(entry))
    leaving.append((event, entry))
