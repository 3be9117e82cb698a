"""One merge into a table of results, by key, window and version; and again where Delta found a conflict."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar
from uuid import uuid4

from tidecast.merge.columns import COVERS, NOTHING_TOLD, identifier, quoted
from tidecast.merge.table import TableForm
from tidecast.signed.aggregate import VERSION
from tidecast.signed.columns import END, START, same_as
from tidecast.signed.sink import DELETED

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

T = TypeVar("T")
_CONFLICTS = ("DELTA_CONCURRENT_", "DELTA_METADATA_CHANGED", "DELTA_PROTOCOL_CHANGED", "io.delta.exceptions.Concurrent")
LONGEST_WAIT_S = 5.0


def upsert(
    form: TableForm, rows: DataFrame, version: int, attempts: int = 20, whole_from: int | None = None,
    repeated: bool = True,
) -> bool:  # fmt: skip
    """Merge a micro-batch's results: what is newer than the table's replaces it; one Delta commit, or none.

    A row that a backfill corrected keeps its values and notes the version: the correction knows records that this
    query has not seen, so that it has to be made again with the new one. So does a row of a window of which this query
    has seen a part only.

    Args:
        form: of the table.
        rows: as `results(...)` makes them, with the table's columns.
        version: of the micro-batch.
        attempts: times that the merge is tried while other writers come between.
        whole_from: event time, ms, from which on windows begin of which the query has seen all records; None: all.
        repeated: whether the table may have this version or a newer one: it is looked for, which takes time.

    Returns:
        Whether anything changed.

    Raises:
        Exception: as pyspark raises it; nothing is committed then.
    """
    from pyspark.sql import functions as F

    rows = rows.persist()
    try:
        extent = rows.agg(F.min(START), F.max(END)).collect()[0]
        if extent[0] is None:
            return False
        begin, end = extent

        def once() -> bool:
            left = _rows_to_merge(form, rows, version, begin, end) if repeated else rows
            if left is not None:
                _merge_rows(form, left, version, within(begin, end), whole_from)
            return left is not None

        return retried(once, attempts)
    finally:
        rows.unpersist()


def within(begin: int, end: int) -> str:
    """Return the condition on a table's row `t` that its window lies in [begin, end), ms."""
    return f"t.{START} >= {begin} AND t.{END} <= {end}"


def _rows_to_merge(form: TableForm, rows: DataFrame, version: int, begin: int, end: int) -> DataFrame | None:
    """The rows for which the table holds nothing as new as this version; None: there are none.

    A merge rewrites each file in which a key is found, though it changes no row there, and commits that. Versions rise,
    so that files' statistics say mostly that nothing is to be read.
    """
    from pyspark.sql import functions as F

    table = rows.sparkSession.read.table(identifier(form.table)).alias("t")
    known = table.where(within(begin, end)).where(F.col(VERSION) >= version)
    known = known.select(*(F.col(name).alias(f"_of_{i}") for i, name in enumerate(form.group)))
    if known.isEmpty():
        return rows
    left = rows.join(known, same_as({name: f"_of_{i}" for i, name in enumerate(form.group)}), "left_anti")
    return None if left.isEmpty() else left


def _merge_rows(form: TableForm, rows: DataFrame, version: int, among: str, whole_from: int | None) -> None:
    from pyspark.sql import functions as F

    source = rows.withColumns({VERSION: F.lit(version).cast("bigint"), COVERS: F.lit(None).cast("bigint")})
    if whole_from is not None:
        source = _noted(form, source, F.col(START) < whole_from)
    told = _assigned((*form.values, DELETED, VERSION))
    newer, stands = f"t.{VERSION} < s.{VERSION}", f"t.{COVERS} IS NULL"
    merge(form, source, among, [
        f"WHEN MATCHED AND {newer} AND {stands} AND s.{COVERS} IS NULL THEN UPDATE SET {told}",
        f"WHEN MATCHED AND {newer} AND {stands} THEN UPDATE SET t.{COVERS} = t.{VERSION}, t.{VERSION} = s.{VERSION}",
        f"WHEN MATCHED AND {newer} THEN UPDATE SET {_assigned((VERSION,))}",
    ])  # fmt: skip


def _noted(form: TableForm, source: DataFrame, part: Column) -> DataFrame:
    """Rows as they are, and those of windows that are known in part as no result that readers see."""
    from pyspark.sql import functions as F

    values = {name: F.when(~part, F.col(name)) for name in form.values}
    covers = F.when(part, F.lit(NOTHING_TOLD).cast("bigint"))
    return source.withColumns({**values, DELETED: F.col(DELETED) | part, COVERS: covers})


def merge(form: TableForm, source: DataFrame, among: str, matched: list[str]) -> DataFrame:
    """Merge rows into a table in one commit; those that it has not are inserted.

    Args:
        form: of the table, `t` in the clauses.
        source: `s`; with all columns of the table.
        among: a condition on `t` that holds of all that can match, so that other files are not read.
        matched: clauses.

    Returns:
        What Delta says of it: one row, with `num_affected_rows`; where these are 0, there may be no commit.
    """
    spark = source.sparkSession
    name = f"tidecast_merge_{uuid4().hex}"
    source.createOrReplaceTempView(name)
    columns = [quoted(column) for column in (*form.group, *form.values, VERSION, DELETED, COVERS)]
    on = " AND ".join(f"t.{quoted(column)} <=> s.{quoted(column)}" for column in form.group)
    try:
        return spark.sql(
            f"MERGE INTO {identifier(form.table)} t USING {name} s ON {on} AND {among} {' '.join(matched)}"
            f" WHEN NOT MATCHED THEN INSERT ({', '.join(columns)}) VALUES ({', '.join(f's.{c}' for c in columns)})"
        )
    finally:
        spark.catalog.dropTempView(name)


def correction(form: TableForm) -> list[str]:
    """Return the clause that puts a backfill's row in place of one that live has not changed since its `_covers`."""
    told = _assigned((*form.values, DELETED, VERSION, COVERS))
    return [f"WHEN MATCHED AND t.{VERSION} <= s.{COVERS} THEN UPDATE SET {told}"]


def retried(action: Callable[[], T], attempts: int) -> T:
    """Do something again, from its beginning, while Delta refuses its commit for another writer's.

    Raises:
        Exception: as it raises, if no conflict, or after so many attempts.
    """
    for attempt in range(attempts):
        try:
            return action()
        except Exception as error:
            if attempt + 1 == attempts or not is_conflict(error):
                raise
        time.sleep(min(0.1 * 2**attempt, LONGEST_WAIT_S))
    raise ValueError(f"{attempts} attempts: give 1 or more")


def is_conflict(error: Exception) -> bool:
    """Return whether Delta refused a commit because another writer's came before."""
    text = str(error)
    return any(name in text for name in _CONFLICTS)


def _assigned(columns: tuple[str, ...]) -> str:
    return ", ".join(f"t.{quoted(name)} = s.{quoted(name)}" for name in columns)
