"""Times in the records of a placed job: of its sources, as they come, and from query to query, by the microsecond."""

import json
from datetime import UTC, datetime

import pytest

from pipelines.placement.frames import decoded, encoded

pytestmark = pytest.mark.spark
COLUMNS = "at timestamp, local timestamp_ntz"


def values_of(spark, *values):
    return spark.createDataFrame([(one.encode(),) for one in values], "value binary")


def read(spark, *values):
    """Of each record the microseconds since 1970, and the local time."""
    frame = spark.createDataFrame([], COLUMNS)
    found = decoded(values_of(spark, *values), frame.schema).selectExpr("unix_micros(at)", "string(local)").collect()
    return [tuple(row) for row in found]


def test_what_a_query_writes_the_next_one_reads_by_the_microsecond(spark):
    one = "timestamp'2026-03-01 12:00:00.123456Z' AS at, timestamp_ntz'2026-03-01 12:00:00.123456' AS local"
    written = encoded(spark.sql(f"SELECT {one}"), "counts").collect()[0].value
    assert json.loads(written) == {"at": "2026-03-01T12:00:00.123456Z", "local": "2026-03-01T12:00:00.123456"}
    at = int(datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp()) * 10**6 + 123456
    assert read(spark, written) == [(at, "2026-03-01 12:00:00.123456")]


def test_a_source_s_times_may_have_any_number_of_digits(spark):
    at, digits = int(datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp()) * 10**6, ["", ".5", ".123", ".123456789"]
    values = [json.dumps({name: f"2026-03-01T12:00:00{one}{zone}" for name, zone in (("at", "Z"), ("local", ""))})
              for one in digits]  # fmt: skip
    assert [found for found, _ in read(spark, *values)] == [at, at + 500_000, at + 123_000, at + 123_456]
    assert [local[len("2026-03-01 12:00:00") :] for _, local in read(spark, *values)] == ["", ".5", ".123", ".123456"]
