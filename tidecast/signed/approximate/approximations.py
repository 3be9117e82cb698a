"""What can be had approximately, as declarations: Spark's sketches, or a sample, make them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tidecast.signed.approximate.bounds import (
    check_share,
    count_min_size,
    difference_size,
    hyperloglog_precision,
    kll_size,
    sampled_sum_error,
)
from tidecast.signed.columns import SignedError

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

Kind = Literal["distinct", "remaining", "quantile", "count", "sampled count", "sampled sum", "sampled mean"]
SKETCHES = {"distinct": "HyperLogLog", "quantile": "KLL"}
"""Sketches that no value can be taken out of."""
SAMPLED: frozenset[Kind] = frozenset({"sampled count", "sampled sum", "sampled mean"})
EPS, PF = 0.02, 0.005


@dataclass(frozen=True)
class Approximation:
    """One approximate result.

    Attributes:
        kind: of what.
        columns: what it is made of; empty for a count of records.
        pf: probability that its bound fails.
        parameters: of the sketch, by name; also what a sample needs to know of its values.
    """

    kind: Kind
    columns: tuple[str, ...]
    pf: float
    parameters: tuple[tuple[str, float], ...] = ()

    def __getitem__(self, name: str) -> float:
        """Return a parameter."""
        return dict(self.parameters)[name]

    def absent_error(self, rate: float) -> float:
        """Return the half width around 0 of a group without a row: no record of it is in the sample.

        Of a count or a sum (`bounds.sampled_sum_error` of an empty sample); it fails with `pf`, as that of a row does.

        Args:
            rate: of the sample, above 0 and at most 1.

        Raises:
            SignedError: it is neither a sampled count nor a sampled sum, or the rate is out of range.
        """
        if self.kind not in ("sampled count", "sampled sum"):
            raise SignedError(f"{self.kind}: nothing is known of a group without a row; a sampled count or sum is 0")
        if not 0 < rate <= 1:
            raise SignedError(f"rate={rate}: give the sample's, more than 0 and at most 1")
        return float(sampled_sum_error(0.0, rate, dict(self.parameters).get("most", 1.0), self.pf))


def approx_distinct(*columns: str, eps: float = EPS, pf: float = PF, once: bool = False) -> Approximation:
    """Count the different values of a column, or of several; records with a null in one of them take no part.

    By HyperLogLog, which cannot take a value out. With `once` by theta sketches, which can, where a value is inserted
    at most once in each group: the values that were retracted are taken off those that were inserted.

    Args:
        columns: at least one.
        eps: largest error, as a share of the result; with `once` of all values that were ever inserted.
        pf: probability that it is larger.
        once: whether each value is inserted at most once in a group.

    Raises:
        SignedError: no sketch is as good as that.
    """
    _check("approx_distinct", columns, eps, pf)
    if not once:
        precision = _sized("approx_distinct", lambda: hyperloglog_precision(eps / (1 + eps), pf))
        return Approximation("distinct", columns, pf, (("precision", precision),))
    log_k = _sized("approx_distinct", lambda: difference_size(eps, pf))
    return Approximation("remaining", columns, pf, (("log_k", log_k),))


def approx_quantile(column: str, q: float, eps: float = EPS, pf: float = PF) -> Approximation:
    """Find the value below which a share q of a column's values lies, by a KLL sketch.

    Nulls and NaN take no part.

    Args:
        column: of whole numbers, or of numbers that a double is good enough for.
        q: share, above 0 and below 1.
        eps: largest error of the rank, as a share of all values.
        pf: probability that it is larger.

    Raises:
        SignedError: no sketch is as good as that.
    """
    _check("approx_quantile", (column,), eps, pf)
    try:
        check_share("q", q)
    except ValueError as error:
        raise SignedError(f"approx_quantile: {error}; for the ends take min_of and max_of") from None
    return Approximation(
        "quantile", (column,), pf, (("k", _sized("approx_quantile", lambda: kll_size(eps, pf))), ("q", q))
    )


def approx_count(*columns: str, eps: float = 0.001, pf: float = PF) -> Approximation:
    """Count how often each value of a column, or of several, comes, by a count-min sketch; `frequency` asks it.

    It takes retractions while nothing is retracted that was not inserted. Records with a null take no part.

    Args:
        columns: at least one.
        eps: most that a count is too high, as a share of all records of the group.
        pf: probability that it is more.

    Raises:
        SignedError: eps or pf is no share.
    """
    _check("approx_count", columns, eps, pf)
    width, depth = count_min_size(eps, pf)
    return Approximation("count", columns, pf, (("width", width), ("depth", depth)))


def sampled_count(pf: float = PF) -> Approximation:
    """Count the records that a sample stands for."""
    _check("sampled_count", ("",), 0.5, pf)
    return Approximation("sampled count", (), pf)


def sampled_sum(column: str, most: float, pf: float = PF) -> Approximation:
    """Add up a column of the records that a sample stands for.

    Args:
        column: of numbers; nulls take no part.
        most: what no value exceeds, whatever its sign; one in the sample that does stops the query.
        pf: probability that the error is larger.

    Raises:
        SignedError: `most` is not above 0.
    """
    _check("sampled_sum", (column,), 0.5, pf)
    if not 0 < most < math.inf:
        raise SignedError(f"sampled_sum({column!r}, most={most}): give a number above 0 that no value exceeds")
    return Approximation("sampled sum", (column,), pf, (("most", most),))


def sampled_mean(column: str, low: float, high: float, pf: float = PF) -> Approximation:
    """Average a column of the records that a sample stands for.

    Args:
        column: of numbers; nulls take no part.
        low: least possible value; one in the sample that is beyond stops the query.
        high: greatest possible value.
        pf: probability that the error is larger.

    Raises:
        SignedError: low is not below high.
    """
    _check("sampled_mean", (column,), 0.5, pf)
    if not -math.inf < low < high < math.inf:
        raise SignedError(f"sampled_mean({column!r}, {low}, {high}): give the least and the greatest possible value")
    return Approximation("sampled mean", (column,), pf, (("low", low), ("high", high)))


def check_columns(one: Approximation, schema: StructType) -> DataType | None:
    """Return the type of the first column, None if there is none.

    Raises:
        SignedError: one is missing, or not of numbers where it has to be.
    """
    from pyspark.sql import types as T

    if missing := sorted({*one.columns} - {*schema.names}):
        raise SignedError(f"columns {missing} of {one.kind} are unknown: the records have {schema.names}")
    its = schema[one.columns[0]].dataType if one.columns else None
    if one.kind in ("quantile", "sampled sum", "sampled mean") and not isinstance(its, T.NumericType):
        raise SignedError(f"{one.kind} of {one.columns[0]!r}, {its.simpleString() if its else None}: cast it")
    return its


def _check(name: str, columns: tuple[str, ...], eps: float, pf: float) -> None:
    if not columns:
        raise SignedError(f"{name}(): name a column or more")
    try:
        check_share("eps", eps), check_share("pf", pf)
    except ValueError as error:
        raise SignedError(f"{name}: {error}") from None


def _sized(name: str, size: Callable[[], int]) -> int:
    try:
        return size()
    except ValueError as error:
        raise SignedError(f"{name}: {error}") from None
