"""The equi-join of two relations, of changes on both sides: Spark's own join, signs multiplied.

It is bilinear: each pair of changes gives one with the product of their signs, whichever came first, so that the pairs
add up to the product of the nets. A net below 0 on one side gives pairs below 0, which vanish when the insertion comes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tidecast.signed.columns import (
    CLOCK,
    DERIVED,
    EVENT_TIME,
    INGESTION_TIME,
    MULT,
    ORIGIN,
    SignedError,
    same_as,
    whole_ms,
)
from tidecast.signed.frame import Clock, Frame, FrameT, check_whole

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

UNBOUNDED = "pairs of a join without bound, which are as old as they like: bound the join, or window both sides before"


def join(left: FrameT, right: FrameT, bound_ms: int | None) -> FrameT:
    """Return all pairs of records with equal keys: event time and ingestion time are the later ones.

    Nulls in keys are equal to each other, unlike in SQL: filter them out before where they are not to meet.

    In a stream Spark keeps both sides until the window is closed; without windows until the watermark is past a record
    by the bound; with neither for ever.

    Args:
        left: one side.
        right: the other, with the same key columns and others of its own.
        bound_ms: largest distance of the two event times, ms; None: any.

    Raises:
        SignedError: the sides do not fit, or nothing tells when a record of a stream has met all its partners.
    """
    _check(left, right, bound_ms)
    left = replace(left, retracting=left.retracting or right.retracting)
    df, other = left.df, right.df
    names = {name: f"_of{i}" for i, name in enumerate(other.columns) if name in df.columns}
    clock: Clock = "window" if "window" in (left.clock, right.clock) else left.clock
    timeless = left.streaming and not left.windowed and bound_ms is None
    if timeless:
        # Spark drops what is behind the watermark where it knows of one; here nothing is ever late.
        df, other = df.drop(CLOCK), other.drop(CLOCK)
        names.pop(CLOCK)
    condition = same_as({name: names[name] for name in left.group})
    if bound_ms is not None:
        condition = condition & _near(EVENT_TIME, names[EVENT_TIME], bound_ms)
    if left.streaming and not timeless:
        # The clocks of one window may be a ms apart; of records that are near, they are as near.
        condition = condition & _clocks_near(names[CLOCK], 1 if left.windowed else (bound_ms or 0) + 1)
    return _paired(left, df.join(other.withColumnsRenamed(names), condition), names, clock, bound_ms)


def _paired(left: FrameT, df: DataFrame, names: dict[str, str], clock: Clock, bound_ms: int | None) -> FrameT:
    from pyspark.sql import functions as F

    merged = {
        EVENT_TIME: F.greatest(EVENT_TIME, names[EVENT_TIME]),
        INGESTION_TIME: F.greatest(INGESTION_TIME, names[INGESTION_TIME]),
        MULT: F.col(MULT) * F.col(names[MULT]),
        ORIGIN: F.least(ORIGIN, names[ORIGIN]),  # live, if either is
    }
    if left.streaming:
        merged[DERIVED] = F.lit(True)
        if CLOCK not in df.columns:
            merged[CLOCK] = F.lit(None).cast("timestamp")
    df = df.withColumns(merged).drop(*names.values())
    if left.windowed:
        return replace(left, df=df, clock=clock, lateness_ms=0)
    return replace(left, df=df, clock="loose", lateness_ms=0, unwindowable=UNBOUNDED if bound_ms is None else "")


def _check(left: Frame, right: Frame, bound_ms: int | None) -> None:
    check_whole("join", left, right)
    if left.streaming != right.streaming:
        raise SignedError("a table and a stream cannot be joined: read both in the same way")
    if bound_ms is not None and whole_ms("bound of a join", bound_ms) < 0:
        raise SignedError(f"bound of a join, {bound_ms} ms: give 0 or more, or None for no bound")
    if left.group != right.group or not left.keys:
        raise SignedError(f"keys {left.group} and {right.group} of a join: rekey and window both alike")
    if both := sorted({*left.values} & {*right.values}):
        raise SignedError(f"columns {both} are on both sides of a join: rename them on one")
    timed = left.windowed or bound_ms is not None
    for side in (left, right):
        if timed and (side.clock == "loose" or side.unwindowable):
            raise SignedError("a join by time behind a join or a union of results: window and aggregate before it")


def _near(one: str, other: str, bound_ms: int) -> Column:
    from pyspark.sql import functions as F

    return F.abs(F.col(one) - F.col(other)) <= bound_ms


def _clocks_near(other: str, bound_ms: int) -> Column:
    """A condition on times that Spark finds the lifetime of its state by."""
    from pyspark.sql import functions as F

    span = F.expr(f"INTERVAL {bound_ms * 1000} MICROSECONDS")
    return (F.col(CLOCK) >= F.col(other) - span) & (F.col(CLOCK) <= F.col(other) + span)
