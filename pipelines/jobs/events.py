"""The record on `events`: JSON with a sequence number, an event time and a key. Python workers import nothing else."""

from __future__ import annotations

import json
import math
from typing import NamedTuple

FUTURE_S = 300.0
"""An event whose time lies further ahead of the moment it was produced than this is refused."""
MAX_SEQ = 2**40
"""Highest sequence number: sums of millions of them stay far below 2**63."""
MAX_KEY = 200
"""Longest key, in characters."""


class EventError(ValueError):
    """An event that cannot be counted; the message says which field, which value, and what would be right."""


class LoadEvent(NamedTuple):
    """One event: `time` is epoch seconds of the trace."""

    seq: int
    time: float
    key: str


def encode_event(event: LoadEvent) -> bytes:
    """The event as JSON; times to the millisecond."""
    return json.dumps(
        {"seq": event.seq, "time": round(event.time, 3), "key": event.key}, separators=(",", ":")
    ).encode()


def decode_event(raw: bytes | None, produced_at: float) -> LoadEvent:
    """Read one record; `produced_at` is its Kafka timestamp, epoch seconds. Unknown fields are allowed.

    Raises:
        EventError: not JSON, not an object, a missing, mistyped, non-finite or out-of-range field, or a time that lies
            more than FUTURE_S after the moment it was produced.
    """
    try:
        data = json.loads(raw if raw is not None else "")
    except (ValueError, RecursionError) as error:
        raise EventError(f"not JSON: {error}") from None
    if not isinstance(data, dict):
        raise EventError(f"a JSON {type(data).__name__}; an object is expected")
    seq, time, key = data.get("seq"), data.get("time"), data.get("key")
    if type(seq) is not int or not 0 <= seq <= MAX_SEQ:
        raise EventError(f"seq={_short(seq)}: a whole number from 0 to {MAX_SEQ} is expected")
    if not isinstance(time, int | float) or isinstance(time, bool) or not math.isfinite(time) or time < 0:
        raise EventError(f"time={_short(time)}: epoch seconds are expected")
    if time > produced_at + FUTURE_S:
        raise EventError(f"time={time} lies {time - produced_at:.0f} s ahead of its production; set the sender's clock")
    if not isinstance(key, str) or not 0 < len(key) <= MAX_KEY or not _is_text(key):
        raise EventError(f"key={_short(key)}: text of 1 to {MAX_KEY} characters is expected")
    return LoadEvent(seq, float(time), key)


def _is_text(key: str) -> bool:
    """JSON can escape halves of a surrogate pair, which no UTF-8 column can hold."""
    try:
        key.encode()
    except UnicodeEncodeError:
        return False
    return True


def _short(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:  # an integer of thousands of digits
        return "a number too long to write"
    return text if len(text) <= 60 else text[:57] + "..."
