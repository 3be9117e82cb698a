"""Aggregates by order: least, greatest, top N, quantile. A retraction may take any value away, so all are kept.

Values that are taken out more often than they came are kept as such and take no part in the result.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from models.relation.records import RelationError
from models.relation.reducers import Reducer

Counted = Mapping[Any, int]
"""Net per value, never 0."""


class OrderedReducer(Reducer):
    """A reducer whose partial is the net per value."""

    @property
    def zero(self) -> Counted:
        """Return no values."""
        return {}

    def add(self, partial: Counted, v: Any, mult: int) -> Counted:
        """Return the nets with the value's changed."""
        count = partial.get(v, 0) + mult
        others = {value: its for value, its in partial.items() if value != v}
        return {**others, v: count} if count else others


@dataclass(frozen=True)
class Min(OrderedReducer):
    """Take the least value."""

    def result(self, partial: Counted, count: int) -> Any:
        """Return the first value in order."""
        return _ordered(partial)[0]


@dataclass(frozen=True)
class Max(OrderedReducer):
    """Take the greatest value."""

    def result(self, partial: Counted, count: int) -> Any:
        """Return the last value in order."""
        return _ordered(partial)[-1]


@dataclass(frozen=True)
class TopN(OrderedReducer):
    """Take the N greatest values, greatest first; fewer if there are fewer, equal ones as often as they are there.

    To rank by a score make the value (score, item): ties are then broken by the item, always in the same way.

    Attributes:
        n: how many, at least 1.
    """

    n: int

    def __post_init__(self) -> None:
        if self.n < 1:
            raise RelationError(f"n of TopN, {self.n}: give 1 or more")

    def result(self, partial: Counted, count: int) -> tuple[Any, ...]:
        """Return the last values in order, as a tuple."""
        return tuple(_ordered(partial)[::-1][: self.n])


@dataclass(frozen=True)
class Quantile(OrderedReducer):
    """Take the least value that at least a share q of the values do not exceed: SQL's `percentile_disc`.

    It is always one of the values (definition 1 of Hyndman and Fan, "Sample Quantiles in Statistical Packages", The
    American Statistician 50(4), 1996), which may be of any kind that has an order.

    Attributes:
        q: share, above 0 and at most 1; taken as the decimal it is written as, so that 0.07 of 100 values is 7.
    """

    q: float

    def __post_init__(self) -> None:
        if not 0 < self.q <= 1:
            raise RelationError(f"q of Quantile, {self.q}: give more than 0 and at most 1 (Min is the least value)")

    def result(self, partial: Counted, count: int) -> Any:
        """Return the value of rank ⌈q·n⌉ among the n that are there."""
        values = _ordered(partial)
        return values[math.ceil(Fraction(str(self.q)) * len(values)) - 1]


def _ordered(partial: Counted) -> list[Any]:
    """The values whose net is above 0, each as often as it is there, least first."""
    try:
        return sorted(value for value, count in partial.items() for _ in range(count))
    except TypeError as error:
        raise RelationError(f"values {list(partial)!r} have no order ({error}): map them to one kind before") from None
