"""The columns that a table of results has beside key, window and values, and how names stand in SQL."""

from __future__ import annotations

from collections.abc import Sequence

from tidecast.signed.aggregate import VERSION
from tidecast.signed.columns import END, START
from tidecast.signed.sink import DELETED

COVERS = "_covers"
"""Null in what the live query wrote. In what a backfill corrected: the newest live version that the correction holds
(bigint); a `_version` above it is a change of the live query's that waits until it is computed again. So it is where
the live query told a result of which it has seen a part only; what it told stands nowhere then."""
BOOKKEEPING = (VERSION, DELETED, COVERS)
BATCHES = 1 << 40
"""Batches of an epoch: a version is epoch · BATCHES + number of the batch."""
NOTHING_TOLD = -1
"""The newest live version of a table to which the live query has told nothing."""


class MergeError(ValueError):
    """A table or results that cannot be merged; the message names them, what is wrong, and the remedy."""


def version_of(epoch: int, batch_id: int) -> int:
    """Return the version of a micro-batch.

    Raises:
        MergeError: one of them is out of range.
    """
    if not 0 <= epoch < 1 << 22:
        raise MergeError(f"epoch {epoch}: give 0 or more, one more with every new checkpoint, below {1 << 22}")
    if not 0 <= batch_id < BATCHES:
        raise MergeError(f"batch {batch_id}: Spark counts micro-batches from 0 on")
    return epoch * BATCHES + batch_id


def group_of(keys: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that a table has one row per."""
    return (*keys, START, END)


def quoted(name: str) -> str:
    """Return a column's name as SQL takes it, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"


def identifier(table: str) -> str:
    """Return a table as SQL takes it: a path (with a slash) or a name of the catalogue."""
    return f"delta.{quoted(table)}" if "/" in table else ".".join(quoted(part) for part in table.split("."))
