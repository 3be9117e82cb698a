"""What the values of a group can be reduced to, as declarations: Spark's expressions or Python's folds make them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from tidecast.signed.columns import SignedError

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

Kind = Literal["count", "sum", "mean", "min", "max", "top", "quantile"]
LINEAR: frozenset[Kind] = frozenset({"count", "sum", "mean"})
"""Reductions that a sum over the signs gives; the others need every value of the group."""
FINEST = 10**9
"""Denominator of the finest share that a quantile is taken at: ranks among 9 · 10⁹ values stay in 64 bits."""


@dataclass(frozen=True)
class Reduction:
    """One result column of an aggregate.

    Attributes:
        kind: what is done.
        columns: what it is done to.
        n: how many a `top` takes.
        share: of the values, that a `quantile` is not below.
    """

    kind: Kind
    columns: tuple[str, ...] = ()
    n: int = 1
    share: Fraction = Fraction(1)

    @property
    def linear(self) -> bool:
        """Whether signed sums are all it needs."""
        return self.kind in LINEAR

    def by_spark(self, retracting: bool) -> bool:
        """Return whether an aggregate of Spark's makes it: of records that all insert, also the least and greatest."""
        return self.linear or (not retracting and self.kind in ("min", "max"))


def count() -> Reduction:
    """Count the records: bigint."""
    return Reduction("count")


def sum_of(column: str) -> Reduction:
    """Add a column up: bigint for whole numbers, decimal for decimals, else double. Nulls take no part.

    Of decimals 34 digits are exact: Spark's own negation rounds longer ones. Beyond all doubles a sum is infinite;
    in `totals` and on tables, where Spark adds, one of doubles may stay so, or be NaN, whatever is taken out of it.
    """
    return Reduction("sum", (column,))


def mean_of(column: str) -> Reduction:
    """Average a column: double. Nulls take no part."""
    return Reduction("mean", (column,))


def min_of(column: str) -> Reduction:
    """Take the least value of a column. Nulls take no part."""
    return Reduction("min", (column,))


def max_of(column: str) -> Reduction:
    """Take the greatest value of a column. Nulls take no part."""
    return Reduction("max", (column,))


def quantile_of(column: str, q: float) -> Reduction:
    """Take the least value that at least a share q of a column's values do not exceed: SQL's `percentile_disc`.

    It is the value of rank ⌈q·n⌉ among the n that are there. Nulls take no part.

    Args:
        column: of any type that has an order.
        q: above 0 and at most 1, with at most nine decimals; taken as the decimal that it is written as.
    """
    if not 0 < q <= 1 or (share := Fraction(str(q))).denominator > FINEST:
        raise SignedError(
            f"quantile_of({column!r}, {q}): give more than 0 and at most 1, with nine decimals or less (min_of is the"
            " least value)"
        )
    return Reduction("quantile", (column,), share=share)


def top(n: int, *columns: str) -> Reduction:
    """Take the n greatest rows of some columns, by the first one, ties by the next: an array of structs.

    Equal rows count as often as they are there; rows with a null in one of the columns take no part.

    Args:
        n: how many, at least 1; fewer where there are fewer.
        columns: at least 1.
    """
    if n < 1 or not columns:
        raise SignedError(f"top({n}, {', '.join(map(repr, columns))}): give an n of 1 or more, and a column or more")
    return Reduction("top", columns, n)


def result_type(reduction: Reduction, schema: StructType) -> DataType:
    """Return the type of a reduction's column.

    Args:
        reduction: what is done.
        schema: of the records.

    Raises:
        SignedError: a column is missing, or of a type that the reduction cannot take.
    """
    from pyspark.sql import types as T

    if missing := sorted({*reduction.columns} - {*schema.names}):
        raise SignedError(f"columns {missing} of {reduction.kind} are unknown: the records have {schema.names}")
    types = [schema[name].dataType for name in reduction.columns]
    if reduction.kind == "count":
        return T.LongType()
    if reduction.kind in ("sum", "mean"):
        if not isinstance(types[0], T.NumericType):
            raise SignedError(f"{reduction.kind} of {reduction.columns[0]!r}, {types[0].simpleString()}: cast it")
        if reduction.kind == "mean" or isinstance(types[0], (T.FloatType, T.DoubleType)):
            return T.DoubleType()
        return T.DecimalType(38, types[0].scale) if isinstance(types[0], T.DecimalType) else T.LongType()
    ordered = (T.NumericType, T.StringType, T.BooleanType, T.DateType)
    for name, its in zip(reduction.columns, types, strict=True):
        if not isinstance(its, ordered):
            raise SignedError(
                f"{reduction.kind} of {name!r}, {its.simpleString()}: take a number, a string, a boolean or a date"
                " (a timestamp by unix_micros)"
            )
    if reduction.kind == "top":
        fields = [T.StructField(name, its) for name, its in zip(reduction.columns, types, strict=True)]
        return T.ArrayType(T.StructType(fields), containsNull=False)
    return types[0]
