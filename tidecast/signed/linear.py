"""Operators that take each record by itself. What is given must be deterministic and never look at a clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from tidecast.signed.columns import CLOCK, END, EVENT_TIME, MULT, START, SignedError, check_user_columns
from tidecast.signed.frame import Frame, FrameT, check_whole

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def select(frame: FrameT, columns: tuple[str | Column, ...]) -> FrameT:
    """Return the records with these columns as their value; key and reserved columns stay.

    Raises:
        SignedError: a column is named as a reserved one, or as one of the key, or has a dot or a backtick.
    """
    made = frame.df.select(*frame.keys, *columns, *frame.reserved)
    given = made.columns[len(frame.keys) : -len(frame.reserved)]
    if own := sorted({*given} & {*frame.reserved}):
        raise SignedError(f"columns {own} stay by themselves: name your own ones without '*', or add by with_columns")
    check_user_columns(given)
    if twice := sorted({*given} & {*frame.keys}):
        raise SignedError(f"columns {twice} are of the key, which stays by itself: leave them out, or rekey before")
    return replace(frame, df=made)


def explode(frame: FrameT, name: str, array: Column) -> FrameT:
    """Return each record once per element of an array, which becomes a column; none for an empty one or null."""
    from pyspark.sql import functions as fn

    check_user_columns([name])
    if name in frame.df.columns:
        raise SignedError(f"column {name!r} of explode is there already: give it another name")
    return replace(frame, df=frame.df.select("*", fn.explode(array).alias(name)))


def rekey(frame: FrameT, keys: tuple[str, ...], keep_window: bool) -> FrameT:
    """Return the records under other key columns; what was of the key is of the value then.

    Raises:
        SignedError: a column is unknown, reserved, or named twice.
    """
    own = {*frame.values, *frame.keys}
    if unknown := sorted({*keys} - own):
        raise SignedError(f"key columns {unknown}: the records have {sorted(own)}")
    if len({*keys}) < len(keys):
        raise SignedError(f"key columns {list(keys)}: name each once")
    kept = replace(frame, keys=keys)
    return kept if keep_window else leave_window(kept)


def leave_window(frame: FrameT) -> FrameT:
    """Return the records in no window: under their own event times, which for a result is its window's last ms."""
    if not frame.windowed:
        return frame
    if frame.clock == "window":
        raise SignedError("records cannot leave their window before an aggregate or a distinct: window them later")
    return replace(frame, df=frame.df.drop(START, END), windowed=False)


def union(frames: tuple[FrameT, ...]) -> FrameT:
    """Return all records: multiplicities add up, as in SQL's UNION ALL.

    Raises:
        SignedError: keys, windows or columns differ, or one is a table and the other a stream.
    """
    first, *others = frames
    check_whole("union or difference", *frames)
    df = first.df
    for other in others:
        _check_alike(first, other)
        df = df.unionByName(other.df)
    clocks = {frame.clock for frame in frames}
    return replace(
        first, df=df,
        clock=clocks.pop() if len(clocks) == 1 else "loose",
        lateness_ms=min(frame.lateness_ms for frame in frames),
        unwindowable=next((frame.unwindowable for frame in frames if frame.unwindowable), ""),
        retracting=any(frame.retracting for frame in frames),
    )  # fmt: skip


def difference(frame: FrameT, other: FrameT) -> FrameT:
    """Return the records and those of the other with their signs flipped; what it has in excess is a net below 0."""
    from pyspark.sql import functions as fn

    flipped = replace(other, df=other.df.withColumn(MULT, -fn.col(MULT)), retracting=True)
    return union((frame, flipped))


def transform(frame: FrameT, function: Callable[[DataFrame], DataFrame]) -> FrameT:
    """Return what a function of DataFrames makes of the records, one by one: it must not group, join or sort them.

    Raises:
        SignedError: it took away a column of the key or a reserved one, made one whose name cannot be used, or made
            the event time anew: a stream's windows go by the one that it has from `signed`.
    """
    made = frame.having(function(frame.df))
    check_user_columns([*made.values])
    before, after = (cast(Any, df)._jdf.queryExecution().analyzed() for df in (frame.df, made.df))
    known, found = _ids(before), _ids(after)
    if moved := [name for name in (EVENT_TIME, CLOCK) if known.get(name) != found.get(name)]:
        raise SignedError(
            f"a transform made {moved} anew: event times come from signed(time=...), correct them before it, and hand"
            " these columns on as they are: give fillna and replace a subset=, put toDF, mapInPandas and mapInArrow"
            " before signed, and begin a union with the records that the function is given"
        )
    # A column that was made anew has another id, but not behind a union: it has the one of its first branch.
    changed = known[MULT] != found[MULT] or _branches(before) != _branches(after)
    return replace(made, retracting=made.retracting or changed)


def _ids(plan: Any) -> dict[str, int]:
    """By which Spark knows the columns that are this package's own."""
    own = {EVENT_TIME, MULT, CLOCK}
    return {name: int(one.exprId().id()) for one in _each(plan.output()) if (name := one.name()) in own}


def _branches(plan: Any) -> int:
    below = _each(plan.children())
    return sum(map(_branches, below)) + (len(below) if plan.nodeName() == "Union" else 0)


def _each(seq: Any) -> list[Any]:
    """The elements of a Scala sequence."""
    return [seq.apply(at) for at in range(seq.size())]


def _check_alike(one: Frame, other: Frame) -> None:
    if one.streaming != other.streaming:
        raise SignedError("a table and a stream cannot be put together: read both in the same way")
    if (one.keys, one.windowed) != (other.keys, other.windowed):
        raise SignedError(f"keys {one.group} and {other.group} differ: rekey and window both alike")
    if {*one.values} != {*other.values}:
        raise SignedError(f"columns {sorted(one.values)} and {sorted(other.values)} differ: select the same")
