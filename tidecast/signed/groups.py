"""A group's partial results as a stateful operator keeps them between micro-batches, in plain Python.

Sums are exact (whole numbers or fractions, kept as text), so that a value that is taken out leaves nothing behind and
the order of arrival does not show; values under an order are kept each with its net.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal
from fractions import Fraction
from itertools import accumulate, islice
from math import ceil, inf, isfinite
from typing import Any

from tidecast.signed.reductions import Reduction

_DIGITS = Context(prec=60)  # more than a decimal of Spark has


@dataclass
class Partial:
    """What is known of a group.

    Attributes:
        n: its net number of records.
        t_i: newest ingestion time of any, ms.
        live: whether any came live.
        told: whether its result was told before.
        sums: per summed column how many values it has and their exact sum.
        values: per ordered row of columns the net of each value, never 0.
    """

    n: int = 0
    t_i: int = 0
    live: bool = False
    told: bool = False
    sums: dict[str, tuple[int, int | Fraction]] = field(default_factory=dict)
    values: dict[tuple[str, ...], dict[tuple[Any, ...], int]] = field(default_factory=dict)

    def add(self, row: Mapping[str, Any], mult: int) -> None:
        """Add a record, or take it out.

        Args:
            row: its columns.
            mult: +1 or -1.

        Raises:
            ValueError: a NaN or an infinity is to be summed, or a NaN is to be put in order.
        """
        self.n += mult
        for column, (many, total) in self.sums.items():
            if (x := row[column]) is not None:
                self.sums[column] = many + mult, total + mult * _exact(column, x)
        for columns, counts in self.values.items():
            value = tuple(row[column] for column in columns)
            if None in value:
                continue
            if any(one != one for one in value):  # equal to none, itself included: it could never be taken out again
                raise ValueError(f"{', '.join(columns)}: NaN has no place in an order; filter such records out first")
            if left := counts.get(value, 0) + mult:
                counts[value] = left
            else:
                del counts[value]

    @property
    def empty(self) -> bool:
        """Whether nothing is left of all that came."""
        return self.n == 0 and not any(map(any, self.sums.values())) and not any(self.values.values())


def empty_partial(reductions: Sequence[Reduction]) -> Partial:
    """Return the partial of no records."""
    summed = dict.fromkeys(one.columns[0] for one in reductions if one.kind in ("sum", "mean"))
    ordered = dict.fromkeys(one.columns for one in reductions if not one.linear)
    return Partial(sums={column: (0, 0) for column in summed}, values={columns: {} for columns in ordered})


def results(reductions: Mapping[str, Reduction], partial: Partial) -> dict[str, Any] | None:
    """Return a group's result, a value per column, or None where its net is not above 0: it has none then."""
    if partial.n <= 0:
        return None
    return {name: _result(reduction, partial) for name, reduction in reductions.items()}


def _result(reduction: Reduction, partial: Partial) -> Any:
    if reduction.kind == "count":
        return partial.n
    if reduction.kind in ("sum", "mean"):
        many, total = partial.sums[reduction.columns[0]]
        if reduction.kind == "mean":
            return as_double(total) / many if many else None
        return total if many else None
    counts = partial.values[reduction.columns]
    if reduction.kind == "top":
        rows = islice(_descending(counts), reduction.n)
        return [dict(zip(reduction.columns, value, strict=True)) for value in rows]
    there = [value for value, net in counts.items() if net > 0]
    if not there:
        return None
    if reduction.kind == "quantile":
        return _of_rank(counts, reduction.share)[0]
    return (min(there) if reduction.kind == "min" else max(there))[0]


def as_double(total: int | Fraction) -> float:
    """Return a sum as Spark casts it; beyond all doubles it is infinite."""
    try:
        return float(total)
    except OverflowError:
        return inf if total > 0 else -inf


def number_of(text: str) -> int | Fraction:
    """Return a sum that was kept as text."""
    numerator, _, denominator = text.partition("/")
    return Fraction(int(numerator), int(denominator)) if denominator else int(numerator)


def as_type(its: Any, value: Any) -> Any:
    """Return a sum as a column of a type of Spark's has it: whole, decimal or double; all else as it is."""
    if not isinstance(value, int | Fraction) or isinstance(value, bool):
        return value
    if its.typeName() in ("double", "float"):
        return as_double(value)
    if its.typeName() == "decimal":
        exact = Fraction(value)
        return _DIGITS.divide(Decimal(exact.numerator), Decimal(exact.denominator))
    return value


def _of_rank(counts: Mapping[tuple[Any, ...], int], share: Fraction) -> tuple[Any, ...]:
    """The value of rank ⌈share · n⌉ among the n whose net is above 0, least first."""
    there = sorted(value for value, net in counts.items() if net > 0)
    seen = list(accumulate(counts[value] for value in there))
    return there[bisect_left(seen, ceil(share * seen[-1]))]


def _descending(counts: Mapping[tuple[Any, ...], int]) -> Iterator[tuple[Any, ...]]:
    """The values whose net is above 0, each as often as it is there, greatest first."""
    for value in sorted((value for value, net in counts.items() if net > 0), reverse=True):
        yield from (value for _ in range(counts[value]))


def _exact(column: str, x: Any) -> int | Fraction:
    if isinstance(x, int):
        return x
    if isinstance(x, float | Decimal) and isfinite(x):
        return Fraction(x)
    raise ValueError(f"{x!r} in column {column!r} under a sum or a mean: filter out what is no finite number before")
