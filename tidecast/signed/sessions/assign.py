"""Sessions as part of the key: of a table by Spark's windows over rows, of a stream by a stateful operator."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tidecast.signed.columns import (
    CLOCK,
    DERIVED,
    END,
    EVENT_TIME,
    INGESTION_TIME,
    MULT,
    NET,
    NOTE,
    ORIGIN,
    START,
    SignedError,
    origin_of_all,
    whole_ms,
)
from tidecast.signed.frame import Frame, FrameT
from tidecast.signed.linear import leave_window
from tidecast.signed.stateful import transformed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def sessions(frame: FrameT, gap_ms: int, name: str) -> FrameT:
    """Return the records under their sessions [first, last + gap) of event times, each less than a gap after another.

    Only what has a net above 0 makes a session and is in one. When sessions merge, split, grow or shrink, their records
    are taken from the old window and put into the new one, so that an aggregate behind takes its old results back.
    Results of an aggregate stand at the last ms of their window, and make sessions of those.

    Args:
        frame: what comes, under a key.
        gap_ms: pause that ends a session.
        name: of the operator among the counts of late records; empty for a number.

    Raises:
        SignedError: the gap makes no sessions, the records' times can be in none, they are under no key, or a column
            cannot be told from another's value.
    """
    gap_ms = whole_ms("gap of a session", gap_ms)
    if gap_ms <= 0:
        raise SignedError(f"gap of a session, {gap_ms} ms: give more than 0")
    if frame.unwindowable:
        raise SignedError(f"sessions of {frame.unwindowable}")
    frame = leave_window(frame)
    if not frame.keys:
        raise SignedError("sessions of records under no key: rekey before")
    _check_values(frame)
    df = _of_stream(frame, gap_ms, name) if frame.streaming else _of_table(frame, gap_ms)
    # Those of a table are told once, as they end up.
    return replace(frame, df=df, windowed=True, clock="window", lateness_ms=0, retracting=frame.streaming)


def _check_values(frame: Frame) -> None:
    """Records are kept by their values: these have to come back from Python as what they were."""
    from pyspark.sql import types as T

    for name in frame.values:
        its = frame.df.schema[name].dataType
        if not isinstance(its, (T.NumericType, T.StringType, T.BooleanType, T.DateType)):
            raise SignedError(
                f"column {name!r} of a session, {its.simpleString()}: select numbers, strings, booleans, dates before"
                " (a timestamp by unix_micros)"
            )


def _of_table(frame: Frame, gap_ms: int) -> DataFrame:
    """The facts that are there, each as often as its net, with the first and last time of their run."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    facts = frame.df.groupBy(*frame.keys, *frame.values, EVENT_TIME).agg(
        F.sum(MULT).alias(NET), F.max(INGESTION_TIME).alias(INGESTION_TIME), origin_of_all()
    )
    key = Window.partitionBy(*frame.keys)
    ordered = key.orderBy(EVENT_TIME)
    pause = F.col(EVENT_TIME) - F.lag(EVENT_TIME).over(ordered)
    run = Window.partitionBy(*frame.keys, NOTE)
    times = F.col(EVENT_TIME)
    df = facts.where(F.col(NET) > 0).withColumn(CLOCK, F.coalesce(pause >= gap_ms, F.lit(True)))
    # Of records of one time the first one alone begins a run, and the frame ends after all of them.
    df = df.withColumn(NOTE, F.sum(F.col(CLOCK).cast("bigint")).over(ordered))
    df = df.withColumns({START: F.min(times).over(run), END: F.max(times).over(run) + gap_ms})
    df = df.withColumn(MULT, F.explode(F.array_repeat(F.lit(1), F.col(NET).cast("int"))))
    return df.select(*frame.keys, *frame.values, START, END, EVENT_TIME, INGESTION_TIME, MULT, ORIGIN)


def _of_stream(frame: Frame, gap_ms: int, name: str) -> DataFrame:
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    from tidecast.signed.sessions.processor import SessionPlan, SessionProcessor

    schema = frame.df.schema
    types: dict[str, T.DataType] = {column: schema[column].dataType for column in (*frame.keys, *frame.values)}
    types |= dict.fromkeys((EVENT_TIME, START, END, INGESTION_TIME), T.LongType())
    types |= {MULT: T.IntegerType(), ORIGIN: T.StringType(), NOTE: T.StringType(), CLOCK: T.TimestampType()}
    out = T.StructType([T.StructField(column, its) for column, its in types.items()])
    processor = SessionProcessor(SessionPlan(frame.keys, frame.values, gap_ms, out))
    read = [*frame.keys, *frame.values, EVENT_TIME, INGESTION_TIME, MULT, ORIGIN, DERIVED]
    return transformed(frame.df.select(*read), frame.keys, processor, out, True, name).withColumn(DERIVED, F.lit(True))
