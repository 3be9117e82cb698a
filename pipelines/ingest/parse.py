"""Records of a topic as columns, judged by the messages' own reader, so that the lake takes what live readers take."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

from pipelines.ingest.columns import spark_columns
from pipelines.ingest.quality import QualityRule
from tidecast.messages import FUTURE_S, MessageError, decode_keyed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_OLD_S = 30 * 86_400.0
_UNREAD = "_unread"
_TOO_LONG = "a number or a name too long for the lake: at most 1,000 digits and 50,000 letters are expected"


def quality_rules(now: float) -> list[QualityRule]:
    """Return the gate's rules: rows with a `problem` are refused, those of an unlikely `wall_time` only counted.

    Args:
        now: epoch seconds, wall time; from 30 days before it to `FUTURE_S` (300 s) after it is likely.
    """
    return [QualityRule("problem"), QualityRule("wall_time", (now - _OLD_S, now + FUTURE_S), "warning")]


def parse_records(records: DataFrame, kind: type, now: float) -> DataFrame:
    """Parse Kafka's records into the columns of a message class, as `tidecast.messages.decode_keyed` reads them.

    Args:
        records: columns partition, offset, key, value, timestamp, timestampType, as Spark's Kafka source gives them.
        kind: the message class.
        now: epoch seconds, wall time; a record from over 300 s after it is refused.

    Returns:
        Columns kafka_partition, kafka_offset, kafka_key, raw (the bytes as they came), those of the class, problem:
        null, or why the record cannot be accepted; then the columns of the class are null, or what could be read of it;
        ahead_s: null, or by how many seconds the record is ahead of `now`, where that alone is its problem; and
        stamped_s: epoch seconds of the broker's own stamp, null where the sender set it.

    Raises:
        TypeError: a field of the class has a type that no column type is known for.
        AnalysisException: a column of `records` is missing.
    """
    from pyspark.sql import functions as F

    columns = spark_columns(kind)
    ddl = ", ".join(f"`{name}` {spark}" for name, spark in {**columns, _UNREAD: "string"}.items())
    # Where Spark's own limits end a record it would leave out a field, or all of them, without a word.
    unread = F.when(F.col(f"m.{_UNREAD}").isNotNull(), F.lit(_TOO_LONG))
    return (
        records.withColumn("judged", _judged(kind, now))
        .withColumn("m", F.from_json("judged.text", ddl, {"columnNameOfCorruptRecord": _UNREAD}))
        .select(
            F.col("partition").alias("kafka_partition"),
            F.col("offset").alias("kafka_offset"),
            F.expr("make_valid_utf8(cast(key AS string))").alias("kafka_key"),
            F.col("value").alias("raw"),
            *(f"m.{name}" for name in columns),
            F.coalesce("judged.problem", unread).alias("problem"),
            "judged.ahead_s",
            F.when(F.col("timestampType") == 1, F.col("timestamp").cast("double")).alias("stamped_s"),
        )
    )


def select_stored(rows: DataFrame, kind: type, partition: str) -> DataFrame:
    """Select what the lake keeps of accepted rows.

    Args:
        rows: as `parse_records` returns them.
        kind: the message class.
        partition: name of the ingest partition.

    Returns:
        The columns of the class, event_hour (of the row's own `time`, `2014-10-22T04`, UTC), ingest_partition,
        kafka_partition and kafka_offset.
    """
    from pyspark.sql import functions as F

    # Without a zone, so that the session's cannot move an hour.
    hour = (
        "date_format(TIMESTAMP_NTZ'1970-01-01 00:00:00' + make_dt_interval(0, CAST(floor(time / 3600) AS int)), "
        "\"yyyy-MM-dd'T'HH\")"
    )
    return rows.select(
        *spark_columns(kind),
        F.expr(hour).alias("event_hour"),
        F.lit(partition).alias("ingest_partition"),
        "kafka_partition",
        "kafka_offset",
    )


def select_quarantined(rows: DataFrame, topic: str, partition: str) -> DataFrame:
    """Select what the quarantine keeps of refused rows.

    Returns:
        Columns topic, ingest_partition, kafka_partition, kafka_offset, kafka_key, raw (the bytes as they came), reasons
        (a list of texts).
    """
    from pyspark.sql import functions as F

    return rows.select(
        F.lit(topic).alias("topic"),
        F.lit(partition).alias("ingest_partition"),
        "kafka_partition",
        "kafka_offset",
        "kafka_key",
        "raw",
        "reasons",
    )


def _judged(kind: type, now: float) -> Any:
    """A function of Spark: the message as strict JSON with every field it has, or the problem."""
    from pyspark.sql import functions as F

    def judge(key: bytearray | None, value: bytearray | None) -> tuple[str | None, str | None, float | None]:
        name = None if key is None else key.decode("utf-8", "replace")
        try:
            return json.dumps(dataclasses.asdict(decode_keyed(kind, name, value, now))), None, None
        except MessageError as error:
            return None, str(error), seconds_ahead(kind, name, value, now)

    return F.udf(judge, "text string, problem string, ahead_s double", useArrow=False)("key", "value")


def seconds_ahead(kind: type, key: str | None, value: bytes | bytearray | None, now: float) -> float | None:
    """Return by how much a refused record is ahead of `now` (epoch seconds); None where that is not all of it."""
    try:
        message: Any = decode_keyed(kind, key, value)
    except MessageError:
        return None
    return float(max(message.wall_time, (getattr(message, "epoch", None) or 0) / 1000) - now)
