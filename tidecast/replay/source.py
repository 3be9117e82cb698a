"""The range of a replay as a streaming DataFrame of Spark's own Kafka source."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from tidecast.orders import ReplayOrder

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


def replay_stream(spark: SparkSession, order: ReplayOrder, options: Mapping[str, str]) -> DataFrame:
    """Return the order's range as a stream, columns as Spark's Kafka source has them; it begins with small batches.

    Records that were appended since lie behind the range's end and are left out. A range whose first records the topic
    has dropped since makes the query fail, so that no replay is published that lacks some.

    Args:
        spark: the session of the live query.
        order: what is to be read.
        options: of the source beside its range: broker and security, as the live query's.
    """
    starts, ends = order.first, order.past
    topics = {topic: sorted(part for name, part in starts if name == topic) for topic, _ in sorted(starts)}
    offsets = {topic: {str(part): starts[topic, part] for part in parts} for topic, parts in topics.items()}
    stream = (
        spark.readStream.format("kafka").options(**options)
        .option("assign", json.dumps(topics)).option("startingOffsets", json.dumps(offsets))
        .option("failOnDataLoss", "true").option("maxOffsetsPerTrigger", str(len(starts))).load()
    )  # fmt: skip
    return stream.where(reduce(or_, (_within(place, end) for place, end in sorted(ends.items()))))


def _within(place: tuple[str, int], end: int) -> Column:
    from pyspark.sql import functions as F

    topic, partition = place
    return (F.col("topic") == topic) & (F.col("partition") == partition) & (F.col("offset") < end)
