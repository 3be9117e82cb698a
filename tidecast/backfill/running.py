"""A backfill that this process runs: begun or gone on with, cancelled, listed."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from tidecast.backfill import namespace
from tidecast.backfill.spec import SEVERAL_LENGTHS, BackfillError, Spec, check_name, check_range, overlapping
from tidecast.merge.columns import NOTHING_TOLD
from tidecast.merge.table import TableForm, length_of_windows, read_form
from tidecast.signed.aggregate import VERSION
from tidecast.signed.columns import END, START
from tidecast.signed.sink import DELETED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass
class Backfill:
    """A backfill with its lease, which ends with `close` (a context manager calls it) or with the process.

    Attributes:
        spark: a session with Delta.
        form: of the live table.
        spec: as it stands on disk.
        lease: the open file that is locked.
    """

    spark: SparkSession
    form: TableForm
    spec: Spec
    lease: int

    @property
    def table(self) -> Path:
        """Where the live table lies."""
        return Path(self.form.table)

    @property
    def shadow(self) -> Path:
        """Where the replay's windows are written."""
        return namespace.folder(self.table, self.spec.name) / namespace.SHADOW

    @property
    def checkpoint(self) -> Path:
        """Where a replay by micro-batches has its checkpoint; later rounds are batches and have none."""
        return namespace.folder(self.table, self.spec.name) / namespace.CHECKPOINT / str(self.spec.rounds[0].number)

    def save(self, spec: Spec) -> None:
        """Put the spec on disk, then take it for this one."""
        namespace.write_spec(self.table, spec)
        self.spec = spec

    def close(self) -> None:
        """Give the lease back; shadow table and spec stay."""
        if self.lease >= 0:
            os.close(self.lease)
            self.lease = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True)
class Listed:
    """A backfill of a table, and whether a process runs it now."""

    spec: Spec
    running: bool


def prepare(
    spark: SparkSession, table: Path, name: str, begin: int, end: int, plan: str,
    now: int | None = None, follow: bool = False, most: int | None = None,
) -> Backfill:  # fmt: skip
    """Begin a backfill, or go on with the one of this id; notes the live version, so cut the replay's source after it.

    One that was killed goes on where it stood: `spec.last.written` says whether the replay has to be written still. One
    that was published begins anew as it is asked for now, unless it is to follow what live changed since and has its
    shadow table still; so does a gap that was begun with another plan.

    Args:
        spark: a session with Delta.
        table: path of the live table, which `MergeSink` writes.
        name: the id; a folder beside the table is named by it.
        begin: event time, ms since the epoch; windows that begin at it or later and end by `end` are replaced.
        end: likewise.
        plan: version of the plan that is replayed.
        now: the job's clock, ms since the epoch; None: the wall's.
        follow: go on with a published one, to recompute only the windows that live changed since.
        most: of a gap, the newest live version that the source holds, which was cut before this; what live told later
            is computed again.

    Raises:
        BackfillError: the range, the id or the table does not fit, windows of several lengths stand in the range, or
            another backfill has the range or this id.
        MergeError: the table is a sink that does not merge.
        OSError: the folder beside the table cannot be written.
    """
    check_name(name)
    check_range(begin, end, int(time.time() * 1000) if now is None else now)
    form = _read_form(spark, table)
    standing = f"NOT {DELETED} AND {START} < {end} AND {END} > {begin}"  # others may be of a plan of before
    length_of_windows(spark, form.table, BackfillError, SEVERAL_LENGTHS, standing)
    wanted = Spec(name, form.table, begin, end, plan, form.keys)
    with namespace.alone(table):
        known = namespace.read_spec(table, name)
        begun = _begun(known, wanted, follow, gap=most is not None)
        check_range_is_free(table, wanted)
        lease = namespace.take_lease(table, name)
        anew = wanted if known is None else replace(wanted, next_round=known.next_round)
        backfill = Backfill(spark, form, begun or anew, lease)
        try:
            if begun is None:
                # The spec first: where this is killed, nothing goes on from a part of what was written.
                namespace.discard(table, name, namespace.SPEC, *namespace.WRITTEN)
                mark, at = newest(backfill)
                backfill.save(backfill.spec.started_over(mark if most is None else min(mark, most), at))
            _supersede(table, backfill.spec)
        except BaseException:
            backfill.close()
            raise
    return backfill


