"""Events as Spark columns: decoded and judged without Python, by the rules of `events.decode_event`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.jobs.events import FUTURE_S, MAX_KEY, MAX_SEQ

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def event_text() -> Column:
    """Return the column of a record's value as text; invalid bytes are replaced."""
    from pyspark.sql import functions as F

    return F.make_valid_utf8(F.col("value").cast("string"))


def with_event(events: DataFrame) -> DataFrame:
    """Add what a record says, and why it is refused.

    Args:
        events: with `value` (JSON, bytes) and `timestamp` (of the record), as of Spark's Kafka source.

    Returns:
        Also `event` (struct of seq, time and key) and `reason` (null if it is accepted).
    """
    from pyspark.sql import functions as F

    event = F.from_json(event_text(), "seq LONG, time DOUBLE, key STRING", {"mode": "PERMISSIVE"})
    return events.withColumn("event", event).withColumn("reason", _reason())


def _reason() -> Column:
    """Why an event is refused, null if it is not: the first rule that does not hold."""
    from pyspark.sql import functions as F

    seq, time, key = F.col("event.seq"), F.col("event.time"), F.col("event.key")
    rules = (
        (F.is_valid_utf8(F.col("value").cast("string")), "not JSON: not UTF-8, or nothing at all"),
        (seq.between(0, MAX_SEQ), f"seq: a whole number from 0 to {MAX_SEQ} is expected"),
        ((time >= 0) & ~F.isnan(time), "time: epoch seconds are expected"),
        (time <= F.col("timestamp").cast("double") + FUTURE_S,
         "time lies ahead of its production; set the sender's clock"),
        (F.length(key).between(1, MAX_KEY), f"key: text of 1 to {MAX_KEY} characters is expected"),
    )  # fmt: skip
    return F.coalesce(*(F.when(~F.coalesce(holds, F.lit(False)), why) for holds, why in rules))
