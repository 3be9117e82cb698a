"""A stateful operator in a stream: Spark's transformWithState in its row form, which emits a change log."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from tidecast.signed.columns import (
    CLOCK,
    DERIVED,
    END,
    END_OF_TIME,
    EVENT_TIME,
    INGESTION_TIME,
    MULT,
    NOTE,
    ORIGIN,
    SignedError,
    one_zero,
)
from tidecast.signed.frame import FrameT
from tidecast.signed.reductions import Reduction, result_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor
    from pyspark.sql.types import DataType, StructType

OVER_ALL_TIME = "results over all time, which lie in none: put the window before the aggregate"
_STORE = "spark.sql.streaming.stateStore.providerClass"
_numbers = itertools.count(1)


def reduce_stream(
    frame: FrameT, group: tuple[str, ...], reductions: Mapping[str, Reduction], final: bool, name: str
) -> FrameT:
    """Return the change log of the groups' results.

    Args:
        frame: a stream.
        group: names of the columns that a result is one of; the first ones are those of the key.
        reductions: result columns by name.
        final: tell a result once its window is final, not before.
        name: of the operator, for its counts of late records and of keys below 0.

    Raises:
        SignedError: the session's state store cannot do it, or a final result would never come.
    """
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    from tidecast.signed.processor import GroupPlan, GroupProcessor

    if final and not frame.windowed:
        raise SignedError("final results of a stream without windows never come: window it, or take the change log")
    schema = frame.df.schema
    fields = [schema[column] for column in group]
    fields += [T.StructField(column, result_type(one, schema)) for column, one in reductions.items()]
    for column, its in ((INGESTION_TIME, T.LongType()), (MULT, T.IntegerType()), (ORIGIN, T.StringType())):
        fields.append(T.StructField(column, its))
    fields.append(T.StructField(NOTE, T.StringType()))
    if frame.windowed:
        fields.append(T.StructField(CLOCK, T.TimestampType()))
    out = T.StructType(fields)
    ordered = dict.fromkeys(one.columns for one in reductions.values() if not one.linear)
    values = {columns: T.StructType([schema[column] for column in columns]) for columns in ordered}
    plan = GroupPlan(group, dict(reductions), out, values, final, frame.lateness_ms)
    needed = dict.fromkeys(column for one in reductions.values() for column in one.columns)
    # Without the clock among its inputs Spark drops no late record uncounted.
    read = [*group, *(set(needed) - {*group}), INGESTION_TIME, MULT, ORIGIN, DERIVED]
    df = transformed(frame.df.select(*read), group, GroupProcessor(plan), out, frame.windowed, name)
    own = {EVENT_TIME: F.col(END) - 1 if frame.windowed else F.lit(END_OF_TIME), DERIVED: F.lit(True)}
    if not frame.windowed:
        own[CLOCK] = F.lit(None).cast("timestamp")
    return replace(
        frame, df=df.withColumns(own), clock="event", lateness_ms=0,
        unwindowable="" if frame.windowed else OVER_ALL_TIME,
    )  # fmt: skip


def transformed(
    records: DataFrame, group: tuple[str, ...], processor: StatefulProcessor, out: StructType, timed: bool, name: str
) -> DataFrame:
    """Return the changes that a processor tells, as an operator of a stream; what it counts is observed.

    Args:
        records: a stream, with the columns that the processor reads.
        group: names of the columns that it keeps its state by.
        processor: what is done.
        out: schema of what it tells.
        timed: whether its state ends with the watermark.
        name: of the operator, for its counts.

    Raises:
        SignedError: the session's state store cannot do it, or a timestamp is within a column of the group.
    """
    from pyspark import cloudpickle

    schema = records.schema
    for column in group:
        if _holds_instant(schema[column].dataType):
            raise SignedError(
                f"column {column!r}, {schema[column].dataType.simpleString()}, has a timestamp in it, and"
                " groups are told apart by it: take that out as a column of its own, or by unix_micros"
            )

    provider = records.sparkSession.conf.get(_STORE) or ""
    if not provider.endswith("RocksDBStateStoreProvider"):
        raise SignedError(f"{_STORE} is {provider}: Spark's transformWithState needs the RocksDBStateStoreProvider")
    # Executors need not have it installed.
    cloudpickle.register_pickle_by_value(sys.modules[__package__])  # type: ignore[no-untyped-call]
    mode, clock = ("EventTime", CLOCK) if timed else ("None", "")
    grouped = one_zero(records, group).groupBy(*group)
    told = grouped.transformWithState(processor, out, "Append", mode, eventTimeColumnName=clock)
    return counted(told, name)


def _holds_instant(its: DataType) -> bool:
    """Whether a timestamp is within a struct or an array, where two of an hour that clocks show twice are one."""
    from pyspark.sql import types as T

    parts = [field.dataType for field in its] if isinstance(its, T.StructType) else []
    parts += [its.elementType] if isinstance(its, T.ArrayType) else []
    return any(isinstance(part, T.TimestampType) or _holds_instant(part) for part in parts)


def counted(told: DataFrame, name: str) -> DataFrame:
    """Return the changes; what the other rows count goes into the query's observed metrics.

    Args:
        told: changes and notes.
        name: of the operator; empty for one of its own.
    """
    from pyspark.sql import functions as F

    late, negative = (
        F.coalesce(F.sum(F.when(F.col(NOTE) == note, F.col(MULT).cast("bigint"))), F.lit(0))
        for note in ("late", "negative")
    )
    return observed(told, name, late, negative).where(F.col(NOTE).isNull()).drop(NOTE)


def observed(df: DataFrame, name: str, late: Column, negative: Column) -> DataFrame:
    """Return the same, whose counts go into the query's observed metrics, where `tidecast.signed.progress` reads them.

    Args:
        df: of an operator.
        name: of the operator; empty for one of its own.
        late: aggregate: how many records came too late.
        negative: aggregate: how many groups closed below 0.
    """
    counts = late.alias("late_dropped"), negative.alias("negative_keys")
    return df.observe(f"signed {name or next(_numbers)}", *counts)
