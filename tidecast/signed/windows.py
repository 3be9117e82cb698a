"""Windows as part of the key: each record once per window that holds its event time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tidecast.signed.columns import CLOCK, END, EVENT_TIME, START, SignedError, whole_ms
from tidecast.signed.frame import Clock, FrameT
from tidecast.signed.linear import leave_window

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def window(frame: FrameT, size_ms: int, slide_ms: int | None = None) -> FrameT:
    """Return the records under their windows [start, start + size), starts being multiples of the slide.

    Records that are in a window already (results of an aggregate) leave it: their event time is its last ms, so that
    they fall into the larger windows that hold it.

    Args:
        frame: what comes.
        size_ms: length of a window, ms.
        slide_ms: from one start to the next, ms, at most the size; None: the size.

    Raises:
        SignedError: size or slide make no windows or are no whole numbers, or the records' times lie in none.
    """
    size_ms = whole_ms("size of a window", size_ms)
    slide_ms = size_ms if slide_ms is None else whole_ms("slide of a window", slide_ms)
    if size_ms <= 0:
        raise SignedError(f"size of a window, {size_ms} ms: give more than 0")
    if not 0 < slide_ms <= size_ms:
        raise SignedError(f"slide of a window of {size_ms} ms, {slide_ms} ms: give more than 0 and at most the size")
    if frame.unwindowable:
        raise SignedError(f"windows around {frame.unwindowable}")
    frame = leave_window(frame)
    clock: Clock = "window" if frame.clock == "event" else "loose"
    assign = _by_watermark if frame.streaming and clock == "window" else _by_arithmetic
    return replace(frame, df=assign(frame.df, size_ms, slide_ms), windowed=True, clock=clock)


def _by_watermark(df: DataFrame, size_ms: int, slide_ms: int) -> DataFrame:
    """Spark's own windows, whose last instant carries the watermark on."""
    from pyspark.sql import functions as F

    spans = F.window(CLOCK, f"{size_ms} milliseconds", f"{slide_ms} milliseconds")
    of = {CLOCK: F.window_time(START), START: F.unix_millis(f"{START}.start"), END: F.unix_millis(f"{START}.end")}
    return df.withColumn(START, spans).withColumns(of)


def _by_arithmetic(df: DataFrame, size_ms: int, slide_ms: int) -> DataFrame:
    """The same windows, reckoned."""
    from pyspark.sql import functions as F

    time, slide = F.col(EVENT_TIME), F.lit(slide_ms).cast("bigint")
    newest = time - F.pmod(time, slide)
    spanned: Column = newest
    if slide_ms < size_ms:
        # the oldest start after t_e - size, from the newest one down in steps of the slide
        oldest = newest - F.floor((newest - time + size_ms - 1) / slide).cast("bigint") * slide
        spanned = F.explode(F.sequence(oldest, newest, slide))
    return df.withColumn(START, spanned).withColumn(END, F.col(START) + size_ms)
