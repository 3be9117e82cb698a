"""The shadow table against the live one, window by window, read only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tidecast.backfill.running import Backfill, rows_at, table_version
from tidecast.backfill.spec import BackfillError, check_lengths
from tidecast.backfill.summary import ColumnChange, Summary
from tidecast.merge.columns import COVERS
from tidecast.merge.table import TableForm
from tidecast.merge.upsert import within
from tidecast.signed.aggregate import VERSION
from tidecast.signed.columns import END, START, same_as
from tidecast.signed.sink import DELETED

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

KIND, CHANGED, DUE = "_kind", "_changed", "_due"
_OLD, _NEW, _FRACTIONAL = "_old", "_new", ("double", "float")


def compare(backfill: Backfill, tolerance: float = 0.0) -> Summary:
    """Return what a publish would change; nothing is changed, and the plan may be another one than live's.

    Args:
        backfill: with its newest round written.
        tolerance: relative difference up to which doubles count as equal; sums of doubles depend on their order.

    Raises:
        BackfillError: the replay is not written to its end, or its windows are of several lengths.
    """
    with differences(backfill, backfill.spark, table_version(backfill.table), tolerance) as windows:
        found = summarise(windows)
        differ = found.differs + found.new + found.gone
        return replace(found, columns=_columns(windows, backfill.form)) if differ else found


@contextmanager
def differences(backfill: Backfill, spark: SparkSession, at: int, tolerance: float) -> Iterator[DataFrame]:
    """Give every window of the range that either table has, of one Delta version each, as long as they are used.

    They are kept meanwhile: the tables are read and joined once, whatever is asked of them.

    Args:
        backfill: with its newest round written.
        spark: the session that reads them.
        at: Delta version of the live table.
        tolerance: as `compare` takes it.

    Yields:
        Key, window, `_old` and `_new` values (null: no result), `_kind` (equal, differs, new, gone), `_changed` (live
        told it since the replay noted its version), `_due` (a publish writes it).

    Raises:
        BackfillError: the replay is not written to its end, or the tolerance is below 0.
    """
    from pyspark.sql import functions as F

    spec, form = backfill.spec, backfill.form
    if tolerance < 0:
        raise BackfillError(f"tolerance {tolerance}: give 0 or more")
    if not spec.last.written:
        raise BackfillError(f"backfill {spec.words} is not written to its end: go on with its replay, or cancel it")
    shadow_at = table_version(backfill.shadow)
    inside = within(spec.begin, spec.end)
    live = rows_at(spark, backfill.table, at).alias("t").where(inside)
    live = live.select(*form.group, _row(form.values, _OLD), DELETED, VERSION, COVERS)
    shadow = rows_at(spark, backfill.shadow, shadow_at).alias("t").where(inside).where(~F.col(DELETED))
    on = {name: f"_of_{i}" for i, name in enumerate(form.group)}
    shadow = shadow.select(*(F.col(name).alias(of) for name, of in on.items()), _row(form.values, _NEW))
    both = live.join(shadow, same_as(on), "full_outer")
    group = [F.coalesce(name, of).alias(name) for name, of in on.items()]
    old = F.when(~F.col(DELETED), F.col(_OLD))
    both = both.select(*group, old.alias(_OLD), _NEW, VERSION, COVERS).withColumn(KIND, _kind(form.values, tolerance))
    changed = F.coalesce(F.col(VERSION) > spec.last.mark, F.lit(False))
    waits = F.coalesce(F.col(VERSION) > F.col(COVERS), F.lit(False))
    due = ~F.col(CHANGED) & ((F.col(KIND) != "equal") | waits)
    windows = both.withColumn(CHANGED, changed).withColumn(DUE, due).drop(VERSION, COVERS).persist()
    try:
        yield windows
    finally:
        windows.unpersist()


def summarise(found: DataFrame) -> Summary:
    """Return how many windows differ, without the change of each column; runs a Spark job.

    Raises:
        BackfillError: what was replayed has windows of several lengths, as sessions are.
    """
    from pyspark.sql import functions as F

    replayed = F.when(F.col(_NEW).isNotNull(), F.col(END) - F.col(START))
    totals: Any = found.agg(
        F.count(F.when(F.col(_OLD).isNotNull() | F.col(_NEW).isNotNull(), 1)).alias("windows"),
        *(F.count(F.when(F.col(KIND) == kind, 1)).alias(kind) for kind in ("differs", "new", "gone")),
        F.count(F.when(F.col(CHANGED), 1)).alias("changed"),
        F.count(F.when(F.col(DUE), 1)).alias("due"),
        F.min(replayed).alias("shortest"), F.max(replayed).alias("longest"),
    ).collect()[0]  # fmt: skip
    check_lengths(totals["shortest"], totals["longest"])
    windows, differs, new, gone, changed, due = (
        int(totals[name]) for name in ("windows", "differs", "new", "gone", "changed", "due")
    )
    return Summary(windows, differs, new, gone, changed, due)


_NUMERIC = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")


def _columns(windows: DataFrame, form: TableForm) -> list[ColumnChange]:
    """The change of each column of numbers, of the sums per key."""
    from pyspark.sql import functions as F

    keys, numbers = form.keys, [name for name, its in form.values.items() if its.partition("(")[0] in _NUMERIC]
    if not numbers:
        return []
    sums = [F.count(F.lit(1)).alias("_many")]
    for i, name in enumerate(numbers):
        old, new = (F.coalesce(F.col(side)[name].cast("double"), F.lit(0.0)) for side in (_OLD, _NEW))
        made = {"old": old, "new": new, "off": F.abs(new - old), "size": F.abs(new) + F.abs(old)}
        sums += [F.sum(column).alias(f"_{what}{i}") for what, column in made.items()]
    per_key = windows.where(F.col(KIND) != "equal").groupBy(*keys).agg(*sums)
    found: list[Column] = []
    for i, _ in enumerate(numbers):
        said = F.struct("_many", f"_old{i}", f"_new{i}", f"_off{i}", F.struct(F.lit(0), *keys).alias("_key"))
        found += [F.sum(f"_size{i}").alias(f"s{i}"), F.sum(f"_off{i}").alias(f"o{i}")]
        found.append(F.max_by(said, f"_off{i}").alias(f"w{i}"))
    row: Any = per_key.agg(*found).collect()[0]
    return [
        ColumnChange(name, row[f"s{i}"], row[f"o{i}"], tuple(row[f"w{i}"]["_key"])[1:], row[f"w{i}"][f"_off{i}"],
                     row[f"w{i}"]["_many"], row[f"w{i}"][f"_old{i}"], row[f"w{i}"][f"_new{i}"])
        for i, name in enumerate(numbers)
    ]  # fmt: skip


def _row(values: Any, name: str) -> Column:
    from pyspark.sql import functions as F

    return F.struct(F.lit(True).alias("_there"), *values).alias(name)


def _kind(values: Any, tolerance: float) -> Column:
    from pyspark.sql import functions as F

    same = F.lit(True)
    for name, its in values.items():
        old, new = F.col(_OLD)[name], F.col(_NEW)[name]
        equal = old.eqNullSafe(new)
        if tolerance and its in _FRACTIONAL:
            off = F.abs(new - old)
            near = off <= tolerance * F.greatest(F.abs(old), F.abs(new))
            # Spark has infinity ≤ infinity, and NaN ≤ NaN.
            equal = equal | F.coalesce(near & (off < F.lit(float("inf"))), F.lit(False))
        same = same & equal
    before, after = F.col(_OLD).isNotNull(), F.col(_NEW).isNotNull()
    return (
        F.when(before & after & ~same, "differs")
        .when(~before & after, "new")
        .when(before & ~after, "gone")
        .otherwise("equal")
    )
