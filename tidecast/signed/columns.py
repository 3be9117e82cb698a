"""The columns that a signed DataFrame has beside a user's own, and what they mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import index
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

EVENT_TIME = "_t_e"
"""Event time, ms since the epoch (bigint): part of what a record says."""
INGESTION_TIME = "_t_i"
"""Ingestion time, ms since the epoch (bigint): when it came. Not part of what it says."""
MULT = "_mult"
"""Multiplicity (int): +1 inserts the fact, -1 retracts it."""
ORIGIN = "_origin"
"""Whether it came `live` or from a `replay` (string)."""
START, END = "_window_start", "_window_end"
"""The record's window [start, end), ms since the epoch (bigint); there while the key is in a window."""
RESERVED = (EVENT_TIME, INGESTION_TIME, MULT, ORIGIN)

CLOCK = "_clock"
"""In a stream, the time that Spark's watermark is held against: the event time, or the last instant of the window."""
DERIVED = "_derived"
"""In a stream, whether a stateful operator made the record; what one tells is never late for the next."""
NOTE = "_note"
"""Inside a stateful operator, what a row that is no change counts: `late` or `negative`."""
HIDDEN = (CLOCK, DERIVED)

NET = "_net"
"""Sum of the multiplicities of a fact, never 0 (bigint): what a relation has instead of `_mult`."""

END_OF_TIME = (2**63 - 1) // 1000
"""Event time of a result over all time, ms: the largest that Spark's 64 bit microseconds hold."""


class SignedError(ValueError):
    """Records, an operator or a plan that have no meaning, or none in a stream; the message says the remedy."""


def check_user_columns(names: list[str]) -> None:
    """Refuse names of a user's columns that this package needs for its own, or Spark takes for an expression.

    Args:
        names: as in the DataFrame.

    Raises:
        SignedError: one of them is reserved, in any case of letters, or has a dot or a backtick.
    """
    own = {*RESERVED, START, END, NET, NOTE, *HIDDEN}
    if taken := sorted(name for name in names if name.lower() in own):
        raise SignedError(f"columns {taken} are reserved: rename them before (withColumnRenamed)")
    if parted := sorted(name for name in names if "." in name or "`" in name):
        raise SignedError(f"columns {parted} have a dot or a backtick: rename them (withColumnRenamed, or an alias)")


def whole_ms(what: str, ms: int) -> int:
    """Return a number of ms, which Spark takes as a whole one.

    Args:
        what: it is.
        ms: likewise.

    Raises:
        SignedError: it is a float, as half an hour is that was reckoned.
    """
    try:
        return index(ms)
    except TypeError:
        raise SignedError(f"{what}, {ms!r} ms: give a whole number, int(...)") from None


def same_as(pairs: Mapping[str, str]) -> Column:
    """Return the condition that columns agree two by two, nulls being equal to each other."""
    from pyspark.sql import functions as F

    condition = F.lit(True)
    for left, right in pairs.items():
        condition = condition & F.col(left).eqNullSafe(F.col(right))
    return condition


def one_zero(df: DataFrame, names: Iterable[str]) -> DataFrame:
    """Return the DataFrame without -0.0 in these columns, for operators that tell keys apart by their bytes.

    Spark's aggregates, which group a table, take it for 0.0.
    """
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    types = {name: df.schema[name].dataType for name in names}
    floats = {name: its for name, its in types.items() if isinstance(its, (T.FloatType, T.DoubleType))}
    zero = {name: F.lit(0.0).cast(its) for name, its in floats.items()}
    return df.withColumns({name: F.col(name) + zero[name] for name in floats}) if floats else df


def origin_of_all() -> Column:
    """Return the aggregate of a group's origins: `live`, if any was.

    Of a boolean: with the least of strings Spark would sort all records in place of keeping a table of the groups.
    """
    from pyspark.sql import functions as F

    return F.when(F.max(F.col(ORIGIN) == "live"), "live").otherwise("replay").alias(ORIGIN)
