"""A shadow table's windows put into the live table: one Delta commit, and rounds until live has changed none since."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidecast.backfill.difference import DUE, differences, summarise
from tidecast.backfill.room import refuse_full_disk
from tidecast.backfill.running import Backfill, table_version
from tidecast.backfill.shadow import begin_round, changed_windows, write
from tidecast.backfill.spec import BackfillError
from tidecast.backfill.summary import Summary, count
from tidecast.merge.columns import COVERS
from tidecast.merge.table import read_form
from tidecast.merge.upsert import correction, merge, retried, within
from tidecast.replay.own_session import own_session
from tidecast.signed.aggregate import VERSION
from tidecast.signed.sink import DELETED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PROMOTE = (
    "start the live query with it: MergeSink's plan, and a new checkpoint with one more epoch if aggregates, joins or"
    " keys changed"
)
_METADATA = "spark.databricks.delta.commitInfo.userMetadata"


@dataclass(frozen=True)
class Publication:
    """What a publish did.

    Attributes:
        summary: how many windows it found to differ; `due` of them were written.
        committed: whether it made a commit; where nothing was due it made none.
        waiting: windows of the range that live has told since the replay noted its version, and that were left as live
            told them: they are to be computed again.
    """

    summary: Summary
    committed: bool
    waiting: int


def publish(backfill: Backfill, tolerance: float = 0.0, attempts: int = 10, last: bool = True) -> Publication:
    """Put the replay's windows into the live table in one commit, all but those that live changed meanwhile.

    Windows of the range that differ are replaced, missing ones inserted, those that the replay has not are deleted; all
    others stay as they are. Where another writer's commit comes between, everything is compared anew.

    Args:
        backfill: with its newest round written.
        tolerance: relative difference up to which doubles count as equal.
        attempts: times that it is tried while other writers come between.
        last: whether it is over if nothing waits; False: live may still tell windows of the range.

    Raises:
        BackfillError: the replay is not written to its end, its windows are of several lengths, its plan is not the
            live query's, the disk is full, or other writers came between each time; the table is as it was.
        Exception: as pyspark raises it; the table is as it was.
    """
    if attempts < 1:
        raise BackfillError(f"{attempts} attempts to publish {backfill.spec.words}: give 1 or more")
    with refuse_full_disk(backfill.spec, "published"):
        summary, left_at = retried(lambda: _published(backfill, tolerance), attempts)
        at, waiting = table_version(backfill.table), summary.changed
        if at != left_at:  # another writer came by
            waiting = changed_windows(backfill, backfill.spec.last.mark, at).count()
        if last and not waiting:
            backfill.save(replace(backfill.spec, state="published"))
    return Publication(summary, summary.due > 0, waiting)


def publish_round(
    backfill: Backfill, recompute: Callable[[DataFrame], DataFrame], tolerance: float = 0.0, last: bool = True
) -> Publication:
    """Compute again what live changed since the round before, and publish.

    Args:
        backfill: with a round written.
        recompute: as `settle` takes it.
        tolerance: relative difference up to which doubles count as equal.
        last: as `publish` takes it.

    Raises:
        BackfillError: as `publish` raises it.
    """
    windows = begin_round(backfill)
    if windows is not None:
        write(backfill, recompute(windows))
    return publish(backfill, tolerance, last=last)


def settle(
    backfill: Backfill, recompute: Callable[[DataFrame], DataFrame], rounds: int = 10, tolerance: float = 0.0
) -> Publication:
    """Publish, and compute again what live changed meanwhile, until there is nothing left of it.

    Args:
        backfill: with its newest round written.
        recompute: gives the results of some windows (key and window) from a source that it cuts when it is called; it
            may give more.
        rounds: how often, at most.
        tolerance: relative difference up to which doubles count as equal.

    Raises:
        BackfillError: live still changes windows after so many rounds, or as `publish` raises it.
    """
    told = None
    for _ in range(rounds):
        told = publish_round(backfill, recompute, tolerance)
        if not told.waiting:
            return told
    left = count(told.waiting) if told else "unknown"
    raise BackfillError(
        f"backfill {backfill.spec.words}: live still changes windows of the range after {rounds} rounds, {left} wait:"
        " end the range before the windows that live has open, or give more rounds"
    )


def _published(backfill: Backfill, tolerance: float) -> tuple[Summary, int]:
    """One attempt, from what stands in the table now; and its Delta version then, if nobody else writes meanwhile."""
    from pyspark.sql import functions as F

    spec = backfill.spec
    spark = own_session(backfill.spark)  # what is set in it is this commit's alone
    form = read_form(spark, backfill.form.table)
    if form is None:
        raise BackfillError(f"{backfill.table} is gone: nothing can be published into it")
    if form.plan != spec.plan:
        raise BackfillError(
            f"backfill {spec.words} runs plan {spec.plan!r}, the live query runs {form.plan!r}: it can be compared only"
            f" until that plan is promoted ({PROMOTE})"
        )
    at = table_version(backfill.table)
    with differences(backfill, spark, at, tolerance) as windows:
        summary = summarise(windows)
        if summary.due:
            spark.conf.set(_METADATA, json.dumps({"backfill": spec.name, "round": spec.last.number}))
            mark = F.lit(spec.last.mark).cast("bigint")
            due = windows.where(F.col(DUE))
            source = due.select(
                *form.group, *(F.col("_new")[name].alias(name) for name in form.values),
                F.col("_new").isNull().alias(DELETED), mark.alias(VERSION), mark.alias(COVERS),
            )  # fmt: skip
            told = merge(form, source, within(spec.begin, spec.end), correction(form)).collect()
            if any(row["num_affected_rows"] for row in told):  # of none there may be no commit
                at += 1
    return summary, at
