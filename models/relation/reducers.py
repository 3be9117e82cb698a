"""Aggregates that a value can be taken out of again: count, sum, mean, and several side by side.

Sums are exact (fractions), so that the order of arrival does not show in the last digits. An engine that adds up
doubles is to be compared within its rounding.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from models.relation.records import RelationError


class Reducer(ABC):
    """A function of a multiset of values that is computed from a partial result, one value at a time.

    Partials are never changed in place, and depend on the net of the values only, not on their order.
    """

    @property
    @abstractmethod
    def zero(self) -> Any:
        """Return the partial of no values."""

    @abstractmethod
    def add(self, partial: Any, v: Any, mult: int) -> Any:
        """Return the partial with a value added `mult` times, or taken out if that is negative."""

    @abstractmethod
    def result(self, partial: Any, count: int) -> Any:
        """Return the result of `count` ≥ 1 values, hashable."""


@dataclass(frozen=True)
class Count(Reducer):
    """Count the records."""

    @property
    def zero(self) -> Any:
        """Return None: the count is kept with the group."""
        return None

    def add(self, partial: Any, v: Any, mult: int) -> Any:
        """Return None."""
        return None

    def result(self, partial: Any, count: int) -> Any:
        """Return the count."""
        return count


@dataclass(frozen=True)
class Sum(Reducer):
    """Add the values up; they must be finite numbers."""

    @property
    def zero(self) -> Any:
        """Return 0."""
        return 0

    def add(self, partial: Any, v: Any, mult: int) -> Any:
        """Return the sum with the value added."""
        return partial + mult * _exact(v)

    def result(self, partial: Any, count: int) -> Any:
        """Return the sum: an int if it is whole, else the nearest float."""
        return _number(Fraction(partial))


@dataclass(frozen=True)
class Mean(Sum):
    """Average the values; they must be finite numbers."""

    def result(self, partial: Any, count: int) -> Any:
        """Return sum / count: an int if it is whole, else the nearest float."""
        return _number(Fraction(partial, count))


@dataclass(frozen=True)
class RowOf(Reducer):
    """Reduce the same values in several ways; the result is a tuple.

    Attributes:
        reducers: one per column.
    """

    reducers: tuple[Reducer, ...]

    @property
    def zero(self) -> Any:
        """Return each column's partial of no values."""
        return tuple(reducer.zero for reducer in self.reducers)

    def add(self, partial: Any, v: Any, mult: int) -> Any:
        """Return each column's partial with the value added."""
        return tuple(reducer.add(own, v, mult) for reducer, own in zip(self.reducers, partial, strict=True))

    def result(self, partial: Any, count: int) -> Any:
        """Return each column's result."""
        return tuple(reducer.result(own, count) for reducer, own in zip(self.reducers, partial, strict=True))


def _exact(v: Any) -> int | Fraction:
    if not isinstance(v, (int, float, Fraction, Decimal)) or not math.isfinite(v):
        raise RelationError(f"value {v!r} under a sum or a mean: map it to a finite number, or select it out before")
    return v if isinstance(v, int) else Fraction(v)


def _number(exact: Fraction) -> int | float:
    return exact.numerator if exact.denominator == 1 else float(exact)
