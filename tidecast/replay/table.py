"""A table of records with the columns of Spark's Kafka source: what a lake keeps of a topic, Delta or Parquet."""

from __future__ import annotations

from functools import reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING

from tidecast.orders import ReplayOrder

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

COLUMNS = {
    "key": "binary", "value": "binary", "topic": "string", "partition": "int", "offset": "bigint",
    "timestamp": "timestamp",
}  # fmt: skip
"""Columns that are read, and their types as Spark's Kafka source has them; others are left out."""


class RecordTableError(ValueError):
    """A table that cannot stand for a topic; the message names it, what is wrong, and the remedy."""


def read_table(spark: SparkSession, table: str) -> DataFrame:
    """Return a table's records, with the columns of Spark's Kafka source; nothing is read of them yet.

    Args:
        spark: with Delta, if the table is one.
        table: absolute path of a folder.

    Raises:
        RecordTableError: there is none, it cannot be read, or columns are missing or of another type.
    """
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as F

    path = Path(table)
    if not path.is_absolute():
        raise RecordTableError(f"table {table!r}: give its absolute path; the job's driver reads it, not this folder")
    if not path.is_dir():
        raise RecordTableError(f"{table} is no folder: give the path of a Delta or Parquet table")
    kind = "delta" if (path / "_delta_log").is_dir() else "parquet"
    try:
        found = spark.read.format(kind).load(table)
    except AnalysisException as error:
        raise RecordTableError(f"{table} cannot be read as {kind} ({str(error)[:200]})") from None
    types = {field.name: field.dataType.simpleString() for field in found.schema}
    if wrong := {name: types.get(name, "missing") for name, its in COLUMNS.items() if types.get(name) != its}:
        said = ", ".join(f"{name} {its} ({COLUMNS[name]} is expected)" for name, its in wrong.items())
        raise RecordTableError(
            f"{table} has not the columns of Spark's Kafka source: {said}. Select and cast them into another table"
        )
    return found.select(*COLUMNS, F.lit(0).alias("timestampType"))


def in_range(order: ReplayOrder) -> Column:
    """Return the condition that a record's offset lies in an order's range."""
    ends = order.past
    return reduce(or_, (_of(place, begin, ends[place]) for place, begin in sorted(order.first.items())))


def _of(place: tuple[str, int], begin: int, end: int) -> Column:
    from pyspark.sql import functions as F

    topic, partition = place
    return (F.col("topic") == topic) & (F.col("partition") == partition) & F.col("offset").between(begin, end - 1)
