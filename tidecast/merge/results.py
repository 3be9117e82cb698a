"""What a query tells, in whatever form, as rows of a table of results: at most one per key and window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tidecast.merge.columns import COVERS, MergeError, group_of
from tidecast.signed.aggregate import VERSION
from tidecast.signed.columns import EVENT_TIME, HIDDEN, INGESTION_TIME, MULT, NET, ORIGIN
from tidecast.signed.sink import DELETED, SEVERAL, upserts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TOLD_OF = (EVENT_TIME, INGESTION_TIME, MULT, ORIGIN, NET, VERSION, DELETED, COVERS, *HIDDEN)


def results(told: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return one row per key and window: its values, and `_deleted` where it has no result any more.

    Args:
        told: a change log of an aggregate (`frame.changes`), signed totals (`frame.totals`), a relation, or plain
            results; if plain, with `_deleted` or without.
        keys: columns of the key; beside them `_window_start` and `_window_end` (ms) have to be there.

    Raises:
        MergeError: a column of the key or of the window is missing. Where a key has two results in one window, Spark
            stops when the rows are used, and says so.
    """
    from pyspark.sql import functions as F

    group = group_of(keys)
    if missing := sorted({*group} - {*told.columns}):
        raise MergeError(
            f"columns {missing} are missing in results of {told.columns}: results meet by key and window; give the"
            " keys as they are named, and put a window before the aggregate"
        )
    if MULT in told.columns:
        return upserts(told, group).drop(EVENT_TIME)
    values = [name for name in told.columns if name not in (*group, *_TOLD_OF)]
    gone = F.lit(False)
    if NET in told.columns:
        gone = F.col(NET) <= 0
    elif DELETED in told.columns:
        gone = F.coalesce(F.col(DELETED), F.lit(False))
    kept = [F.when(~gone, F.col(name)).alias(name) for name in values]
    several = F.raise_error(F.lit(SEVERAL))
    row = F.when(F.count(F.lit(1)) == 1, F.first(F.struct(*kept, gone.alias(DELETED)))).otherwise(several)
    return told.groupBy(*group).agg(row.alias("_row")).select(*group, "_row.*")
