"""Messages to and from JSON bytes; everything that is read is validated, its times included."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any, TypeVar, cast

from tidecast.fields import SHOWN, MessageError, fields_of, short_repr

SCHEMA = 1
"""Raised when a field changes its meaning; a new field needs no new number, because readers ignore unknown ones."""
FUTURE_S = 300.0
"""Seconds that a record's `wall_time` may be ahead of its reader; beyond that its sender's clock is wrong."""
RECORD_MOST = 1 << 20  # most bytes of a record: a broker's default limit
NESTED_MOST = 32
M = TypeVar("M")
_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))  # `json.dumps` makes one for each call


def encode(message: Any) -> bytes:
    """Serialise a message dataclass (`tidecast.messages`) as compact UTF-8 JSON.

    A field that is None is left out if None is its default.

    Raises:
        MessageError: a number is NaN or infinite.
        TypeError: `message` is no dataclass, or a field holds a value that JSON does not know.
    """
    values = {
        spec.name: value
        for spec in dataclasses.fields(message)
        if (value := getattr(message, spec.name)) is not None or spec.default is not None
    }
    try:
        return _ENCODER.encode(values).encode()
    except ValueError as error:
        raise MessageError(f"{type(message).__name__} of {getattr(message, 'job', '?')}: {error}") from None


def decode(kind: type[M], raw: bytes | bytearray | str | None, now: float | None = None) -> M:
    """Parse and validate the value of one record into a message of class `kind`; undeclared fields are ignored.

    Args:
        kind: message dataclass of `tidecast.messages`.
        raw: UTF-8 JSON of at most 2**20 bytes; None or blank is refused.
        now: wall time, epoch seconds; with it, a record from more than FUTURE_S (300 s) ahead is refused too.

    Raises:
        MessageError: not one valid JSON object (see `parse_json_object`), another `schema` than 1, a field that is
            missing, mistyped or out of range, fields that contradict each other (the class's `check`), or a time in the
            future (see `check_times`).
    """
    data = parse_json_object(raw)
    if data.get("schema") != SCHEMA:
        raise MessageError(
            f"schema={short_repr(data.get('schema'))}; this reader knows {SCHEMA}. Upgrade the older side."
        )
    message = read_fields(kind, data)
    if hasattr(message, "check"):
        message.check()
    check_times(message, now)
    return message


def read_fields(kind: type[M], data: Any) -> M:
    """Return an object of a class with declared fields from a JSON object, whose other keys are ignored.

    Raises:
        MessageError: it is no object, or a field is missing, mistyped or out of range.
    """
    if not isinstance(data, dict):
        raise MessageError(f"{short_repr(data)}: an object with the fields of {kind.__name__} is expected")
    values = {}
    for field in fields_of(cast(Any, kind)):
        if field.name in data:
            values[field.name] = field.validate(data[field.name])
        elif field.default is None:
            raise MessageError(f"{field.name} is missing")
    return kind(**values)


def decode_keyed(kind: type[M], key: str | None, raw: bytes | bytearray | str | None, now: float | None = None) -> M:
    """Decode one record as `decode` does, and check that its Kafka key is the message's job (or its class's KEY field).

    Raises:
        MessageError: as `decode`, or the key differs.
    """
    message = decode(kind, raw, now)
    check_key(key, message)
    return message


def check_key(key: str | None, message: Any) -> None:
    """Check that a message's job (or the field that its class names as KEY) equals its record's Kafka key.

    Raises:
        MessageError: they differ.
    """
    name = getattr(message, "KEY", "job")
    if (value := getattr(message, name)) != key:
        raise MessageError(f"{name}={short_repr(value)} under the key {short_repr(key)}; key a record by its {name}")


def check_times(message: Any, now: float | None) -> None:
    """Refuse a message with a time in the future, because the clock of its sender is wrong.

    Args:
        message: anything with `wall_time` (epoch seconds), and perhaps `epoch` (number of a server, the ms since 1970
            at which it began), `time` (job time, epoch seconds), `span_s` (job seconds from `time` on) and `time_scale`
            (job seconds per wall second).
        now: the reader's wall time, epoch seconds; None for an old record, of which job time alone is checked.

    Raises:
        MessageError: `wall_time` or `epoch` is over FUTURE_S (300 s) ahead of `now`; or, where `time_scale` is 1,
            `time`, or the end of the span, is that far ahead of `wall_time`.
    """
    wall = message.wall_time
    if now is not None and wall > now + FUTURE_S:
        raise MessageError(f"wall_time={wall} is {wall - now:.0f} s ahead of the reader; set the sender's clock")
    epoch = getattr(message, "epoch", None)  # a server's own: what it takes up late is older than its claim
    if now is not None and epoch is not None and epoch > (now + FUTURE_S) * 1000:
        raise MessageError(f"epoch={epoch} is claimed {epoch / 1000 - now:.0f} s ahead of the reader; set its clock")
    time = getattr(message, "time", None)
    if time is None or message.time_scale != 1:
        return
    if time > wall + FUTURE_S:
        raise MessageError(f"time={time} is {time - wall:.0f} s ahead of wall_time={wall}; set the sender's clock")
    span_s = getattr(message, "span_s", 0.0)  # one too long would make all that its job sends until then too late
    if (ahead := time + span_s - wall) > FUTURE_S:
        why = f"span_s={span_s} from time={time} on ends {ahead:.0f} s ahead of wall_time={wall}"
        raise MessageError(f"{why}, when it was measured; correct the span")


def parse_json_object(raw: bytes | bytearray | str | None) -> dict[str, Any]:
    """Parse a record as one JSON object, strictly.

    Refused are: more than RECORD_MOST (2**20) bytes, nothing but blanks, invalid UTF-8 or JSON, another JSON type than
    an object, a name that occurs twice in an object, NaN or infinite numbers, nesting deeper than NESTED_MOST (32),
    half of a surrogate pair.

    Raises:
        MessageError: the record is refused; the message says why.
    """
    encoded = raw.encode("utf-8", "surrogatepass") if isinstance(raw, str) else bytes(raw or b"")
    if len(encoded) > RECORD_MOST:
        raise MessageError(f"a record of {len(encoded)} bytes: at most {RECORD_MOST} are expected")
    if not encoded.strip():
        raise MessageError("an empty record: a JSON object is expected")
    try:
        text = encoded.decode()
        data = json.loads(text, object_pairs_hook=_object)
    except MessageError:
        raise
    except (ValueError, RecursionError) as error:
        raise MessageError(f"not JSON: {str(error)[:SHOWN]}") from None
    if not isinstance(data, dict):
        raise MessageError(f"a JSON {type(data).__name__}; an object is expected")
    for name, value in data.items():
        _check_nested(name, value, 1)
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
        raise MessageError(f"field {short_repr(twice)} stands twice")
    return data


def _check_nested(name: str, value: Any, depth: int) -> None:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise MessageError(f"{name[:SHOWN]}={value}: a finite number is expected")
    elif isinstance(value, (dict, list)):
        if depth == NESTED_MOST:
            raise MessageError(f"{name[:SHOWN]}: nested deeper than {NESTED_MOST}")
        for item in value.values() if isinstance(value, dict) else value:
            _check_nested(name, item, depth + 1)
