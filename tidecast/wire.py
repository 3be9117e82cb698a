"""Records as bytes: what is written leaves out what is not there, what is read is sound, declared and in time."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any, TypeVar, cast

from tidecast.fields import SHOWN, MessageError, fields_of, shown

SCHEMA = 1
"""Of a reader that ignores what it does not know: a new field needs no new number, a changed meaning does."""
FUTURE_S = 300.0
"""A record whose `wall_time` lies further ahead than this is refused: its sender's clock is wrong."""
RECORD_MOST = 1 << 20
"""Bytes of a record: what a broker takes unless it was told otherwise."""
NESTED_MOST = 32
M = TypeVar("M")


def encode(message: Any) -> bytes:
    """The message as JSON, without optional fields that are None; numbers that are not finite are refused here."""
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
    """Read one record; with `now` (wall time), one from the far future is refused too.

    Fields that the class does not have are ignored: their sender is of a newer version.

    Raises:
        MessageError: not one sound JSON object, an unknown schema, a missing, mistyped or out-of-range field.
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
    """`decode` for a follower of a topic, on which a record lies under its job.

    Raises:
        MessageError: as `decode`; or the key is another's.
    """
    message = decode(kind, raw, now)
    under(key, message)
    return message


def under(key: str | None, message: Any) -> None:
    """Refuse a message whose record has another key than its job, or than what its class names as KEY.

    Raises:
        MessageError: it has.
    """
    name = getattr(message, "KEY", "job")
    if (value := getattr(message, name)) != key:
        raise MessageError(f"{name}={shown(value)} under the key {shown(key)}; key a record by its {name}")


def in_time(message: Any, now: float | None) -> None:
    """Refuse what is ahead of its reader, or of its own clock where the job's is the wall's.

    Args:
        message: anything with the fields of a message.
        now: wall time; None where the reader's clock says nothing, as of a record of long ago.

    Raises:
        MessageError: it is ahead.
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
    """The one JSON object in a record: strict UTF-8 and JSON, no name twice, numbers finite, nested not too deep.

    Raises:
        MessageError: it is something else, or longer than RECORD_MOST.
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
