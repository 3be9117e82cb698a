"""A job's side of replays whose results go to the compacted topic that its live query writes."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidecast.backfill import namespace
from tidecast.backfill.final import check_final, why_open
from tidecast.backfill.kept import discard_orphans, kept_batches, kept_folder
from tidecast.backfill.room import refuse_full_disk
from tidecast.backfill.running import cancel, check_range_is_free, check_same
from tidecast.backfill.spec import BackfillError, Spec, check_name, check_range
from tidecast.backfill.topic.difference import differences, newest_records, summarise
from tidecast.backfill.topic.kept import check_results, keep, kept_results
from tidecast.backfill.topic.send import send_corrections
from tidecast.orders import ReplayOrder
from tidecast.replay.dry_run import first_batch
from tidecast.replay.own_session import own_session, start_replay
from tidecast.replay.replayable import Replayable
from tidecast.replay.source import replay_stream
from tidecast.spark.file_system import refuse_other_file_system

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

log = logging.getLogger("tidecast")

WINDOW = r"@(-?\d+)-(-?\d+)\z"
"""Of keys that end in `@<begin>-<end>`, the window's ends in ms of event time."""


@dataclass(frozen=True)
class TopicReplays:
    """Replays of one job into one topic; `replay_into_topic` says what each attribute is."""

    spark: SparkSession
    topic: str
    plan: Callable[[DataFrame, int, int], DataFrame]
    source: Mapping[str, str] = field(repr=False)  # with passwords
    live: StreamingQuery
    place: Path
    window: str
    output_mode: str
    trigger: str
    version: str
    leases: dict[str, int] = field(default_factory=dict)

    def start(self, order: ReplayOrder) -> Any:
        """Start an order's query, which keeps its results in files of its own, or go on where it was.

        Raises:
            BackfillError: the order has no range of event time, or one that live records may still change or another
                replay has a part of; it was begun with another plan; the plan makes no records; the disk is full.
            Exception: as pyspark raises it.
        """
        spec = self._spec(order)
        check_final(self.live, spec.end, order.id)
        begun = self._begin(spec)
        try:  # with the lease: a range of a table is copied
            with refuse_full_disk(spec, "copied", self.place):
                results = self._results(order, self._own(order.id) / namespace.RANGE)
            return self._started(order, results)
        except BaseException:
            self._leave(order.id)
            if begun:  # nothing is to be gone on with
                cancel(self.place, order.id)
            raise

    def dry_run(self, order: ReplayOrder) -> None:
        """Run an order's first batch, and remove what it has written.

        Raises:
            BackfillError: another process does it just now; the plan makes no records.
            Exception: as pyspark raises it.
        """
        results = self._results(order)
        with namespace.for_now(self.place, order.id):
            first_batch(self._started(order, results))

    def compare(self, order: ReplayOrder) -> str:
        """Return in words what a publish would change, once all of the range is read; nothing is changed.

        Raises:
            BackfillError: the replay's files are gone, or its windows are of several lengths.
        """
        return summarise(self._differences(order), self.window).text()

    def publish(self, order: ReplayOrder) -> str:
        """Send the records that differ; then remove the replay's files.

        Returns:
            Why it has to wait, where live records may still change windows of the range; else nothing.

        Raises:
            BackfillError: not all were acknowledged, publish again; or its agent has ended; or as `compare`.
            Exception: as pyspark raises it.
        """
        if why := why_open(self.live, _range(order)[1]):
            return why
        lease = self.leases.pop(order.id, None)  # or an agent that ends would let another one begin meanwhile
        if lease is None:
            raise BackfillError(f"replay {order.id}: its agent has ended; the job's next one publishes it")
        try:
            self._send(order)
            namespace.remove_published(self.place, order.id)
        finally:
            os.close(lease)
        return ""

    def cancel(self, order: ReplayOrder) -> str:
        """Remove what an order's replay has written; say so where the topic may have a part of it."""
        self._leave(order.id)
        sent = (self._own(order.id) / namespace.SENT).exists()
        cancel(self.place, order.id)
        return f"some of its corrected records may be on {self.topic}: order the range again" if sent else ""

    def note_end(self, over: ReplayOrder) -> None:
        """Keep when a replay ended, beside the files of all of them."""
        namespace.note_end(self.place, over.id, over.wall_time)

    def end_of(self, name: str) -> float:
        """Return when a replay ended, epoch seconds; 0: never."""
        return namespace.end_of(self.place, name)

    def close(self) -> None:
        """Let go of all of them, of one that is just published once it is; another process may go on."""
        for name in list(self.leases):
            self._leave(name)

    def _results(self, order: ReplayOrder, copy: Path | None = None) -> DataFrame:
        results = self.plan(replay_stream(self.spark, order, self.source, copy), *_range(order))
        check_results(results)
        return results

    def _started(self, order: ReplayOrder, results: DataFrame) -> Any:
        writer = (
            results.writeStream.foreachBatch(keep(self._spec(order), self.place, self.window))
            .option("checkpointLocation", str(self._own(order.id) / namespace.CHECKPOINT))
            .outputMode(self.output_mode).trigger(processingTime=self.trigger)
        )  # fmt: skip
        return start_replay(writer, self.output_mode, self.spark)

    def _spec(self, order: ReplayOrder) -> Spec:
        return Spec(order.id, self.topic, *_range(order), self.version, ("key",))

    def _begin(self, spec: Spec) -> bool:
        """Take the lease; return whether nothing of this replay was begun before."""
        check_name(spec.name)
        check_range(spec.begin, spec.end, spec.end)
        self._leave(spec.name)
        with namespace.alone(self.place):
            if (known := namespace.read_spec(self.place, spec.name)) is not None:
                check_same(known, spec)
            check_range_is_free(self.place, spec)
            self.leases[spec.name] = namespace.take_lease(self.place, spec.name)
            if known is None:  # what a removal that was cut off has left is of no replay
                namespace.discard(self.place, spec.name, *namespace.WRITTEN)
            discard_orphans(self.place, spec.name)
            namespace.write_spec(self.place, spec)
        return known is None

    def _leave(self, name: str) -> None:
        lease = self.leases.pop(name, None)  # a publication's thread may take it at the same time
        if lease is not None:
            os.close(lease)

    def _send(self, order: ReplayOrder) -> None:
        found = self._differences(order).persist()
        try:
            summary = summarise(found, self.window)
            if summary.due:
                (self._own(order.id) / namespace.SENT).touch()
                due = found.where("kind <> 'equal'").select("key", "partition", "new")
                rows = ((key, at, None if new is None else bytes(new)) for key, at, new in due.toLocalIterator())
                send_corrections(rows, self.topic, self.source, order.id)
            log.info("replay %s: %s", order.id, summary.text())
        finally:
            found.unpersist()

    def _differences(self, order: ReplayOrder) -> DataFrame:
        folder = kept_folder(self.place, order.id)
        if not kept_batches(folder):  # one without results leaves its folder, too
            raise BackfillError(
                f"replay {order.id} has no results in {folder}, so all of its range would count as gone: cancel it, "
                "and order the range again"
            )
        newest = newest_records(self.spark, self.topic, self.source, self.window, *_range(order))
        return differences(newest, kept_results(self.spark, folder))

    def _own(self, name: str) -> Path:
        return namespace.folder(self.place, name)


