"""JSON records decoded within microseconds where they are as usual: every field once, of its type, within its limits.

Any other record is left to `tidecast.messages.decode`, which takes it or says why not.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal

import msgspec

from tidecast.fields import Bounds, Field, Limits, Matching, OneOf, fields_of
from tidecast.messages import SCHEMA
from tidecast.wire import RECORD_MOST


def usual_decoder(message: type, needed: Collection[str] = (), **fixed: str) -> msgspec.json.Decoder[Any]:
    """Make the decoder of a message class that `decode_usual` takes.

    Args:
        message: its class, of `tidecast.messages`; fields of it of which None is no default are always there.
        needed: names of others that are.
        fixed: the only value of a field, by its name.
    """
    fields = [_usual_field(one, needed, {"schema": SCHEMA, **fixed}) for one in fields_of(message)]
    made = msgspec.defstruct(f"Usual{message.__name__}", fields, frozen=True, forbid_unknown_fields=True, kw_only=True)
    return msgspec.json.Decoder(made)


def decode_usual(decoder: msgspec.json.Decoder[Any], raw: bytes) -> Any:
    """Return a usual record as a struct with the fields of its class, not yet looked at by `check`; None for another.

    Args:
        decoder: from `usual_decoder`.
        raw: the record, JSON.
    """
    if len(raw) > RECORD_MOST:
        return None
    try:
        usual = decoder.decode(raw)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):  # the last one of text that is no UTF-8
        return None
    values = msgspec.structs.astuple(usual)
    # A name that stands twice adds a colon and no value. So does a null, but senders of this version write none.
    return usual if raw.count(b":") == len(values) - values.count(None) else None


def _usual_field(one: Field, needed: Collection[str], fixed: Mapping[str, Any]) -> tuple[Any, ...]:
    """A field as msgspec has it: its type and limits, and what stands for it where it is missing."""
    hint: Any = Literal[fixed[one.name]] if one.name in fixed else _limited(one.kind, one.limits)
    if one.name in needed or one.default is None or one.default() is not None:
        return one.name, hint
    return one.name, hint | None, None


def _limited(kind: Any, limits: Limits | None) -> Any:
    """A type with the limits of its values, or of each value in a list."""
    if typing.get_origin(kind) is list:
        return types.GenericAlias(list, tuple(_limited(inner, limits) for inner in typing.get_args(kind)))
    if isinstance(limits, Bounds):
        least, most, above = limits
        return Annotated[kind, msgspec.Meta(gt=least, le=most) if above else msgspec.Meta(ge=least, le=most)]
    if isinstance(limits, Matching):
        return Annotated[kind, msgspec.Meta(pattern=rf"\A{limits.pattern.pattern}\Z")]
    return Literal[limits.words] if isinstance(limits, OneOf) else kind
