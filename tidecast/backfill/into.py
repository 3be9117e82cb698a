"""A job's side of replays whose results go into the table that its live query merges into."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidecast.backfill import namespace
from tidecast.backfill.difference import compare
from tidecast.backfill.final import check_final, live_query, why_open
from tidecast.backfill.kept import discard_batch
from tidecast.backfill.publish import PROMOTE, publish_round, settle
from tidecast.backfill.room import refuse_full_disk
from tidecast.backfill.running import Backfill, cancel, prepare
from tidecast.backfill.shadow import finish, first_ms, sink
from tidecast.backfill.spec import BackfillError
from tidecast.backfill.summary import count
from tidecast.merge.table import read_form
from tidecast.orders import ReplayOrder
from tidecast.replay.dry_run import first_batch
from tidecast.replay.own_session import own_session, start_replay
from tidecast.replay.replayable import Replayable
from tidecast.replay.source import read_again, replay_stream
from tidecast.spark.file_system import refuse_other_file_system

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Ends = Mapping[tuple[str, int], int] | None
"""Offsets by (topic, partition)."""


@dataclass(frozen=True)
class TableReplays:
    """Replays of one job into one table; `replay_into` says what each attribute is."""

    spark: SparkSession
    table: Path
    plan: Callable[[DataFrame], DataFrame]
    ranged: Callable[[DataFrame, int, int], DataFrame] | None
    source: Mapping[str, str] = field(repr=False)  # with passwords
    version: str
    output_mode: str
    trigger: str
    tolerance: float
    still_open: Callable[[ReplayOrder], str]
    ends: Callable[[ReplayOrder], Ends]
    open: dict[str, Backfill] = field(default_factory=dict)
    closed: threading.Event = field(default_factory=threading.Event)

    def start(self, order: ReplayOrder) -> Any:
        """Start an order's query, which writes into a shadow table, or go on where it was.

        Raises:
            BackfillError: the order has no range of event time, or one that live records may still change or another
                replay has a part of; its plan is not the live query's; the disk is full.
            Exception: as pyspark raises it.
        """
        if order.begin_ms is None or order.end_ms is None:
            raise BackfillError(f"replay {order.id} has no range of event time: order it with begin_ms and end_ms")
        self._check_live(order, order.end_ms)
        self.closed.clear()
        self._leave(order.id)
        # Live results of the range may change while it is read; those are found by their version and computed again.
        backfill = prepare(
            self.spark, self.table, order.id, order.begin_ms, order.end_ms, self.version,
            now=order.end_ms, most=order.holds,
        )  # fmt: skip
        self.open[order.id] = backfill
        with refuse_full_disk(backfill.spec, "copied"):
            copy = namespace.folder(self.table, order.id) / namespace.RANGE
            stream = replay_stream(self.spark, order, self.source, copy)
        taken = self._writer(order, stream, _batch_writer(backfill), backfill.checkpoint)
        return start_replay(taken.trigger(processingTime=self.trigger), self.output_mode, self.spark)

    def dry_run(self, order: ReplayOrder) -> None:
        """Run an order's first batch, and keep nothing of it.

        Raises:
            BackfillError: another process does it just now.
            Exception: as pyspark raises it.
        """
        with namespace.for_now(self.table, order.id) as own:
            stream = replay_stream(self.spark, order, self.source)
            first_batch(self._writer(order, stream, discard_batch, own / namespace.CHECKPOINT).start())

    def compare(self, order: ReplayOrder) -> str:
        """Return in words what a publish would change, once all of the range is read; nothing is changed."""
        backfill = self.open.pop(order.id)  # or an agent that ends would let another one begin meanwhile
        try:
            return compare(_finish_first_round(backfill), self.tolerance).text()
        finally:
            self._keep_open(order.id, backfill)

    def publish(self, order: ReplayOrder) -> str:
        """Bring what the replay has written into the table, once all of the range is read.

        Returns:
            Why it has to be called again, where live may still tell windows of the range, or has not said so yet; else
            nothing.

        Raises:
            Exception: as pyspark raises it; the replay can be started again, and a gap's publication be called again.
        """
        backfill = self.open.pop(order.id)
        try:
            why = self._publish_settled(backfill, order)
        except BaseException:
            if order.holds is None:
                backfill.close()
            else:
                self._keep_open(order.id, backfill)
            raise
        if why:
            self._keep_open(order.id, backfill)
            return why
        namespace.discard_written(self.table, order.id)
        backfill.close()
        return ""

    def cancel(self, order: ReplayOrder) -> None:
        """Remove what an order's replay has written; the table has nothing of it."""
        self._leave(order.id)
        cancel(self.table, order.id)

    def note_end(self, over: ReplayOrder) -> None:
        """Keep when a replay ended, beside the table."""
        namespace.note_end(self.table, over.id, over.wall_time)

    def end_of(self, name: str) -> float:
        """Return when a replay ended, epoch seconds; 0: never."""
        return namespace.end_of(self.table, name)

    def close(self) -> None:
        """Let go of all of them, of one that is just published or compared once it is; another process may go on."""
        self.closed.set()
        for name in list(self.open):
            self._leave(name)

    def _writer(
        self, order: ReplayOrder, stream: DataFrame, write: Callable[[DataFrame, int], None], checkpoint: Path
    ) -> Any:
        if self.ranged is None or order.begin_ms is None or order.end_ms is None:
            results = self.plan(stream)
        else:
            results = self.ranged(stream, order.begin_ms, order.end_ms)
        writer = results.writeStream.foreachBatch(write)
        return writer.option("checkpointLocation", str(checkpoint)).outputMode(self.output_mode)

    def _publish_settled(self, backfill: Backfill, order: ReplayOrder) -> str:
        """Publish what can be; return why it has to be done again, "" once all of it is settled."""
        _finish_first_round(backfill)
        if order.holds is None:  # a gap is published in rounds, as far as it goes
            live = live_query(self.spark, backfill.form.query)
            if live is not None and (why := why_open(live, backfill.spec.end)):
                return why
        why = self.still_open(order)

        def recompute(windows: DataFrame) -> DataFrame:
            # Asked behind the round's mark: a partition of which live has told something by then is there.
            return self.plan(read_again(self.spark, order, self.source, first_ms(windows), self.ends(order)))

        if why:
            told = publish_round(backfill, recompute, self.tolerance, last=False)
            return f"{count(told.waiting)} windows wait to be computed again; {why}" if told.waiting else why
        settle(backfill, recompute, tolerance=self.tolerance)
        return ""

    def _keep_open(self, name: str, backfill: Backfill) -> None:
        self.open[name] = backfill
        if self.closed.is_set():  # meanwhile: nobody else would let go of it
            self._leave(name)

    def _leave(self, name: str) -> None:
        backfill = self.open.pop(name, None)
        if backfill is not None:
            backfill.close()

    def _check_live(self, order: ReplayOrder, end_ms: int) -> None:
        """Refuse at once what could not be published, or not for good; a gap may come before live's first batch."""
        form = None if order.holds is not None else read_form(self.spark, str(self.table))
        if form is None:
            return
        if order.then == "publish" and form.plan != self.version:
            raise BackfillError(
                f"replay {order.id} runs plan {self.version!r}, the live query runs {form.plan!r}: it can be compared"
                f" only (order it with --compare) until that plan is promoted ({PROMOTE})"
            )
        if (live := live_query(self.spark, form.query)) is not None:  # one of another application tells whoever orders
            check_final(live, end_ms, order.id)


