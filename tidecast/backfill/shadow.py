"""The replay's side: its windows, written into a shadow table of its own, and rounds of what live changed meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from tidecast.backfill import namespace
from tidecast.backfill.kept import BATCH, discard_batch, discard_orphans, keep_batch, kept_batches, kept_folder
from tidecast.backfill.room import refuse_full_disk
from tidecast.backfill.running import Backfill, newest, rows_at
from tidecast.backfill.spec import BackfillError
from tidecast.merge.columns import COVERS, version_of
from tidecast.merge.results import results
from tidecast.merge.table import check_values
from tidecast.merge.upsert import upsert, within
from tidecast.signed.aggregate import VERSION
from tidecast.signed.columns import START, same_as
from tidecast.signed.sink import DELETED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def write(backfill: Backfill, replayed: DataFrame) -> None:
    """Write the results of a round as one batch; a round that is written again is replaced.

    Windows that do not lie wholly in the range are left out: the replay saw a part of their records only.

    Args:
        backfill: prepared, or at a further round.
        replayed: of the plan on the source, cut after `prepare` or `begin_round`: a change log, totals, a relation or
            plain results with the live table's columns. In a further round at least the windows that `begin_round`
            named.

    Raises:
        MergeError: the results have other columns than the live table.
        BackfillError: the disk is full; the live table is as it was.
        Exception: as pyspark raises it; the round is not written then.
    """
    rows = _in_range(backfill, replayed)
    with refuse_full_disk(backfill.spec, "written"):
        if len(backfill.spec.rounds) == 1:
            # A checkpoint of micro-batches would go on from what is overwritten here.
            namespace.discard(backfill.table, backfill.spec.name, namespace.CHECKPOINT, namespace.KEPT)
            _replace(backfill, rows)
        else:
            _merge(backfill, rows)
    backfill.save(backfill.spec.with_written())


def sink(backfill: Backfill) -> Callable[[DataFrame, int], None]:
    """Return what a replay by micro-batches gives to `foreachBatch`, with `backfill.checkpoint` as its checkpoint.

    Micro-batches are kept in files, and come into the shadow table when the query has come to its end: call `finish`
    then. A killed replay goes on where its checkpoint stands; once it is written, nothing more is kept. Its plan has to
    tell every change (not `final` results, which wait for a watermark that a bounded source does not reach), and none
    of its records may count as late.

    Raises:
        BackfillError: it is a further round, which is one batch.
    """
    _refuse_further(backfill)
    if backfill.spec.last.written:
        return discard_batch
    folder = kept_folder(backfill.table, backfill.spec.name)
    discard_orphans(backfill.table, backfill.spec.name)

    def take(batch: DataFrame, batch_id: int) -> None:
        rows = _in_range(backfill, batch)
        with refuse_full_disk(backfill.spec, "written"):
            keep_batch(rows, folder, batch_id, "parquet")

    return take


def finish(backfill: Backfill) -> None:
    """Put into the shadow table what a replay by micro-batches has told of each window last, in one commit.

    It may be killed and repeated; once the replay is written only the files go.

    Raises:
        BackfillError: nothing was told, it is a further round, or the disk is full; the live table is as it was.
        Exception: as pyspark raises it.
    """
    _refuse_further(backfill)
    if not backfill.spec.last.written:
        batches = kept_batches(kept_folder(backfill.table, backfill.spec.name))
        if not batches:
            raise BackfillError(f"backfill {backfill.spec.words} has told nothing: write its replay first")
        with refuse_full_disk(backfill.spec, "written"):
            _replace(backfill, _last_told(backfill, backfill.spark.read.parquet(*batches)))
        backfill.save(backfill.spec.with_written())
    namespace.discard(backfill.table, backfill.spec.name, namespace.KEPT)


def _refuse_further(backfill: Backfill) -> None:
    if len(backfill.spec.rounds) > 1:
        raise BackfillError(
            f"round {len(backfill.spec.rounds)} of backfill {backfill.spec.words}: write it as one batch"
        )


def begin_round(backfill: Backfill) -> DataFrame | None:
    """Begin a round of the windows that live changed since the one before; None where there are none.

    The live version is noted anew: cut the replay's source after this.

    Returns:
        Key and window of each, to be computed again and given to `write`.

    Raises:
        BackfillError: the round before is not written.
    """
    spec = backfill.spec
    done = [one for one in spec.rounds if one.written]
    if not done:
        raise BackfillError(f"backfill {spec.words}: write its replay before windows are computed again")
    mark, at = newest(backfill)
    if mark <= done[-1].mark:
        return None
    windows = changed_windows(backfill, done[-1].mark, at)
    if windows.isEmpty():
        return None
    backfill.save(spec.with_round(mark, at))
    return windows


def changed_windows(backfill: Backfill, mark: int, at: int) -> DataFrame:
    """Return key and window of what live told in the range after a version, as the table stood at a Delta version."""
    from pyspark.sql import functions as F

    spec = backfill.spec
    rows = rows_at(backfill.spark, backfill.table, at).alias("t").where(within(spec.begin, spec.end))
    return rows.where(F.col(VERSION) > mark).select(*backfill.form.group)


def first_ms(windows: DataFrame) -> int | None:
    """Return the begin of the first of some windows, ms of event time; None of none."""
    from pyspark.sql import functions as F

    first = windows.agg(F.min(START)).collect()[0][0]
    return None if first is None else int(first)


def _in_range(backfill: Backfill, replayed: DataFrame) -> DataFrame:
    spec = backfill.spec
    rows = results(replayed, spec.keys)
    check_values(backfill.form, rows.schema)
    rows = rows.alias("t").where(within(spec.begin, spec.end))
    return rows.select(*backfill.form.group, *backfill.form.values, DELETED)


def _last_told(backfill: Backfill, told: DataFrame) -> DataFrame:
    """Of each window what the newest micro-batch told."""
    from pyspark.sql import functions as F

    last = F.max_by(F.struct(*backfill.form.values, DELETED), BATCH).alias("_last")
    rows = told.groupBy(*backfill.form.group).agg(last)
    return rows.select(*backfill.form.group, "_last.*")


def _replace(backfill: Backfill, rows: DataFrame) -> None:
    """The whole shadow, in one commit; what a killed replay has left of one goes before."""
    from pyspark.sql import functions as F

    if not backfill.spec.last.written:
        namespace.discard(backfill.table, backfill.spec.name, namespace.SHADOW)
    version = version_of(backfill.spec.last.number, 0)
    marked = rows.withColumns({VERSION: F.lit(version).cast("bigint"), COVERS: F.lit(None).cast("bigint")})
    marked.write.format("delta").mode("overwrite").save(str(backfill.shadow))


def _merge(backfill: Backfill, rows: DataFrame) -> None:
    """The windows of this round, those without a result as deleted."""
    from pyspark.sql import functions as F

    one, before = backfill.spec.rounds[-1], backfill.spec.rounds[-2]
    on = {name: f"_of_{i}" for i, name in enumerate(backfill.form.group)}
    windows = changed_windows(backfill, before.mark, one.table_version)
    found = rows.where(~F.col(DELETED)).withColumnsRenamed(on)
    joined = windows.join(found, same_as(on), "left").drop(*on.values())
    told = joined.withColumn(DELETED, F.coalesce(DELETED, F.lit(True)))
    # No round before had this number: nothing of it can be there already.
    upsert(replace(backfill.form, table=str(backfill.shadow)), told, version_of(one.number, 0), repeated=False)
