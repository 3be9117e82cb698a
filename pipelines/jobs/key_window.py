"""The second managed job: events per key in windows of 10 s, JVM only.

`python -m pipelines.jobs.key_window --run-dir DIR [--no-agent]`. The windows tumble over the moment of production;
every change of a count goes to `windows` under the key `<key>@<begin of the window, epoch seconds>`: the last record of
a key holds. The service time per record is a sleep in the JVM.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pipelines.jobs.event_columns import event_text, with_event
from pipelines.jobs.launch import Launch
from pipelines.jobs.running import run_job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

JOB = "key_window"
SERVICE_MS = 2  # service time of each event, wall ms
WINDOW = "10 seconds"
WATERMARK_DELAY = "60 seconds"
"""How long a window waits for more: longer than a broker may be away while its producers hold records back."""


def validate_events(events: DataFrame) -> DataFrame:
    """Decode and validate Kafka records of events as Spark columns; nothing runs before the query does.

    Accepted is UTF-8 JSON with `seq` (whole, 0 to 2**40), `time` (epoch seconds, at most 300 s after the record's
    timestamp) and `key` (text of 1 to 200 characters; a number is taken as text).

    Args:
        events: columns of Spark's Kafka source (topic, partition, offset, value, timestamp).

    Returns:
        Columns `at` (timestamp of production, the batch's time at the latest), `key` (null if refused) and `rejected`
        (JSON of a `Reject` for the topic `rejects`; null if accepted).
    """
    from pyspark.sql import functions as F

    rejected = F.to_json(F.struct(
        "topic", "partition", "offset", F.lit(JOB).alias("by"), "reason",
        F.substring(F.coalesce(event_text(), F.lit("")), 1, 2000).alias("value"),
        (F.unix_micros(F.current_timestamp()) / 1e6).alias("wall_time"), F.lit(1).alias("schema"),
    ))  # fmt: skip
    return with_event(events).select(
        # A stamp from the future would close every window before its time; the batch's own time bounds it.
        F.least("timestamp", F.current_timestamp()).alias("at"),
        F.when(F.col("reason").isNull(), F.col("event.key")).alias("key"),
        F.when(F.col("reason").isNotNull(), rejected).alias("rejected"),
    )


def count_per_window(events: DataFrame) -> DataFrame:
    """Count events per key and window of 10 s; return the counts, and the refused events, as records for Kafka.

    Each event also sleeps SERVICE_MS (2 ms) in the JVM, and its Spark metrics "events" hold the numbers `seen` and
    `rejected`. A window is kept until the newest production is 60 s past its end. A refused event is sent once.

    Args:
        events: columns of Spark's Kafka source.

    Returns:
        Columns topic ("windows" or "rejects"), key (`<key>@<begin, epoch seconds>`, or "events") and value (JSON of
        key, begin and n, the number of events so far; or of a `Reject`).
    """
    from pyspark.sql import functions as F

    seen, rejected = F.count(F.lit(1)).alias("seen"), F.count_if(F.col("rejected").isNotNull()).alias("rejected")
    sleep = F.reflect(F.lit("java.lang.Thread"), F.lit("sleep"), F.lit(SERVICE_MS).cast("long"))
    counts = (
        validate_events(events)
        .observe("events", seen, rejected)
        .withColumn("served", sleep)
        .where("served IS NULL OR served IS NOT NULL")  # whoever does not use the answer does not wait for it
        .withWatermark("at", WATERMARK_DELAY)
        .groupBy(F.window("at", WINDOW), "key", "rejected")
        .agg(F.count(F.lit(1)).alias("n"))
        .withColumn("begin", F.unix_timestamp("window.start"))
    )
    good = F.col("rejected").isNull()
    return counts.select(
        F.when(good, "windows").otherwise("rejects").alias("topic"),
        F.when(good, F.concat_ws("@", "key", "begin")).otherwise("events").alias("key"),
        F.coalesce("rejected", F.to_json(F.struct("key", "begin", "n"))).alias("value"),
    )


def start_query(launch: Launch) -> StreamingQuery:
    """Start the job's query: from `events` through `count_per_window` to Kafka; returns while it runs.

    Raises:
        BrokerError, SettingsError, KeyError: as `Launch.events`.
    """
    return launch.to_kafka(count_per_window(launch.events()), topic="windows")


if __name__ == "__main__":
    sys.exit(run_job(JOB, start_query, topics=("events", "windows")))