def replay_into(
    spark: SparkSession, table: str, plan: Callable[[DataFrame], DataFrame], source: Mapping[str, str],
    version: str = "1", output_mode: str = "append", trigger: str = "200 milliseconds", tolerance: float = 0.0,
    still_open: Callable[[ReplayOrder], str] = lambda order: "",
    ends: Callable[[ReplayOrder], Ends] = lambda order: None, orders: tuple[ReplayOrder, ...] = (),
    ranged: Callable[[DataFrame, int, int], DataFrame] | None = None,
) -> Replayable:  # fmt: skip
    """Return how ranges of a job are read again so that their results correct the table of its live query, exactly.

    A replay writes into a shadow table beside the live one, which is published in one commit once the range is read;
    windows that live records have changed meanwhile are computed again, as a batch. A replay that was killed goes on
    where it was, a cancelled one leaves nothing behind, and a repeated one changes nothing. One that is to be compared
    stays in its shadow table until it is ordered to be published.

    Args:
        spark: the live query's session, with Delta; replays run in a session of their own with its settings.
        table: absolute path of the table that the live query writes by `tidecast.merge.MergeSink`.
        plan: from records, with the columns of Spark's Kafka source, to results, as the live query has them: a change
            log or totals. It is given a stream, and tables for what is computed again.
        source: options of the Kafka source beside its range: broker and security.
        version: of the plan; one that is not the live query's can be compared and is not published.
        output_mode: of the replay's query: `append` for change logs, `update` for totals.
        trigger: from micro-batch to micro-batch.
        tolerance: relative difference up to which doubles count as equal.
        still_open: says why live may yet tell windows of an order's range; until it is "", they are computed again.
        ends: says of every partition that is there, at each round, from which offset on no record is of an order's
            range (`tidecast.replay.source.LATEST`: all that came is looked at); None: of those of the order all is.
        orders: that the job places itself (`Replayable.orders`).
        ranged: the plan of a replay's stream, where that is another function; it is given begin and end of the range,
            too (ms of event time). None of the range's records may be late for it; `plan` then computes tables only.

    Raises:
        BackfillError: Spark looks for the table on another file system than this process, as on HDFS.
    """
    refuse_other_file_system(spark, BackfillError)
    own = TableReplays(
        own_session(spark), Path(table), plan, ranged, source, version, output_mode, trigger, tolerance, still_open,
        ends,
    )  # fmt: skip
    return Replayable(
        own.start, own.publish, own.cancel, own.compare, orders, own.dry_run, own.close, own.note_end, own.end_of,
        lambda name: namespace.has_begun(own.table, name),
    )  # fmt: skip


def _finish_first_round(backfill: Backfill) -> Backfill:
    """Put what the replay's micro-batches told into the shadow table; a later round that was killed is begun again."""
    if len(backfill.spec.rounds) == 1:
        finish(backfill)
    return backfill


def _batch_writer(backfill: Backfill) -> Callable[[DataFrame, int], None]:
    """What the replay's query writes by; one that was killed in a later round has nothing more to write."""
    return sink(backfill) if len(backfill.spec.rounds) == 1 else discard_batch
