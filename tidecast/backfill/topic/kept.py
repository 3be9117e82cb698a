"""Records that a replay has counted for a topic: which of them it keeps, and the newest of each key."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tidecast.backfill.kept import BATCH, keep_batch, kept_batches, kept_folder
from tidecast.backfill.room import refuse_full_disk
from tidecast.backfill.spec import BackfillError, Spec

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_SCHEMA = f"key string, value binary, {BATCH} bigint"


def keep(spec: Spec, place: Path, window: str) -> Callable[[DataFrame, int], None]:
    """Return what a replay gives to `foreachBatch`: it writes the results whose windows lie wholly in the range.

    The others are left out, because the replay may have seen a part of their records only. It raises BackfillError
    where the disk is full.

    Args:
        spec: of the replay, whose `table` is the topic.
        place: beside which its files lie.
        window: pattern of the records' keys, see `window_of`.
    """
    folder = kept_folder(place, spec.name)

    def take(batch: DataFrame, number: int) -> None:
        from pyspark.sql import functions as F

        start, end = window_of(window)
        none = F.raise_error(F.format_string("result under key %s: no window in it by the pattern", "key"))
        known = start.isNotNull() & end.isNotNull()
        inside = F.when(known, (start >= spec.begin) & (end <= spec.end)).otherwise(none)
        rows = batch.select(F.col("key").cast("string").alias("key"), F.col("value").cast("binary").alias("value"))
        with refuse_full_disk(spec, "written", place):
            keep_batch(rows.where(inside), folder, number, "json")

    return take


def kept_results(spark: SparkSession, folder: Path) -> DataFrame:
    """Return the newest result of each key that a replay has kept: columns key, value (bytes, null: none left)."""
    from pyspark.sql import functions as F

    batches = kept_batches(folder)
    rows = spark.read.schema(_SCHEMA).json(batches) if batches else spark.createDataFrame([], _SCHEMA)
    # A change log tells in one batch that a result is gone and which one came in its place.
    newest = F.struct(BATCH, F.col("value").isNotNull())
    return rows.groupBy("key").agg(F.max_by("value", newest).alias("value"))


def window_of(pattern: str) -> tuple[Column, Column]:
    """Return begin and end of the window that the column `key` names, ms of event time; null where it names none.

    Args:
        pattern: a regular expression of Java with two groups, begin and end.
    """
    from pyspark.sql import functions as F

    begin, end = (F.regexp_extract("key", pattern, group).try_cast("bigint") for group in (1, 2))
    return begin, end


def check_results(results: DataFrame) -> None:
    """Refuse what cannot be records of a topic.

    Raises:
        BackfillError: there are no columns key and value.
    """
    if missing := sorted({"key", "value"} - {*results.columns}):
        raise BackfillError(f"results of the replay's plan lack the columns {missing}: they have {results.columns}")
