"""Aggregates of a table: the same results as a stream's change log comes to, by Spark's own aggregates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from tidecast.signed.columns import (
    END,
    END_OF_TIME,
    EVENT_TIME,
    INGESTION_TIME,
    MULT,
    NET,
    ORIGIN,
    origin_of_all,
    same_as,
)
from tidecast.signed.frame import FrameT
from tidecast.signed.reductions import Reduction, result_type
from tidecast.signed.stateful import OVER_ALL_TIME

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

MOST_DIGITS = 27
"""Of a decimal, up to which Spark's product with a sign (an int: eleven digits more, 38 at most) is exact."""


def reduce_table(
    frame: FrameT, group: tuple[str, ...], reductions: Mapping[str, Reduction], retracting: bool
) -> FrameT:  # fmt: skip
    """Return each group's result as an insertion, with the newest ingestion time of its records.

    Args:
        frame: a table.
        group: names of the columns that a result is one of.
        reductions: result columns by name.
        retracting: whether one of its records may take another one back.
    """
    from pyspark.sql import functions as F

    schema = frame.df.schema
    own = {name: one for name, one in reductions.items() if one.by_spark(retracting)}
    df = (
        frame.df.groupBy(*group)
        .agg(
            signed_count(retracting).alias(NET),
            F.max(INGESTION_TIME).alias(INGESTION_TIME),
            origin_of_all(),
            *(spark_aggregate(one, schema, retracting).alias(name) for name, one in own.items()),
        )
        .where(F.col(NET) > 0)
    )
    ordered = {name: one for name, one in reductions.items() if name not in own}
    for columns in dict.fromkeys(one.columns for one in ordered.values()):
        mine = {name: one for name, one in ordered.items() if one.columns == columns}
        df = _join_by_group(df, _ordered(frame.df, group, columns, mine, schema), group)
    # A group in which nothing is to be ranked has no row there.
    none = {name: F.array().cast(result_type(one, schema)) for name, one in ordered.items() if one.kind == "top"}
    made = [F.coalesce(name, none[name]).alias(name) if name in none else F.col(name) for name in reductions]
    time = F.col(END) - 1 if frame.windowed else F.lit(END_OF_TIME)
    df = df.select(*group, *made, INGESTION_TIME, F.lit(1).alias(MULT), ORIGIN, time.alias(EVENT_TIME))
    return replace(
        frame, df=df, clock="event", lateness_ms=0, unwindowable="" if frame.windowed else OVER_ALL_TIME
    )  # fmt: skip


def signed_count(retracting: bool) -> Column:
    """Return Spark's aggregate for the net of signed records: where none takes another one back, how many they are."""
    from pyspark.sql import functions as F

    return F.sum(F.col(MULT).cast("bigint")) if retracting else F.count(F.lit(1))


def spark_aggregate(reduction: Reduction, schema: StructType, retracting: bool) -> Column:
    """Return Spark's aggregate for a reduction of signed records: where all insert, the plain one.

    Args:
        reduction: count, sum or mean; where all insert, also min and max.
        schema: of the records.
        retracting: whether one of them may take another one back.
    """
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    if reduction.kind == "count":
        return signed_count(retracting)
    x, its = F.col(reduction.columns[0]), result_type(reduction, schema)
    if reduction.kind in ("min", "max"):
        return F.min(x) if reduction.kind == "min" else F.max(x)
    its_type = schema[reduction.columns[0]].dataType
    if reduction.kind == "mean" and isinstance(its_type, T.LongType):
        its_type = T.DecimalType(20, 0)  # a sum of such may be beyond 64 bits, though their mean is not
        x = x.cast(its_type)
    if not retracting:
        return F.sum(x).cast("double") / F.count(x) if reduction.kind == "mean" else F.sum(x).cast(its)
    # Of an int the least one has no opposite.
    signed = (x.cast("bigint") if isinstance(its_type, T.IntegralType) else x) * F.col(MULT)
    if isinstance(its_type, T.DecimalType) and its_type.precision > MOST_DIGITS:
        signed = F.when(F.col(MULT) < 0, -x).otherwise(x)
    many, total = F.sum(F.when(x.isNotNull(), F.col(MULT).cast("bigint"))), F.sum(signed)
    if reduction.kind == "mean":
        return F.when(many != 0, total.cast("double") / many)
    return F.when(many != 0, total).cast(its)


def _ordered(
    df: DataFrame, group: tuple[str, ...], columns: tuple[str, ...], mine: Mapping[str, Reduction], schema: StructType
) -> DataFrame:
    """Reductions of the same columns by order: of the rows whose net is above 0."""
    from pyspark.sql import functions as F

    there = F.lit(True)
    for column in columns:
        there = there & F.col(column).isNotNull()
    row = F.struct(*(F.col(column).alias(f"c{i}") for i, column in enumerate(columns)))
    nets = df.where(there).groupBy(*group, row.alias("_row")).agg(F.sum(MULT).alias(NET)).where(F.col(NET) > 0)
    extremes = {"min": F.min(F.col("_row")["c0"]), "max": F.max(F.col("_row")["c0"])}
    aggregates = [extremes[one.kind].alias(name) for name, one in mine.items() if one.kind in extremes]
    rest = {name: one for name, one in mine.items() if one.kind not in extremes}
    if rest:
        aggregates += [F.sort_array(F.collect_list(F.struct("_row", NET))).alias("_rows"), F.sum(NET).alias("_many")]
    made = nets.groupBy(*group).agg(*aggregates)
    columns_of = {name: _top(one, schema) if one.kind == "top" else _quantile(one) for name, one in rest.items()}
    return made.withColumns(columns_of).drop("_rows", "_many") if rest else made


def _top(one: Reduction, schema: StructType) -> Column:
    """The greatest of a group's rows, least first in `_rows`, each as often as its net says."""
    from pyspark.sql import functions as F

    def copies(of: Column) -> Column:
        return F.array_repeat(of["_row"], F.least(of[NET], F.lit(one.n)).cast("int"))

    return F.slice(F.flatten(F.transform(F.reverse("_rows"), copies)), 1, one.n).cast(result_type(one, schema))


def _quantile(one: Reduction) -> Column:
    """The value of rank ⌈q·n⌉ among the `_many` of a group: the first one up to which so many are there."""
    from pyspark.sql import functions as F

    up, down = one.share.numerator, one.share.denominator
    rank = F.expr(f"(_many * {up}L + {down - 1}L) div {down}L")
    rows = F.col("_rows")
    start = F.struct(F.lit(0).cast("bigint").alias("seen"), F.get(rows, F.lit(0)).alias("at"))

    def step(known: Column, row: Column) -> Column:
        following = F.struct((known["seen"] + row[NET]).alias("seen"), row.alias("at"))
        return F.when(known["seen"] >= rank, known).otherwise(following)

    return F.aggregate(rows, start, step)["at"]["_row"]["c0"]


def _join_by_group(df: DataFrame, other: DataFrame, group: tuple[str, ...]) -> DataFrame:
    """The columns of the other table, by group; renamed, because both come from one table."""
    on = {name: f"_of{i}" for i, name in enumerate(group)}
    return df.join(other.withColumnsRenamed(on), same_as(on), "left").drop(*on.values())
