"""Types and limits of message fields: declared once, in the field's annotation, and checked by every reader."""

from __future__ import annotations

import re
import types
import typing
from dataclasses import MISSING, fields
from functools import cache
from typing import Annotated, Any, NamedTuple

MOST = 1e15  # largest quantity accepted; somewhat above it floats no longer hold every whole number
COUNT_MOST = (1 << 63) - 1
LATEST_S = 4_102_444_800.0  # the year 2100, epoch seconds: a later time was given in milliseconds
SPAN_MOST_S = 366 * 86_400.0
SCALE_MOST = 1e6
SHOWN = 80  # characters of a value that an error repeats


class MessageError(ValueError):
    """A record that cannot be accepted; the message says which field, which value, and what would be right."""


class Bounds(NamedTuple):
    """A number in [least, most]; with `above`, least itself is refused."""

    least: float
    most: float
    above: bool = False

    def objection(self, value: Any) -> str | None:
        """Describe the expected range if `value` is outside it; None if it is inside."""
        if value < self.least or (self.above and value == self.least):
            return f"{'above' if self.above else 'at least'} {self.least} is expected"
        return f"at most {self.most} is expected" if value > self.most else None


class OneOf(NamedTuple):
    """Limits of a text field: one of these words."""

    words: tuple[str, ...]

    def objection(self, value: Any) -> str | None:
        """List the allowed words if `value` is none of them; None if it is one."""
        return None if value in self.words else f"one of {', '.join(self.words)} is expected"


class Matching(NamedTuple):
    """Limits of a text field: all of it matches the pattern, which `words` describe for errors."""

    pattern: re.Pattern[str]
    words: str

    def objection(self, value: Any) -> str | None:
        """Describe the expected text if `value` does not match the whole pattern; None if it does."""
        return None if self.pattern.fullmatch(value) else f"{self.words} are expected"


Limits = Bounds | OneOf | Matching
JOB_NAME = Matching(
    re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"),
    "1 to 64 letters, digits, dots, dashes or underscores, the first a letter or a digit,",
)
JobName = Annotated[str, JOB_NAME]
Time = Annotated[float, Bounds(0, LATEST_S)]
Span = Annotated[float, Bounds(0, SPAN_MOST_S, above=True)]
Scale = Annotated[float, Bounds(0, SCALE_MOST, above=True)]
Rate = Annotated[float, Bounds(0, MOST)]
Seconds = Annotated[float, Bounds(0, MOST)]
Count = Annotated[int, Bounds(0, COUNT_MOST)]
Millis = Annotated[int, Bounds(0, round(LATEST_S * 1000))]
Tasks = Annotated[int, Bounds(1, COUNT_MOST)]
Executors = Annotated[int, Bounds(0, 10_000)]
_UNSAID: dict[Any, Limits] = {float: Bounds(-MOST, MOST), int: Bounds(-COUNT_MOST - 1, COUNT_MOST)}


class Field(NamedTuple):
    """A field of a record.

    Attributes:
        name: its key on the wire.
        kind: str, int, float, a list of them, or dict.
        optional: whether null is a value; a record may always leave such a field out.
        default: what a missing field stands for, as a function without arguments; None where it may not be missing.
        limits: of the value, or of each value in a list; None where there are none.
    """

    name: str
    kind: Any
    optional: bool
    default: Any
    limits: Limits | None

    def validate(self, value: Any) -> Any:
        """Validate a JSON value and convert it to the field's type, as `validate` does; None passes where `optional`.

        Raises:
            MessageError: another type, or beyond the limits.
        """
        return None if value is None and self.optional else validate(self.name, value, self.kind, self.limits)


@cache
def fields_of(kind: type) -> tuple[Field, ...]:
    """Return the fields that a message dataclass declares, in their order; cached.

    Raises:
        TypeError: `kind` is no dataclass.
    """
    hints = typing.get_type_hints(kind, include_extras=True)
    return tuple(_field(spec, hints[spec.name]) for spec in fields(kind))


def _field(spec: Any, hint: Any) -> Field:
    optional = isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union
    if optional:
        hint = next(t for t in typing.get_args(hint) if t is not types.NoneType)
    limits = None
    if typing.get_origin(hint) is Annotated:
        hint, limits = typing.get_args(hint)
    leaf = hint
    while typing.get_origin(leaf) is list:
        (leaf,) = typing.get_args(leaf)
    default = spec.default_factory if spec.default is MISSING else lambda: spec.default
    return Field(spec.name, hint, optional, None if default is MISSING else default, limits or _UNSAID.get(leaf))


def job_name(name: str) -> str:
    """Return `name` if it is a valid job name (see JOB_NAME): it becomes part of keys, paths, SQL and registry filters.

    Raises:
        MessageError: it is not valid.
    """
    return str(validate("job", name, str, JOB_NAME))


def validate(name: str, value: Any, kind: Any, limits: Limits | None) -> Any:
    """Check one JSON value against a declared type and its limits, and return it.

    Args:
        name: the field's name, for the error.
        value: as `json.loads` gives it.
        kind: str, int, float, dict, Any or a (nested) list of one of these; types must match exactly: no bool as int,
            no text as a number, but an int as a float. Any passes: the message's own check has to look at it.
        limits: of the value or of each value in a list; None for none.

    Returns:
        The value; an int for a float field as a float, a list as a copy.

    Raises:
        MessageError: another type, or beyond its limits; the message gives field, value and what is expected.
    """
    origin = _origin(kind)
    if origin is list:
        if not isinstance(value, list):
            raise MessageError(f"{name}={short_repr(value)}: a list is expected")
        (inner,) = typing.get_args(kind)
        return [validate(f"{name}[{i}]", item, inner, limits) for i, item in enumerate(value)]
    if kind is Any:
        return value
    if kind is float and type(value) is int:
        value = float(max(-COUNT_MOST, min(value, COUNT_MOST)))  # beyond every limit, and still a float
    expected_type = origin or kind
    if type(value) is not expected_type:
        raise MessageError(f"{name}={short_repr(value)}: {_WORDS[expected_type]} is expected")
    if limits is not None and (objection := limits.objection(value)):
        raise MessageError(f"{name}={short_repr(value)}: {objection}")
    return value


@cache
def _origin(kind: Any) -> Any:
    return typing.get_origin(kind)


_WORDS = {str: "text", int: "int", float: "float", bool: "true or false", dict: "an object"}


def short_repr(value: Any) -> str:
    """Return the value's `repr` for an error message, cut to SHOWN characters and "..."."""
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