def replay_into_topic(
    spark: SparkSession, topic: str, plan: Callable[[DataFrame, int, int], DataFrame], source: Mapping[str, str],
    live: StreamingQuery, place: str, window: str = WINDOW, output_mode: str = "update",
    trigger: str = "200 milliseconds", version: str = "",
) -> Replayable:  # fmt: skip
    """Return how ranges of a job are read again so that their results correct the records of its live query, exactly.

    The live query writes a record under one key per window, of which the last one holds. A replay keeps its results in
    files beside its checkpoint; once the range is read, those that differ from the newest records are sent: a reader
    sees a window go from old to corrected. One whose acknowledgement is lost may be there twice, alike. A replay that
    was killed goes on where it was, one that is cancelled before it sends leaves nothing behind, and a repeated one
    changes nothing. Only windows that live records change no more are taken: the range has to end by the live query's
    watermark.

    Args:
        spark: the live query's session; it needs no Delta. Replays run in a session of their own with its settings.
        topic: name on the broker.
        plan: from records, with the columns of Spark's Kafka source, and begin and end of the range (ms of event time)
            to records: columns key and value (null: no result). It is the live query's plan; none of the range's
            records may be late for it, so its watermark has to wait for as long as the range lasts, and records outside
            of the range are best left out before it.
        source: options of the Kafka source beside its range: broker and security, for the job's topics and this one.
        live: the running query, whose watermark says which windows are final.
        place: absolute path, shared with the executors; a replay's files lie in `<place>.backfills/<id>/`.
        window: pattern (Java's) of the records' keys with two groups, the window's begin and end in ms. A record of the
            range whose key matches it and which the replay does not count is deleted: where other queries write to the
            topic, too, it is to match this one's keys alone.
        output_mode: of the replay's query: `update` for totals, `append` for change logs.
        trigger: from micro-batch to micro-batch.
        version: of the plan: give another one with a plan that computes other results, so that no replay is gone on
            with that the plan before it began.

    Raises:
        BackfillError: Spark looks for `place` on another file system than this process, as on HDFS.
    """
    refuse_other_file_system(spark, BackfillError)
    made = TopicReplays(
        own_session(spark), topic, plan, source, live, Path(place), window, output_mode, trigger, version
    )  # fmt: skip
    return Replayable(
        made.start, made.publish, made.cancel, made.compare, (), made.dry_run, made.close, made.note_end, made.end_of,
        lambda name: namespace.has_begun(made.place, name),
    )  # fmt: skip


def _range(order: ReplayOrder) -> tuple[int, int]:
    if order.begin_ms is None or order.end_ms is None:
        raise BackfillError(f"replay {order.id} has no range of event time: order it with begin_ms and end_ms")
    return order.begin_ms, order.end_ms
