"""What may stand in a field of a record: the type it is declared with, finite, and not below its least value."""

from __future__ import annotations

import math
import types
import typing
from dataclasses import field
from typing import Any


class MessageError(ValueError):
    """A record that cannot be accepted; the message says which field, which value, and what would be right."""


def at_least(least: float) -> Any:
    """An optional field of a record with its least value."""
    return field(default=None, metadata={"least": least})


def checked(name: str, value: Any, hint: Any, least: float | None) -> Any:
    """The JSON value as the declared type has it.

    Raises:
        MessageError: another type, not finite, or below `least`.
    """
    if isinstance(hint, types.UnionType):
        if value is None:
            return None
        hint = next(t for t in typing.get_args(hint) if t is not type(None))
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is list:
        if not isinstance(value, list):
            raise MessageError(f"{name}={value!r}: a list is expected")
        return [checked(f"{name}[{i}]", item, arguments[0], least) for i, item in enumerate(value)]
    if origin is dict:
        if not isinstance(value, dict):
            raise MessageError(f"{name}={value!r}: an object is expected")
        _finite_inside(name, value)
        return value
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        try:
            value = float(value)
        except OverflowError:
            value = math.inf
    if not isinstance(value, hint) or isinstance(value, bool):
        raise MessageError(f"{name}={value!r}: {hint.__name__} is expected")
    if isinstance(value, float) and not math.isfinite(value):
        raise MessageError(f"{name}={value}: a finite number is expected")
    if least is not None and value < least:
        raise MessageError(f"{name}={value}: at least {least:g} is expected")
    return value


def _finite_inside(name: str, value: Any) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise MessageError(f"{name}={value}: a finite number is expected")
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inside:
        _finite_inside(f"{name}[{key!r}]", item)


def above_zero(name: str, value: float) -> None:
    """Refuse 0 and less."""
    if not value > 0:
        raise MessageError(f"{name}={value}: above 0 is expected")


def one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    """Refuse what is not among the allowed words."""
    if value not in allowed:
        raise MessageError(f"{name}={value!r}: one of {', '.join(allowed)} is expected")
