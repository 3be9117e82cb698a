"""Frozen dataclasses from plain mappings and back, as contracts, plans, states and signals are kept.

JSON holds what `plain` returns exactly, floats included, and `build` makes an equal dataclass of it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from configs.bounds import Declared, describe_errors

Built = TypeVar("Built")
_adapter: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)


class TermsError(ValueError):
    """A mapping that makes no such dataclass; the message names each wrong field, its value and what would be right."""


def build(kind: type[Built], data: Any) -> Built:
    """Build a dataclass from a mapping, nested ones included; each value is checked against its field.

    Raises:
        TermsError: it is no mapping, a key is unknown or missing, or a value is wrong; one line each.
    """
    try:
        return _adapter(kind).validate_python(data)
    except ValidationError as error:
        raise TermsError("\n".join(describe_errors(error, root=kind.__name__))) from None


def plain(declared: Declared) -> dict[str, Any]:
    """Return a dataclass as mappings, lists, numbers and texts that JSON holds; fields that are None are left out."""
    return _adapter(type(declared)).dump_python(declared, mode="json", by_alias=True, exclude_none=True)
