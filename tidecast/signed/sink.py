"""Change logs as what a table is merged with: rows that replace others by key, and rows that go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tidecast.signed.columns import INGESTION_TIME, NET, ORIGIN, SignedError
from tidecast.signed.frame import net

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DELETED = "_deleted"
"""Whether a key has no result any more (boolean); the columns beside the key are null then."""
SEVERAL = (
    "two results of one key in one window: name all columns of the key, or aggregate them to one before they are merged"
)


def upserts(changes: DataFrame, key: Sequence[str]) -> DataFrame:
    """Return one row per key that changed: its newest result, or that it has none any more.

    To be used in `foreachBatch`, where the micro-batch's number is the version: what a later one says replaces what an
    earlier one said, and a micro-batch that is repeated says the same.

    Args:
        changes: of one micro-batch, of an aggregate, which has one result per key.
        key: its key's columns, and the window's if it is in one.

    Raises:
        SignedError: a column of the key is unknown. Where a key has two results, Spark stops when the rows are used.
    """
    from pyspark.sql import functions as F

    if unknown := sorted({*key} - {*changes.columns}):
        raise SignedError(f"key columns {unknown}: the changes have {changes.columns}")
    facts = net(changes)
    others = [name for name in facts.columns if name not in (*key, NET, INGESTION_TIME, ORIGIN)]
    there = F.col(NET) > 0
    newest = F.max_by(F.struct(*others), F.when(there, F.col(NET)))
    newest = F.when(F.sum(F.when(there, F.col(NET))) > 1, F.raise_error(F.lit(SEVERAL))).otherwise(newest)
    made = facts.groupBy(*key).agg(newest.alias(NET), (~F.max(there)).alias(DELETED))
    return made.select(*key, *(F.col(NET)[name].alias(name) for name in others), DELETED)
