"""One result per group: which of Spark's operators makes it, and the form that a sink merges by key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from tidecast.signed.columns import (
    CLOCK,
    DERIVED,
    END,
    EVENT_TIME,
    INGESTION_TIME,
    MULT,
    NET,
    SignedError,
    check_user_columns,
    one_zero,
    origin_of_all,
)
from tidecast.signed.frame import Frame, FrameT, check_whole
from tidecast.signed.reductions import Reduction, result_type
from tidecast.signed.stateful import observed, reduce_stream
from tidecast.signed.table import reduce_table, signed_count, spark_aggregate

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Emission = Literal["changelog", "final"]
VERSION = "_version"
"""How many records made a total (bigint): of two totals of a key the one with more is the newer one."""


def aggregate(frame: FrameT, reductions: Mapping[str, Reduction], emission: Emission, name: str) -> FrameT:
    """Return each group's result while its net is above 0, under its window's last ms.

    Args:
        frame: what comes, under a key or in windows.
        reductions: result columns by name.
        emission: `changelog` tells every change as it comes, `final` a result once its window is final, and
            corrections within the lateness after that.
        name: of the operator among the counts of late records; empty for a number.

    Raises:
        SignedError: a name or a type does not fit, or the operator has no meaning in this stream.
    """
    _check(frame, reductions, emission)
    retracting = frame.retracting
    frame = replace(frame, retracting=emission == "changelog" or frame.lateness_ms > 0)
    if not frame.streaming:
        return reduce_table(frame, frame.group, reductions, retracting)
    final = emission == "final"
    if final and _told_once(frame) and all(one.by_spark(retracting) for one in reductions.values()):
        return _by_spark(frame, frame.group, reductions, retracting, name)
    return reduce_stream(frame, frame.group, reductions, final, name)


def distinct(frame: FrameT, emission: Emission, name: str) -> FrameT:
    """Return each value once per group: there while its net is above 0."""
    _check(frame, {}, emission)
    group = (*frame.group, *frame.values)
    corrected, retracting = emission == "changelog" or frame.lateness_ms > 0, frame.retracting
    frame = replace(frame, retracting=retracting and corrected)
    if not frame.streaming:
        return reduce_table(frame, group, {}, retracting)
    final = emission == "final"
    if final and _told_once(frame):
        return _by_spark(frame, group, {}, retracting, name)
    if not final and not retracting and frame.clock == "window":
        return _first_of_each(frame, group)
    return reduce_stream(frame, group, {}, final, name)


def totals(frame: Frame, reductions: Mapping[str, Reduction]) -> DataFrame:
    """Return each group's signed sums as they stand, for a sink that merges by key: Spark's plain aggregate.

    A row has the key, the window, the results, `_net` (a group at or below 0 has no result: delete it) and `_version`.
    In a stream it is to be written in output mode `update` or `complete`, and nothing stateful may be before it.

    Args:
        frame: what comes.
        reductions: counts, sums and means by name.

    Raises:
        SignedError: a reduction needs more than signed sums.
    """
    from pyspark.sql import functions as F

    _check(frame, reductions, "changelog")
    if others := sorted(name for name, one in reductions.items() if not one.linear):
        raise SignedError(f"totals {others}: signed sums make counts, sums and means; aggregate makes the others")
    clock = [CLOCK] if frame.streaming and frame.windowed else []
    sums = [signed_count(frame.retracting).alias(NET), F.count(F.lit(1)).alias(VERSION)]
    made = frame.df.groupBy(*clock, *frame.group).agg(*_sums(frame, reductions, frame.retracting), *sums)
    return made.drop(*clock)


def _told_once(frame: Frame) -> bool:
    """Whether a final result is never corrected, and Spark's watermark is the one that makes it final."""
    return frame.clock == "window" and not frame.lateness_ms


def _by_spark(
    frame: FrameT, group: tuple[str, ...], reductions: Mapping[str, Reduction], retracting: bool, name: str
) -> FrameT:  # fmt: skip
    """Final results that Spark's windowed aggregate makes, which tells each window once."""
    from pyspark.sql import functions as F

    meta = [
        signed_count(retracting).alias(NET),
        F.max(INGESTION_TIME).alias(INGESTION_TIME),
        origin_of_all(),
    ]
    sums = _sums(frame, reductions, retracting)
    df = frame.df.groupBy(CLOCK, *group).agg(*sums, *meta)
    if retracting:  # of its late records Spark itself says how many they are
        df = observed(df, name, F.lit(0), F.count_if(F.col(NET) < 0))
    return _as_results(frame, df.where(F.col(NET) > 0).drop(NET))


def _first_of_each(frame: FrameT, group: tuple[str, ...]) -> FrameT:
    """Each value of a window as soon as it comes, where none is taken back: Spark's deduplication."""
    return _as_results(frame, one_zero(frame.df, group).dropDuplicates([CLOCK, *group]))


def _as_results(frame: FrameT, df: DataFrame) -> FrameT:
    """Insertions under the last ms of their windows."""
    from pyspark.sql import functions as F

    df = df.withColumns({MULT: F.lit(1), EVENT_TIME: F.col(END) - 1, DERIVED: F.lit(True)})
    return replace(frame, df=df, clock="event", lateness_ms=0)


def _sums(frame: Frame, reductions: Mapping[str, Reduction], retracting: bool) -> list[Column]:
    schema = frame.df.schema
    return [spark_aggregate(one, schema, retracting).alias(name) for name, one in reductions.items()]


def _check(frame: Frame, reductions: Mapping[str, Reduction], emission: Emission) -> None:
    check_whole("aggregate", frame)
    if emission not in ("changelog", "final"):
        raise SignedError(f"emission {emission!r}: give 'changelog' or 'final'")
    if not frame.group:
        raise SignedError("records under no key and in no window: rekey or window them before")
    check_user_columns([*reductions])
    if taken := sorted({*reductions} & {*frame.group}):
        raise SignedError(f"results {taken} are named as columns of the key: give them other names")
    for one in reductions.values():
        result_type(one, frame.df.schema)
