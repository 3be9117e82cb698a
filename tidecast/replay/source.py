"""The range of a replay as a streaming DataFrame, and what of it is computed again as a table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidecast.orders import ReplayOrder
from tidecast.replay.pace import WORTH
from tidecast.replay.staged import rows_at_once, staged_stream
from tidecast.replay.table import in_range, read_table

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


LATEST = -1
"""Spark's word for the end that a partition has when it is read."""


def replay_stream(
    spark: SparkSession, order: ReplayOrder, options: Mapping[str, str], folder: Path | None = None
) -> DataFrame:
    """Return the order's range as a stream, columns as Spark's Kafka source has them; it begins with small batches.

    Records that were appended since lie behind the range's end and are left out. A range whose first records the topic
    has dropped since makes the query fail, so that no replay is published that lacks some.

    Args:
        spark: the session of the live query.
        order: what is to be read.
        options: of the source beside its range: broker and security, as the live query's.
        folder: of the replay's own, into which the range of a table is copied.

    Raises:
        ValueError: the order reads a table, and no folder is given; or (RecordTableError) the table cannot be read.
    """
    if order.table:
        if folder is None:
            raise ValueError(f"replay {order.id} reads table {order.table}: give replay_stream a folder of its own")
        return staged_stream(spark, order, folder)
    starts, ends = places_read(order), order.past
    stream = (
        spark.readStream.format("kafka").options(**options)
        .option("assign", _assigned(starts)).option("startingOffsets", _offsets(starts))
        .option("failOnDataLoss", "true").option("maxOffsetsPerTrigger", str(WORTH * len(starts)))
    )  # fmt: skip
    if order.task_rows:
        stream = stream.option("maxRecordsPerPartition", str(order.task_rows))
    return stream.load().where(reduce(or_, (_within(place, ends[place]) for place in sorted(starts))))


def places_read(order: ReplayOrder) -> dict[tuple[str, int], int]:
    """Return the first offset of each partition that an order's stream reads: of those with a part of its range.

    Of one that is read Spark takes all that it holds by now, and each has its part of a batch by that.
    """
    ends = order.past
    return {place: at for place, at in order.first.items() if at < ends[place]} or order.first


def read_again(
    spark: SparkSession, order: ReplayOrder, options: Mapping[str, str], first_ms: int | None = None,
    ends: Mapping[tuple[str, int], int] | None = None,
) -> DataFrame:  # fmt: skip
    """Return the range and all that came since as a table: what live records of it came late is in it.

    Its tasks have few records, so that a core that live records need is soon theirs.

    Args:
        spark: the session of the live query.
        order: of the replay.
        options: as in `replay_stream`.
        first_ms: begin of the first window that is to be computed again; None: all of the range.
        ends: offset by (topic, partition) from which on no record is of the range (LATEST: that is not known), of all
            partitions that are there: those that were added since are read, too. None: none were.

    Raises:
        RecordTableError: the order's table cannot be read.
    """
    open_only = order.open_ms is not None and first_ms is not None and first_ms >= order.open_ms
    places = order.past if order.table else order.open_first if open_only else order.first
    if ends is not None:
        places = dict.fromkeys(ends, 0) | places
    until = "latest" if ends is None else _offsets({place: _until(ends[place], at) for place, at in places.items()})
    topic = (
        spark.read.format("kafka").options(**options)
        .option("assign", _assigned(places)).option("startingOffsets", _offsets(places))
        .option("endingOffsets", until).option("maxRecordsPerPartition", str(rows_at_once(order))).load()
    )  # fmt: skip
    if not order.table:
        return topic
    return (
        read_table(spark, order.table)
        .where(in_range(order))
        .unionByName(topic.select(*_COLUMNS))
        .dropDuplicates(["topic", "partition", "offset"])
    )


_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")


def _assigned(places: Mapping[tuple[str, int], int]) -> str:
    return json.dumps({topic: sorted(part for name, part in places if name == topic) for topic in _topics(places)})


def _offsets(places: Mapping[tuple[str, int], int]) -> str:
    by_topic: dict[str, Any] = {topic: {} for topic in _topics(places)}
    for (topic, part), at in sorted(places.items()):
        by_topic[topic][str(part)] = at
    return json.dumps(by_topic)


def _topics(places: Mapping[tuple[str, int], int]) -> list[str]:
    return sorted({topic for topic, _ in places})


def _until(end: int, start: int) -> int:
    return end if end == LATEST else max(end, start)


def _within(place: tuple[str, int], end: int) -> Column:
    from pyspark.sql import functions as F

    topic, partition = place
    return (F.col("topic") == topic) & (F.col("partition") == partition) & (F.col("offset") < end)
