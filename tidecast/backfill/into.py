"""A job's side of replays whose results go into the table that its live query merges into."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidecast.backfill.difference import compare
from tidecast.backfill.publish import settle
from tidecast.backfill.running import Backfill, cancel, prepare
from tidecast.backfill.shadow import finish, sink
from tidecast.backfill.spec import BackfillError
from tidecast.merge.table import read_form
from tidecast.orders import ReplayOrder
from tidecast.replay.driver import Replayable
from tidecast.replay.source import replay_stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def replay_into(
    spark: SparkSession, table: str, plan: Callable[[DataFrame], DataFrame], source: Mapping[str, str],
    version: str = "1", output_mode: str = "append", trigger: str = "1 second", tolerance: float = 0.0,
) -> Replayable:  # fmt: skip
    """Return how ranges of a job are read again so that their results correct the table of its live query, exactly.

    A replay writes into a shadow table beside the live one, which is published in one commit once the range is read;
    windows that live records have changed meanwhile are computed again, as a batch. A replay that was killed goes on
    where it was, a cancelled one leaves nothing behind, and a repeated one changes nothing. One that is to be compared
    stays in its shadow table until it is ordered to be published.

    Args:
        spark: the live query's session, with Delta.
        table: absolute path of the table that the live query writes by `tidecast.merge.MergeSink`.
        plan: from records, with the columns of Spark's Kafka source, to results, as the live query has them: a change
            log or totals. It is given a stream, and tables for what is computed again.
        source: options of the Kafka source beside its range: broker and security.
        version: of the plan; one that is not the live query's can be compared and is not published.
        output_mode: of the replay's query: `append` for change logs, `update` for totals.
        trigger: from micro-batch to micro-batch.
        tolerance: relative difference up to which doubles count as equal.
    """
    known: dict[str, Backfill] = {}

    def start(order: ReplayOrder) -> Any:
        if order.begin_ms is None or order.end_ms is None:
            raise BackfillError(f"replay {order.id} has no range of event time: order it with begin_ms and end_ms")
        _check_plan(spark, table, order, version)
        if order.id in known:
            known.pop(order.id).close()
        # Live results of the range may change while it is read; those are found by their version and computed again.
        backfill = prepare(spark, Path(table), order.id, order.begin_ms, order.end_ms, version, now=order.end_ms)
        known[order.id] = backfill
        return (
            plan(replay_stream(spark, order, source)).writeStream.foreachBatch(sink(backfill))
            .option("checkpointLocation", str(backfill.checkpoint)).outputMode(output_mode)
            .trigger(processingTime=trigger).start()
        )  # fmt: skip

    def tell(order: ReplayOrder) -> str:
        return compare(_written(known[order.id]), tolerance).text()

    def publish(order: ReplayOrder) -> None:
        with known.pop(order.id) as backfill:
            _written(backfill)
            settle(backfill, lambda windows: plan(_read(spark, order, source)), tolerance=tolerance)

    def remove(order: ReplayOrder) -> None:
        if order.id in known:
            known.pop(order.id).close()
        cancel(Path(table), order.id)

    return Replayable(start, publish, remove, tell)


def _written(backfill: Backfill) -> Backfill:
    if not backfill.spec.last.written:
        finish(backfill)
    return backfill


def _check_plan(spark: SparkSession, table: str, order: ReplayOrder, version: str) -> None:
    """Refuse before anything is read what could not be published after it."""
    form = read_form(spark, table)
    if order.then == "publish" and form is not None and form.plan != version:
        raise BackfillError(
            f"replay {order.id} runs plan {version!r}, the live query runs {form.plan!r}: it can be compared only"
            " (order it with --compare) until that plan is promoted (start the live query with it: MergeSink's plan)"
        )


def _read(spark: SparkSession, order: ReplayOrder, source: Mapping[str, str]) -> DataFrame:
    """The range and all that came since, as a table: what live records of it came late is in it."""
    starts = {topic: {part: at for part, at in parts.items()} for topic, parts in order.starts.items()}
    topics = {topic: sorted(int(part) for part in parts) for topic, parts in starts.items()}
    return (
        spark.read.format("kafka").options(**source).option("assign", json.dumps(topics))
        .option("startingOffsets", json.dumps(starts)).option("endingOffsets", "latest").load()
    )  # fmt: skip