def cancel(table: Path, name: str) -> bool:
    """Remove a backfill's shadow table, checkpoint, files and spec, and nothing else; what it published stays.

    Returns:
        Whether there was one.

    Raises:
        BackfillError: it is running.
        OSError: a file cannot be removed; cancel again then.
    """
    check_name(name)
    if not namespace.folder(table, name).is_dir():
        return False
    with namespace.alone(table):
        lease = namespace.take_lease(table, name)
        try:
            namespace.remove(table, name)
        finally:
            os.close(lease)
    return True


def list_backfills(table: Path) -> list[Listed]:
    """Return the backfills of a table, by id.

    Raises:
        BackfillError: the spec of one is broken.
    """
    return [Listed(spec, namespace.runs(table, spec.name)) for spec in namespace.specs(table)]


def newest(backfill: Backfill) -> tuple[int, int]:
    """Return the newest live version that the table has, and the Delta version in which it was looked for."""
    from pyspark.sql import functions as F

    at = table_version(backfill.table)
    found = rows_at(backfill.spark, backfill.table, at).agg(F.max(VERSION)).collect()[0][0]
    return (NOTHING_TOLD if found is None else found), at


def table_version(table: Path) -> int:
    """Return the newest Delta version of a table that exists."""
    return max(int(path.stem) for path in (table / "_delta_log").glob("*.json") if path.stem.isdigit())


def rows_at(spark: SparkSession, table: Path, version: int) -> DataFrame:
    """Return all rows of a table, the deleted ones too, as they stood at a Delta version."""
    return spark.read.format("delta").option("versionAsOf", version).load(str(table))


def _read_form(spark: SparkSession, table: Path) -> TableForm:
    if not table.is_absolute():
        raise BackfillError(f"table {table}: give its absolute path")
    form = read_form(spark, str(table))
    if form is None:
        raise BackfillError(
            f"{table} is no Delta table, so it is a sink that does not merge: refused for overlaps; write the live"
            " query by tidecast.merge.MergeSink"
        )
    return form


def _begun(known: Spec | None, wanted: Spec, follow: bool, gap: bool) -> Spec | None:
    """What of a backfill is gone on with; None where it begins anew."""
    if known is None or (known.state != "open" and not follow) or (gap and known.plan != wanted.plan):
        return None
    check_same(known, wanted)
    shadow = namespace.folder(Path(wanted.table), wanted.name) / namespace.SHADOW
    return known if known.state == "open" or shadow.is_dir() else None


def check_same(known: Spec, wanted: Spec) -> None:
    """Refuse to go on with a backfill as another one than it was begun as.

    Raises:
        BackfillError: range, plan or keys differ, or a later one took over its range.
    """
    for field in ("begin", "end", "plan", "keys"):
        if (its := getattr(known, field)) != (asked := getattr(wanted, field)):
            remedy = "give another id, or cancel it"
            if field in ("plan", "keys"):  # another id would be refused, too: it has the same range
                remedy = "cancel it, and order the range again"
            raise BackfillError(f"backfill {known.words} exists with {field} {its!r}, not {asked!r}: {remedy}")
    if known.state == "superseded":
        raise BackfillError(
            f"backfill {known.words} was published, and a later one took over its range: give another id, or cancel it"
        )


def check_range_is_free(table: Path, spec: Spec) -> None:
    """Refuse a range of which another backfill beside the same table has a part.

    Raises:
        LeaseError: the other one runs.
        BackfillError: it was begun and is not published.
    """
    for other in overlapping(spec, namespace.specs(table)):
        if running := namespace.runs(table, other.name):
            raise namespace.LeaseError(
                f"backfill {other.words} is running over a part of {spec.words}: wait until it ends"
            )
        if other.state == "open" and not running:
            raise BackfillError(
                f"backfill {other.words} over a part of {spec.words} was begun and is not published: go on with it, or"
                " cancel it"
            )


def _supersede(table: Path, spec: Spec) -> None:
    """Published backfills of this range publish no more: what they hold is older."""
    for other in overlapping(spec, namespace.specs(table)):
        namespace.write_spec(table, replace(other, state="superseded"))
