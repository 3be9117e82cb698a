"""Copies of a job's values with other fields, of which each step of the autoscaler makes a dozen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

__all__ = ["copy_with"]

T = TypeVar("T")

if TYPE_CHECKING:
    from dataclasses import replace as copy_with  # whose fields and types mypy knows
else:

    def copy_with(value: T, /, **changes: Any) -> T:
        """Return what `dataclasses.replace` does, at a tenth of its time: that hands each field to `__init__`.

        Args:
            value: of a dataclass without slots, `__post_init__` and cached properties.
            changes: fields by name; that there are such is not checked here, but by mypy.
        """
        copy = object.__new__(type(value))
        vars(copy).update(vars(value))
        vars(copy).update(changes)
        return copy
