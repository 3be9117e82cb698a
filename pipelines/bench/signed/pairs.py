"""Each operator twice: as a plain DataFrame job and as a signed plan, with the same results on appended records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tidecast.signed import SignedFrame, count, max_of, min_of, quantile_of, signed, sum_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DELAY_MS, WINDOW_MS, BOUND_MS, GAP_MS = 60_000, 10_000, 20, 100
_DELAY, _WINDOW = f"{DELAY_MS} milliseconds", f"{WINDOW_MS} milliseconds"

Query = Callable[["DataFrame"], "DataFrame"]
"""From a stream with columns id (bigint), key (bigint), x (bigint), at (ms) to what a sink gets."""
Work = Literal["passing", "telling apart", "joining", "in Python"]
"""What is done with a record: Spark takes it once, looks it up in its state, joins it there, or Python folds it."""


@dataclass(frozen=True)
class Pair:
    """An operator in both forms.

    Attributes:
        name: of the operator.
        plain: the DataFrame job.
        signed: the plan.
        work: of the plan with a record.
        plain_mode, signed_mode: output modes.
    """

    name: str
    plain: Query
    signed: Query
    work: Work = "passing"
    plain_mode: str = "append"
    signed_mode: str = "append"

    @property
    def own(self) -> bool:
        """Whether Spark's own operators do the plan's work; else a stateful operator in Python does."""
        return self.work != "in Python"


def frame_of(df: DataFrame) -> SignedFrame:
    """Return the records as signed ones under their key."""
    return signed(df, "at", ["key"], delay_ms=DELAY_MS).select("id", "x")


def _timed(df: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    return df.withColumn("time", F.timestamp_millis("at")).withWatermark("time", _DELAY)


def _plain_records(df: DataFrame) -> DataFrame:
    return _timed(df).where("x % 10 != 3").selectExpr("key", "id", "x * 2 AS x", "at", "time")


def _signed_records(df: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    return frame_of(df).filter("x % 10 != 3").select("id", (F.col("x") * 2).alias("x")).changes


def _plain_union(df: DataFrame) -> DataFrame:
    one = _timed(df)
    return one.where("x % 2 = 0").unionByName(one.where("x % 2 = 1"))


def _signed_union(df: DataFrame) -> DataFrame:
    one = frame_of(df)
    return one.filter("x % 2 = 0").union(one.filter("x % 2 = 1")).changes


def _plain_windows(*aggregates: str) -> Query:
    def query(df: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F

        groups = _timed(df).groupBy(F.window("time", _WINDOW), "key")
        return groups.agg(*(F.expr(one) for one in aggregates))

    return query


def _plain_totals(df: DataFrame) -> DataFrame:
    return df.groupBy("key").agg({"id": "count", "x": "sum"})


def _plain_join(df: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    right = _timed(df.where("id % 2 = 1")).select("key", F.col("x").alias("other"), F.col("time").alias("then"))
    right = right.withColumnRenamed("key", "of")
    near = F.expr(
        f"key = of AND then >= time - INTERVAL {BOUND_MS} MILLISECONDS"
        f" AND then <= time + INTERVAL {BOUND_MS} MILLISECONDS"
    )
    return _timed(df.where("id % 2 = 0")).join(right, near)


def _signed_join(df: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    right = frame_of(df.where("id % 2 = 1")).select(F.col("x").alias("other"))
    return frame_of(df.where("id % 2 = 0")).join(right, BOUND_MS).changes


def _plain_distinct(df: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    # Its own distinct() tells a value when the window is over; this one tells it when it comes, as the plan does.
    return _timed(df).select(F.window("time", _WINDOW).alias("window"), "key", "x").dropDuplicates()


def _plain_sessions(df: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    # Spark's sessions merge where they touch, a signed plan's do not.
    return _timed(df).groupBy(F.session_window("time", f"{GAP_MS - 1} milliseconds"), "key").agg(F.count("id"))


PAIRS = (
    Pair("filter and select", _plain_records, _signed_records),
    Pair("union", _plain_union, _signed_union),
    Pair(
        "final sums in windows",
        _plain_windows("count(id)", "sum(x)"),
        lambda df: frame_of(df).window(WINDOW_MS).aggregate("final", n=count(), s=sum_of("x")).changes,
    ),
    Pair(
        "final least and greatest in windows",
        _plain_windows("min(x)", "max(x)"),
        lambda df: frame_of(df).window(WINDOW_MS).aggregate("final", lo=min_of("x"), hi=max_of("x")).changes,
    ),
    Pair(
        "distinct values in windows", _plain_distinct,
        lambda df: frame_of(df).select("x").window(WINDOW_MS).distinct().changes,
        "telling apart",
    ),
    Pair(
        "totals", _plain_totals, lambda df: frame_of(df).totals(n=count(), s=sum_of("x")), "passing", "update", "update"
    ),
    Pair("join with a bound", _plain_join, _signed_join, "joining"),
    Pair(
        "change log of sums",
        _plain_windows("count(id)", "sum(x)"),
        lambda df: frame_of(df).window(WINDOW_MS).aggregate(n=count(), s=sum_of("x")).changes,
        "in Python",
        "update",
    ),
    Pair(
        "least and greatest",
        _plain_windows("min(x)", "max(x)"),
        lambda df: frame_of(df).window(WINDOW_MS).aggregate(lo=min_of("x"), hi=max_of("x")).changes,
        "in Python",
        "update",
    ),
    Pair(
        "median",
        _plain_windows("percentile_disc(0.5) WITHIN GROUP (ORDER BY x)"),
        lambda df: frame_of(df).window(WINDOW_MS).aggregate(mid=quantile_of("x", 0.5)).changes,
        "in Python",
        "update",
    ),
    Pair(
        "sessions",
        _plain_sessions,
        lambda df: frame_of(df).select("id").sessions(GAP_MS).aggregate("final", n=count()).changes,
        "in Python",
    ),
)  # fmt: skip
"""All that is measured."""
