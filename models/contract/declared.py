"""Frozen dataclasses from plain mappings and back, as contracts, plans, states and signals are kept.

JSON holds what `plain` returns exactly, floats included, and `build` makes an equal dataclass of it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

Level = Annotated[float, Field(gt=0, lt=1)]
"""A number between 0 and 1, both excluded, such as the level of a quantile."""
Fraction = Annotated[float, Field(ge=0, le=1)]
"""A share that may be all."""
Whole = Annotated[int, Field(ge=0)]
Name = Annotated[str, Field(min_length=1)]
Built = TypeVar("Built")
_adapter: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)


class TermsError(ValueError):
    """A mapping that makes no such dataclass; the message names each wrong field, its value and what would be right."""


class Declared:
    """Base of the dataclasses: an unknown key is an error, and so is what is not finite."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid", allow_inf_nan=False)


def build(kind: type[Built], data: Any) -> Built:
    """Build a dataclass from a mapping, nested ones included; each value is checked against its field.

    Raises:
        TermsError: it is no mapping, a key is unknown or missing, or a value is wrong; one line each.
    """
    try:
        return _adapter(kind).validate_python(data)
    except ValidationError as error:
        told = []
        for wrong in error.errors():
            key = ".".join(map(str, wrong["loc"])) or kind.__name__
            if wrong["type"] == "missing":
                told.append(f"{key}: missing, and it has no default. State it.")
            elif wrong["type"] == "unexpected_keyword_argument":
                told.append(f"{key}={wrong['input']!r}: no such field. Look for a misspelling.")
            elif wrong["type"] == "value_error":  # of fields that do not go together
                told.append(f"{key}: {wrong['ctx']['error']}")
            else:
                told.append(f"{key}={wrong['input']!r}: {wrong['msg']}.")
        raise TermsError("\n".join(told)) from None


def plain(declared: Declared) -> dict[str, Any]:
    """Return a dataclass as mappings, lists, numbers and texts that JSON holds; fields that are None are left out."""
    return _adapter(type(declared)).dump_python(declared, mode="json", by_alias=True, exclude_none=True)
