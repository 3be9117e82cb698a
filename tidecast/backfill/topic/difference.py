"""What a replay has counted against the newest records of a topic, key by key, read only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tidecast.backfill.spec import check_lengths
from tidecast.backfill.summary import Summary
from tidecast.backfill.topic.kept import window_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def newest_records(
    spark: SparkSession, topic: str, source: Mapping[str, str], window: str, begin_ms: int, end_ms: int
) -> DataFrame:  # fmt: skip
    """Return the newest record of each key of a topic whose window lies in a range: key, value and partition.

    All records of a key are in one partition, so that the one with the highest offset is the newest.

    Args:
        spark: a session with the Kafka connector.
        topic: name on the broker.
        source: options of the Kafka source: broker and security.
        window: pattern of the keys, see `window_of`; records under other keys are none of these results.
        begin_ms: of the range, event time.
        end_ms: likewise.
    """
    from pyspark.sql import functions as F

    records = (
        spark.read.format("kafka").options(**source).option("subscribe", topic)
        .option("startingOffsets", "earliest").option("endingOffsets", "latest").load()
    )  # fmt: skip
    start, end = window_of(window)
    rows = records.select(F.col("key").cast("string").alias("key"), "value", "partition", "offset")
    newest = F.max_by(F.struct("value", "partition"), "offset").alias("newest")
    found = rows.where((start >= begin_ms) & (end <= end_ms)).groupBy("key").agg(newest)
    return found.select("key", "newest.value", "newest.partition")


def differences(newest: DataFrame, kept: DataFrame) -> DataFrame:
    """Return every key that either side has a result for.

    Args:
        newest: key, value and partition, of the topic.
        kept: key and value, of the replay.

    Returns:
        Columns key, partition (null: none is there yet), old and new (bytes, null: no result) and kind (equal, differs,
        new, gone).
    """
    from pyspark.sql import functions as F

    replayed = kept.select(F.col("key").alias("_key"), F.col("value").alias("new"))
    live = newest.withColumnRenamed("value", "old")
    both = live.join(replayed, F.col("key") == F.col("_key"), "full_outer")
    there, again = F.col("old").isNotNull(), F.col("new").isNotNull()
    kind = (
        F.when(there & again, F.when(F.col("old") == F.col("new"), "equal").otherwise("differs"))
        .when(again, "new")
        .when(there, "gone")
    )
    found = both.select(F.coalesce("key", "_key").alias("key"), "partition", "old", "new", kind.alias("kind"))
    return found.where("kind IS NOT NULL")


def summarise(found: DataFrame, window: str) -> Summary:
    """Return differences in numbers; runs a Spark job.

    Args:
        found: as `differences` returns them.
        window: pattern of the keys, see `window_of`.

    Raises:
        BackfillError: what was replayed has windows of several lengths, as sessions are.
    """
    from pyspark.sql import functions as F

    kinds = ("differs", "new", "gone")
    start, end = window_of(window)
    replayed = F.when(F.col("new").isNotNull(), end - start)
    row: Any = found.agg(
        F.count(F.lit(1)).alias("windows"), *(F.count_if(F.col("kind") == kind).alias(kind) for kind in kinds),
        F.min(replayed).alias("shortest"), F.max(replayed).alias("longest"),
    ).collect()[0]  # fmt: skip
    check_lengths(row["shortest"], row["longest"])
    differs, new, gone = (int(row[kind]) for kind in kinds)
    return Summary(int(row["windows"]), differs, new, gone, changed=0, due=differs + new + gone)
