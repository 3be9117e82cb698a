"""Counts per key and window, as a chain's results have them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

WINDOW_S, DELAY_S = 10, 20
"""Length of a window, and for how long it takes records that come late."""


def count_per_window(records: DataFrame, *more: Column) -> DataFrame:
    """Return the records (`n`) of each key and window, and the sum of their numbers; the newest of a key holds.

    Args:
        records: with columns seq, at and key.
        more: aggregates beside these.

    Returns:
        Columns key (`KEY@BEGIN`), begin (epoch seconds), n, seq_sum, and `more`.
    """
    from pyspark.sql import functions as F

    windows = records.withWatermark("at", f"{DELAY_S} seconds").groupBy(F.window("at", f"{WINDOW_S} seconds"), "key")
    counts = windows.agg(F.count(F.lit(1)).alias("n"), F.sum("seq").alias("seq_sum"), *more)
    begin = F.col("window.start").cast("long")
    key = F.concat_ws("@", "key", begin.cast("string")).alias("key")
    return counts.select(key, begin.alias("begin"), *counts.columns[2:])


def window_key(key: object, at: float) -> str:
    """Return the key of the result at which a record counts."""
    return f"{key}@{int(at // WINDOW_S) * WINDOW_S}"


def end_of(key: str) -> int:
    """Return when the window of a result's key ends, epoch seconds."""
    return int(key.rpartition("@")[2]) + WINDOW_S
