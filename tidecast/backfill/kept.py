"""What a replay's micro-batches told, in plain files: a folder each, so that a repeated one replaces itself.

Nobody reads them before all have come. A commit of a table for each of them would take seconds of the cores that live
records need, however little it holds.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tidecast.backfill import namespace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BATCH = "_tidecast_batch"
"""Column of the micro-batch's number (bigint)."""


def kept_folder(table: Path, name: str) -> Path:
    """Return the folder of what a replay's micro-batches told; `table` is beside it, `name` the replay's id."""
    return namespace.folder(table, name) / namespace.KEPT


def discard_orphans(table: Path, name: str) -> None:
    """Remove what micro-batches told whose checkpoint is gone: the replay begins anew, perhaps with other batches."""
    if not (namespace.folder(table, name) / namespace.CHECKPOINT).is_dir():
        namespace.discard(table, name, namespace.KEPT)


def keep_batch(rows: DataFrame, folder: Path, number: int, form: Literal["json", "parquet"]) -> None:
    """Write what a micro-batch told, in place of what it was told before.

    Args:
        rows: of it; columns of the results.
        folder: of the replay, shared with the executors.
        number: of the micro-batch.
        form: of the files.

    Raises:
        Exception: as pyspark raises it; what is there of the micro-batch then is replaced when it is repeated.
    """
    from pyspark.sql import functions as F

    marked = rows.withColumn(BATCH, F.lit(number).cast("bigint"))
    marked.write.mode("overwrite").format(form).save(str(folder / str(number)))


def discard_batch(batch: DataFrame, number: int) -> None:
    """Compute a micro-batch and keep nothing: Spark ends a query whose state is not brought to the batch's end."""
    batch.write.format("noop").mode("overwrite").save()


def kept_batches(folder: Path) -> list[str]:
    """Return the folders of all micro-batches that were kept."""
    return [str(path) for path in sorted(folder.glob("*")) if path.name.isdigit()]
