"""From a user's DataFrame to signed records: where time, sign and origin come from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidecast.signed.columns import (
    CLOCK,
    DERIVED,
    EVENT_TIME,
    INGESTION_TIME,
    MULT,
    ORIGIN,
    SignedError,
    check_user_columns,
    whole_ms,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def sign(
    df: DataFrame, time: str, mult: str | Column | None, ingested: str | None, origin: str, delay_ms: int,
    lateness_ms: int,
) -> DataFrame:  # fmt: skip
    """Return a user's DataFrame with the reserved columns, and in a stream with a watermark.

    Args:
        df: table or stream.
        time: column of the event time: a timestamp, or ms since the epoch.
        mult: column or expression of the sign; None: all insert.
        ingested: column of the ingestion time, likewise; None: the event time stands for it.
        origin: `live` or `replay`.
        delay_ms: how far behind the newest event time a record may come and still be expected.
        lateness_ms: how much longer it is taken.

    Raises:
        SignedError: a column is reserved, missing or of the wrong type, or a number is below 0 or not whole.
    """
    from pyspark.sql import functions as F

    check_user_columns(df.columns)
    if origin not in ("live", "replay"):
        raise SignedError(f"origin {origin!r}: give 'live' or 'replay'")
    if whole_ms("delay", delay_ms) < 0 or whole_ms("lateness", lateness_ms) < 0:
        raise SignedError(f"delay_ms {delay_ms}, lateness_ms {lateness_ms}: give 0 or more")
    its = _ms(df, time)
    sure = _checked(its, time)
    came = _checked(_ms(df, ingested), ingested) if ingested else None
    rest = {MULT: _sign(mult), ORIGIN: F.lit(origin)}
    if not df.isStreaming:
        return df.withColumns({EVENT_TIME: sure, INGESTION_TIME: sure if came is None else came} | rest)
    # A ms more: Spark drops a record at its watermark, which is still expected; and it keeps what may be corrected.
    behind = f"{delay_ms + lateness_ms + 1} milliseconds"
    # Spark copies each record at its watermark: what can be made behind that is not carried through it.
    df = df.withColumn(CLOCK, F.timestamp_millis(sure)).withWatermark(CLOCK, behind)
    rest |= {DERIVED: F.lit(False)}
    return df.withColumns({EVENT_TIME: its, INGESTION_TIME: its if came is None else came} | rest)


def _ms(df: DataFrame, name: str) -> Column:
    """A time in ms."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    if name not in df.columns:
        raise SignedError(f"time column {name!r} is unknown: the DataFrame has {df.columns}")
    its = df.schema[name].dataType
    if isinstance(its, T.TimestampType):
        ms = F.unix_millis(name)
    elif isinstance(its, T.LongType | T.IntegerType):
        ms = F.col(name).cast("bigint")
    else:
        raise SignedError(f"time column {name!r} is {its.simpleString()}: cast it to timestamp_ltz, or to bigint as ms")
    return ms


def _checked(ms: Column, name: str) -> Column:
    """The same; a record that has none stops the query, because it could be counted nowhere."""
    from pyspark.sql import functions as F

    none = F.raise_error(
        F.lit(f"a record without {name}: filter out or repair those that have no time before signed()")
    )
    return F.when(ms.isNotNull(), ms).otherwise(none)


def _sign(mult: str | Column | None) -> Column:
    from pyspark.sql import functions as F

    if mult is None:
        return F.lit(1)
    column = F.col(mult) if isinstance(mult, str) else mult
    wrong = F.raise_error(F.lit("a sign other than +1 and -1: give one record per copy"))
    return F.when(column.isin(1, -1), column.cast("int")).otherwise(wrong)
