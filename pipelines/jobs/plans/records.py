"""Signed events: how a plan gets them from Kafka's records, as a table or as a stream.

Beside an event's fields there may be `sign`: -1 takes back the event of the same seq, time and key, 1 (or none)
inserts it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.jobs.event_columns import event_text, with_event

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tidecast.signed import SignedFrame

DELAY_MS = 3_600_000
"""How far behind the newest event time (trace time) an event is taken: the load's late ones are 36 minutes behind."""


def signed_events(
    records: DataFrame, name: str = "events", between: tuple[int, int] | None = None
) -> SignedFrame:  # fmt: skip
    """Return the valid events under their keys, with the column `seq`; the refused are counted.

    Spark's metrics of this name hold the numbers `seen`, `late` (0: the operators count them) and `rejected`.

    Args:
        records: with `value` (bytes) and `timestamp`, as of Spark's Kafka source; a table or a stream.
        name: of the metrics, one for each source of a query.
        between: begin and end of a range of event time, epoch ms: no other events are taken, and none of them is late,
            in whatever order they come. None: all are, up to DELAY_MS late.
    """
    from pyspark.sql import functions as F

    from tidecast.signed import signed

    sign = F.coalesce(F.get_json_object(event_text(), "$.sign"), F.lit("1"))
    wrong = F.when(~sign.isin("1", "-1"), "sign: 1 or -1 is expected")
    read = with_event(records).withColumn("reason", F.coalesce("reason", wrong))
    if read.isStreaming:
        rejected = F.count_if(F.col("reason").isNotNull()).alias("rejected")
        read = read.observe(name, F.count(F.lit(1)).alias("seen"), F.lit(0).alias("late"), rejected)
    rows = read.where("reason IS NULL").select(
        F.col("event.key").alias("key"),
        F.col("event.seq").alias("seq"),
        F.round(F.col("event.time") * 1000).cast("bigint").alias("at"),
        F.unix_millis("timestamp").alias("came"),
        sign.cast("int").alias("sign"),
    )
    delay_ms = DELAY_MS
    if between is not None:  # the watermark stays before the begin
        begin_ms, end_ms = between
        rows, delay_ms = rows.where((F.col("at") >= begin_ms) & (F.col("at") < end_ms)), end_ms - begin_ms
    return signed(rows, "at", ["key"], mult="sign", ingested="came", delay_ms=delay_ms).select("seq")
