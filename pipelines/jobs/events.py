"""The record on `events`: JSON with a sequence number, an event time and a key. Python workers import nothing else."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

FUTURE_S = 300.0  # seconds that an event's time may be after its production; beyond that it is refused
MAX_SEQ = 2**40  # highest sequence number: sums of millions of them stay far below 2**63
MAX_KEY = 200  # longest key, in characters
_ENDLESS_S = 1e15


class EventError(ValueError):
    """An event that is refused; the message says which field, which value, and what would be right."""


class LoadEvent(NamedTuple):
    """One event: sequence number, event time (trace time, epoch seconds) and key."""

    seq: int
    time: float
    key: str


def encode_event(event: LoadEvent) -> bytes:
    """Serialise an event as compact JSON bytes; its time is rounded to the millisecond."""
    return json.dumps(event._replace(time=round(event.time, 3))._asdict(), separators=(",", ":")).encode()


def event_ms(event: LoadEvent) -> int:
    """Return an event's time in whole epoch milliseconds: as its record tells it."""
    return round(round(event.time, 3) * 1000)


def decode_event(raw: bytes | None, produced_at: float) -> LoadEvent:
    """Parse and validate one event; unknown fields are ignored.

    Args:
        raw: the record's value, UTF-8 JSON; None is refused.
        produced_at: the record's Kafka timestamp, epoch seconds.

    Raises:
        EventError: not a JSON object; `seq` no int of 0 to MAX_SEQ (2**40); `time` no number of 0 to 1e15 (epoch s), or
            over FUTURE_S (300 s) after `produced_at`; `key` no valid text of 1 to MAX_KEY (200) characters.
    """
    try:
        data = json.loads(raw if raw is not None else "")
    except (ValueError, RecursionError) as error:
        raise EventError(f"not JSON: {error}") from None
    if not isinstance(data, dict):
        raise EventError(f"a JSON {type(data).__name__}; an object is expected")
    seq, key = data.get("seq"), data.get("key")
    time: Any = data.get("time")
    if type(seq) is not int or not 0 <= seq <= MAX_SEQ:
        raise EventError(f"seq={seq!r:.60}: a whole number from 0 to {MAX_SEQ} is expected")
    if type(time) not in (int, float) or not 0 <= time < _ENDLESS_S:
        raise EventError(f"time={time!r:.60}: epoch seconds are expected")
    if time > produced_at + FUTURE_S:
        raise EventError(f"time={time} lies {time - produced_at:.0f} s ahead of its production; set the sender's clock")
    # JSON can escape halves of a surrogate pair, which no UTF-8 column can hold.
    if not isinstance(key, str) or not 0 < len(key) <= MAX_KEY or key.encode(errors="ignore").decode() != key:
        raise EventError(f"key={key!r:.60}: text of 1 to {MAX_KEY} characters is expected")
    return LoadEvent(seq, float(time), key)
