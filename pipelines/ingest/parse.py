"""Records of a topic as columns, judged by the messages' own reader, so that the lake takes what live readers take."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

from pipelines.ingest.columns import columns
from pipelines.ingest.quality import QualityRule
from tidecast.messages import FUTURE_S, MessageError, keyed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_OLD_S = 30 * 86_400.0


def rules(now: float) -> list[QualityRule]:
    """What keeps a parsed row out of the lake; of severity warning: what is only counted."""
    return [QualityRule("problem"), QualityRule("wall_time", (now - _OLD_S, now + FUTURE_S), severity="warning")]


def parsed(records: DataFrame, kind: type, now: float) -> DataFrame:
    """Kafka's records with the columns of a message class, as `tidecast.messages.keyed` reads them at a wall time.

    Adds to them kafka_partition, kafka_offset, kafka_key, raw (the bytes as they came) and problem: null, or why the
    record cannot be accepted, and then the other columns are null.
    """
    from pyspark.sql import functions as F

    ddl = ", ".join(f"`{name}` {spark}" for name, spark in columns(kind).items())
    return (
        records.withColumn("judged", _judged(kind, now))
        .withColumn("m", F.from_json("judged.text", ddl))
        .select(
            F.col("partition").alias("kafka_partition"),
            F.col("offset").alias("kafka_offset"),
            F.expr("make_valid_utf8(cast(key AS string))").alias("kafka_key"),
            F.col("value").alias("raw"),
            "m.*",
            "judged.problem",
        )
    )


def stored(rows: DataFrame, kind: type, partition: str) -> DataFrame:
    """What the lake keeps of good rows: the message, its event hour, and where it came from."""
    from pyspark.sql import functions as F

    # Without a zone, so that the session's cannot move an hour.
    hour = (
        "date_format(TIMESTAMP_NTZ'1970-01-01 00:00:00' + make_dt_interval(0, CAST(floor(time / 3600) AS int)), "
        "\"yyyy-MM-dd'T'HH\")"
    )
    return rows.select(
        *columns(kind),
        F.expr(hour).alias("event_hour"),
        F.lit(partition).alias("ingest_partition"),
        "kafka_partition",
        "kafka_offset",
    )


def quarantined(rows: DataFrame, topic: str, partition: str) -> DataFrame:
    """What the quarantine keeps of bad rows: the bytes as they came, where they came from, and the reasons."""
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

    def judge(key: bytearray | None, value: bytearray | None) -> tuple[str | None, str | None]:
        try:
            name = None if key is None else key.decode("utf-8", "replace")
            return json.dumps(dataclasses.asdict(keyed(kind, name, value, now))), None
        except MessageError as error:
            return None, str(error)

    return F.udf(judge, "text string, problem string", useArrow=False)("key", "value")
