"""Messages to and from JSON bytes; everything that is read is validated, its times included."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any, TypeVar, cast

from tidecast.fields import SHOWN, MessageError, fields_of, shown

SCHEMA = 1
"""Raised when a field changes its meaning; a new field needs no new number, because readers ignore unknown ones."""
FUTURE_S = 300.0
"""Seconds that a record's `wall_time` may be ahead of its reader; beyond that its sender's clock is wrong."""
RECORD_MOST = 1 << 20
"""Most bytes of a record: a broker's default limit."""
NESTED_MOST = 32
M = TypeVar("M")


def encode(message: Any) -> bytes:
    """Serialise a message dataclass as compact UTF-8 JSON.

    Fields whose default is None are left out when their value is None.

    Raises:
        MessageError: a number is NaN or infinite.
        TypeError: a field holds a value that JSON does not know.
    """
    said = {
        spec.name: value
        for spec in dataclasses.fields(message)
        if (value := getattr(message, spec.name)) is not None or spec.default is not None
    }
    try:
        return json.dumps(said, allow_nan=False, separators=(",", ":")).encode()
    except ValueError as error:
        raise MessageError(f"{type(message).__name__} of {getattr(message, 'job', '?')}: {error}") from None


def decode(kind: type[M], raw: bytes | bytearray | str | None, now: float | None = None) -> M:
    """Parse and validate one record into a message of class `kind`.

    Fields that `kind` does not declare are ignored, so that a newer sender is understood.

    Args:
        kind: message dataclass of `tidecast.messages`.
        raw: the record's value; None or blank is refused.
        now: wall time, epoch seconds; with it, a record from more than FUTURE_S ahead is refused too.

    Raises:
        MessageError: not one valid JSON object (see `parsed`), another `schema`, a field that is missing, mistyped or
            out of range, fields that contradict each other (the class's `check`), or times too far ahead (see
            `in_time`).
    """
    data = parsed(raw)
    if data.get("schema") != SCHEMA:
        raise MessageError(f"schema={shown(data.get('schema'))}; this reader knows {SCHEMA}. Upgrade the older side.")
    values = {}
    for one in fields_of(cast(Any, kind)):
        if one.name in data:
            values[one.name] = one.checked(data[one.name])
        elif one.default is None:
            raise MessageError(f"{one.name} is missing")
    message = kind(**values)
    if hasattr(message, "check"):
        message.check()
    in_time(message, now)
    return message


def keyed(kind: type[M], key: str | None, raw: bytes | bytearray | str | None, now: float | None = None) -> M:
    """Decode one record as `decode` does, and check that its Kafka key is the message's job (or its class's KEY field).

    Raises:
        MessageError: as `decode`, or the key differs.
    """
    message = decode(kind, raw, now)
    under(key, message)
    return message


def under(key: str | None, message: Any) -> None:
    """Check that a message's job (or the field that its class names as KEY) equals its record's Kafka key.

    Raises:
        MessageError: they differ.
    """
    name = getattr(message, "KEY", "job")
    if (value := getattr(message, name)) != key:
        raise MessageError(f"{name}={shown(value)} under the key {shown(key)}; key a record by its {name}")


def in_time(message: Any, now: float | None) -> None:
    """Check that a message's times are at most FUTURE_S (300 s) ahead of the reader's clock and of its own `wall_time`.

    `time` is compared with `wall_time` only where job time is wall time (`time_scale` 1), not in a sped-up replay.

    Args:
        message: anything with `wall_time` (epoch seconds) and perhaps `epoch` (ms since 1970), `time` and `time_scale`.
        now: the reader's wall time, epoch seconds; None (an old record is read) compares `time` with `wall_time` alone.

    Raises:
        MessageError: `wall_time`, `epoch` or `time` is too far ahead.
    """
    wall = message.wall_time
    if now is not None and wall > now + FUTURE_S:
        raise MessageError(f"wall_time={wall} is {wall - now:.0f} s ahead of the reader; set the sender's clock")
    epoch = getattr(message, "epoch", None)  # a server's own: what it takes up late is older than its claim
    if now is not None and epoch is not None and epoch > (now + FUTURE_S) * 1000:
        raise MessageError(f"epoch={epoch} is claimed {epoch / 1000 - now:.0f} s ahead of the reader; set its clock")
    time = getattr(message, "time", None)
    if time is not None and message.time_scale == 1 and time > wall + FUTURE_S:
        raise MessageError(f"time={time} is {time - wall:.0f} s ahead of wall_time={wall}; set the sender's clock")


def parsed(raw: bytes | bytearray | str | None) -> dict[str, Any]:
    """Parse a record as one JSON object, strictly.

    Refused are: more than RECORD_MOST bytes, nothing but blanks, invalid UTF-8 or JSON, another JSON type than an
    object, a name that occurs twice, NaN or infinite numbers, nesting deeper than NESTED_MOST, half of a surrogate
    pair.

    Raises:
        MessageError: the record is refused; the message says why.
    """
    found = raw.encode("utf-8", "surrogatepass") if isinstance(raw, str) else bytes(raw or b"")
    if len(found) > RECORD_MOST:
        raise MessageError(f"a record of {len(found)} bytes: at most {RECORD_MOST} are expected")
    if not found.strip():
        raise MessageError("an empty record: a JSON object is expected")
    try:
        text = found.decode()
        data = json.loads(text, object_pairs_hook=_object)
    except MessageError:
        raise
    except (ValueError, RecursionError) as error:
        raise MessageError(f"not JSON: {str(error)[:SHOWN]}") from None
    if not isinstance(data, dict):
        raise MessageError(f"a JSON {type(data).__name__}; an object is expected")
    for name, value in data.items():
        _sound(name, value, 1)
    if "\\u" in text:
        try:
            json.dumps(data, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise MessageError("half of a surrogate pair: no text that anybody could store") from None
    return data


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise MessageError(f"field {shown(twice)} stands twice")
    return data


def _sound(name: str, value: Any, depth: int) -> None:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise MessageError(f"{name[:SHOWN]}={value}: a finite number is expected")
    elif isinstance(value, (dict, list)):
        if depth == NESTED_MOST:
            raise MessageError(f"{name[:SHOWN]}: nested deeper than {NESTED_MOST}")
        for item in value.values() if isinstance(value, dict) else value:
            _sound(name, item, depth + 1)
