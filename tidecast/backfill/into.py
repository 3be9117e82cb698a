"""A job's side of replays whose results go into the table that its live query merges into."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidecast.backfill import namespace
from tidecast.backfill.difference import compare
from tidecast.backfill.publish import publish_round, settle
from tidecast.backfill.room import refuse_full_disk
from tidecast.backfill.running import Backfill, cancel, prepare
from tidecast.backfill.shadow import finish, sink
from tidecast.backfill.spec import BackfillError
from tidecast.backfill.summary import count
from tidecast.merge.table import read_form
from tidecast.orders import ReplayOrder
from tidecast.replay.dry_run import first_batch
from tidecast.replay.replayable import Replayable
from tidecast.replay.source import read_again, replay_stream
from tidecast.signed.columns import START

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def replay_into(
    spark: SparkSession, table: str, plan: Callable[[DataFrame], DataFrame], source: Mapping[str, str],
    version: str = "1", output_mode: str = "append", trigger: str = "1 second", tolerance: float = 0.0,
    still_open: Callable[[ReplayOrder], str] = lambda order: "", orders: tuple[ReplayOrder, ...] = (),
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
        still_open: says why live may yet tell windows of an order's range, "" where it will not; until then they are
            computed again from time to time.
        orders: that the job places itself (`Replayable.orders`).
    """
    known: dict[str, Backfill] = {}

    def start(order: ReplayOrder) -> Any:
        if order.begin_ms is None or order.end_ms is None:
            raise BackfillError(f"replay {order.id} has no range of event time: order it with begin_ms and end_ms")
        _check_plan(spark, table, order, version)
        if order.id in known:
            known.pop(order.id).close()
        # Live results of the range may change while it is read; those are found by their version and computed again.
        backfill = prepare(
            spark, Path(table), order.id, order.begin_ms, order.end_ms, version, now=order.end_ms, most=order.holds
        )
        known[order.id] = backfill
        with refuse_full_disk(backfill, "copied"):
            stream = replay_stream(spark, order, source, namespace.folder(Path(table), order.id) / namespace.RANGE)
        return (
            plan(stream).writeStream.foreachBatch(_taken(backfill))
            .option("checkpointLocation", str(backfill.checkpoint)).outputMode(output_mode)
            .trigger(processingTime=trigger).start()
        )  # fmt: skip

    def tell(order: ReplayOrder) -> str:
        return compare(_written(known[order.id]), tolerance).text()

    def publish(order: ReplayOrder) -> str:
        backfill = known.pop(order.id)
        try:
            why = settled(backfill, order)
        except BaseException:
            backfill.close()
            raise
        if why:
            known[order.id] = backfill
        else:
            namespace.discard(Path(table), order.id, namespace.RANGE)
            backfill.close()
        return why

    def settled(backfill: Backfill, order: ReplayOrder) -> str:
        """Why it has to be published again; "" once all of it is settled."""
        _written(backfill)

        def recompute(windows: DataFrame) -> DataFrame:
            return plan(read_again(spark, order, source, _first_ms(windows)))

        if why := still_open(order):
            told = publish_round(backfill, recompute, tolerance, last=False)
            return f"{count(told.waiting)} windows wait to be computed again; {why}" if told.waiting else why
        settle(backfill, recompute, tolerance=tolerance)
        return ""

    def remove(order: ReplayOrder) -> None:
        if order.id in known:
            known.pop(order.id).close()
        cancel(Path(table), order.id)

    def dry_run(order: ReplayOrder) -> None:
        with namespace.for_now(Path(table), order.id) as folder:
            results = plan(replay_stream(spark, order, source)).writeStream.foreachBatch(_discard)
            results = results.option("checkpointLocation", str(folder / namespace.CHECKPOINT))
            first_batch(results.outputMode(output_mode).start())

    def close() -> None:
        while known:
            known.popitem()[1].close()

    return Replayable(start, publish, remove, tell, orders, dry_run, close)


def _written(backfill: Backfill) -> Backfill:
    """The backfill, its range noted as written; a later round that was killed is not: it is begun again."""
    if len(backfill.spec.rounds) == 1 and not backfill.spec.last.written:
        finish(backfill)
    return backfill


def _check_plan(spark: SparkSession, table: str, order: ReplayOrder, version: str) -> None:
    """Refuse at once what could not be published later; a gap may come before live's first batch."""
    form = read_form(spark, table)
    if order.then == "publish" and order.holds is None and form is not None and form.plan != version:
        raise BackfillError(
            f"replay {order.id} runs plan {version!r}, the live query runs {form.plan!r}: it can be compared only"
            " (order it with --compare) until that plan is promoted (start the live query with it: MergeSink's plan)"
        )


def _taken(backfill: Backfill) -> Callable[[DataFrame, int], None]:
    """What the replay's query writes by; one that was killed in a later round has nothing more to write."""
    return sink(backfill) if len(backfill.spec.rounds) == 1 else _discard


def _discard(batch: DataFrame, batch_id: int) -> None:
    """Compute a batch and keep nothing: Spark ends a query whose state is not brought to the batch's end."""
    batch.write.format("noop").mode("overwrite").save()


def _first_ms(windows: DataFrame) -> int | None:
    """Begin of the first of some windows."""
    from pyspark.sql import functions as F

    first = windows.agg(F.min(START)).collect()[0][0]
    return None if first is None else int(first)
