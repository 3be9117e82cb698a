"""Records of a topic as columns, with what is wrong with each in words; as strict as `tidecast.messages.decode`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.ingest.columns import Column, columns
from tidecast.messages import Forecast, MetricSample

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame

PROBLEMS = ("problem", "sanity")
"""Columns that are null, or say why a record cannot be read or contradicts itself."""
_VARIANT = {"str": "STRING", "list[str]": "ARRAY<STRING>", "dict[str, Any]": "OBJECT"}
_JSON = {"allowSingleQuotes": "false"}
_OPTIONS = {**_JSON, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": "_corrupt"}


def parsed(records: DataFrame, kind: type) -> DataFrame:
    """Kafka's records with the columns of a message class.

    Adds to them kafka_partition, kafka_offset, kafka_key, raw (the bytes as they came) and the problem columns.
    """
    from pyspark.sql import functions as F

    fields = columns(kind)
    ddl = ", ".join(f"`{c.name}` {c.spark}" for c in fields) + ", _corrupt string"
    text = records.select(
        F.col("partition").alias("kafka_partition"),
        F.col("offset").alias("kafka_offset"),
        F.expr("make_valid_utf8(cast(key AS string))").alias("kafka_key"),
        F.col("value").alias("raw"),
        F.expr("make_valid_utf8(cast(value AS string))").alias("text"),
    )
    read = text.select(
        "*",
        F.from_json("text", ddl, _OPTIONS).alias("m"),
        F.expr("try_parse_json(text)").alias("variant"),
        F.json_object_keys("text").alias("keys"),
        # from_json takes the first of several values and says nothing of the others.
        F.size(F.from_json(F.concat(F.lit("["), "text", F.lit("]")), "array<string>", _JSON)).alias("values"),
    )
    full = read.select("*", *[_filled(c).alias(c.name) for c in fields], _problem(fields).alias("problem"))
    return full.select(
        "kafka_partition",
        "kafka_offset",
        "kafka_key",
        "raw",
        *[c.name for c in fields],
        "problem",
        _sanity(kind).alias("sanity"),
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
        *[c.name for c in columns(kind)],
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


def _filled(column: Column) -> Expression:
    from pyspark.sql import functions as F

    value = F.col(f"m.{column.name}")
    return value if column.default is None else F.coalesce(value, F.lit(column.default))


def _problem(fields: list[Column]) -> Expression:
    """Why a record is not a message of its kind; null if it is one."""
    from pyspark.sql import functions as F

    names = F.array(*[F.lit(c.name) for c in fields])
    unknown = F.array_except("keys", names)
    mistyped = F.concat_ws("; ", *[_mistyped(c) for c in fields])
    return (
        F.when(F.col("text").isNull() | (F.trim("text") == ""), "an empty record")
        .when((F.col("values") != 1) | F.col("values").isNull(), "not one JSON object")
        .when(~F.col("text").rlike(r"^\s*\{"), "not a JSON object")
        .when(mistyped != "", mistyped)
        .when(F.col("m._corrupt").isNotNull(), "not JSON, or a field of another type")
        .when(F.col("variant").isNull(), "not strict JSON: NaN, Infinity or a field twice")
        .when(F.size(unknown) > 0, F.concat(F.lit("unknown field "), F.concat_ws(", ", unknown)))
    )


def _mistyped(column: Column) -> Expression:
    """`field=value: type is expected`, null where the type is right or the field is missing."""
    from pyspark.sql import functions as F

    seen = F.get_json_object("text", f"$.{column.name}")
    wanted = _VARIANT.get(column.hint)
    if wanted is None:
        wrong = F.col("m._corrupt").isNotNull() & F.col(f"m.{column.name}").isNull() & seen.isNotNull()
    else:
        # from_json turns numbers and objects into text where text is wanted.
        found = F.expr(f"schema_of_variant(variant_get(variant, '$.{column.name}', 'variant'))")
        wrong = ~(found.startswith(wanted) | found.isin("VOID", "ARRAY<VOID>"))
    words = f"{column.hint.replace('dict[str, Any]', 'object').replace('str', 'text')} is expected"
    return F.when(wrong, F.concat(F.lit(f"{column.name}="), F.substring(seen, 1, 60), F.lit(f": {words}")))


def _sanity(kind: type) -> Expression:
    """Why the fields of a record contradict each other; null if they do not."""
    from pyspark.sql import functions as F

    if kind is MetricSample:
        silent = (F.col("kind") == "interval") & F.col("arrival_rps").isNull()
        return F.when(silent, "arrival_rps is missing from an interval")
    if kind is Forecast:
        rising = "size(row) = size(levels) AND forall(row, v -> v >= 0 AND v <= 1e15) AND array_sort(row) = row"
        sane = F.expr(
            f"size(levels) > 0 AND size(quantiles) > 0 AND forall(quantiles, row -> coalesce({rising}, false))"
        )
        wrong = F.col("quantiles").isNotNull() & F.col("levels").isNotNull() & ~sane
        return F.when(
            wrong, "quantiles: one finite number per level that rises from 0 upwards is expected in every step"
        )
    return F.lit(None).cast("string")
