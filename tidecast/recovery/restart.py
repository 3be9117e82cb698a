"""How a job that merges its results starts again after an outage: in order, or with the newest records first."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tidecast.backfill.into import replay_into
from tidecast.backfill.namespace import read_spec
from tidecast.backfill.spec import instant
from tidecast.control import WALL, Clock
from tidecast.merge.sink import MergeSink
from tidecast.orders import ReplayOrder, later_than
from tidecast.recovery.checkpoint import RecoveryError, read_committed
from tidecast.recovery.epochs import LiveEpoch, checkpoint_of, read_epochs, write_epochs
from tidecast.recovery.outage import Asked, begin_epoch, by_topic
from tidecast.recovery.positions import Positions
from tidecast.replay.replayable import Replayable
from tidecast.replay.source import LATEST
from tidecast.spark.file_system import refuse_other_file_system
from tidecast.spark.sensors import Partition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger("tidecast")

_STARTS = ("startingoffsets", "startingtimestamp", "startingoffsetsbytimestamp")


@dataclass(frozen=True)
class Recovery:
    """How the live query goes on.

    Attributes:
        records: of the source, from where it goes on, with the columns of Spark's Kafka source.
        sink: for `foreachBatch`.
        checkpoint: of the query.
        epochs: those that began after an outage.
        text: what was found and is done, for people.
    """

    records: DataFrame
    sink: MergeSink
    checkpoint: Path
    epochs: tuple[LiveEpoch, ...]
    text: str
    _source: Mapping[str, str] = field(repr=False)
    _ends: dict[str, dict[Partition, int]] = field(default_factory=dict, repr=False)

    def start(self, writer: Any) -> Any:
        """Start the live query and return it.

        Args:
            writer: `plan(recovery.records).writeStream`, with trigger, output mode and name as they are to be.
        """
        return writer.foreachBatch(self.sink).option("checkpointLocation", str(self.checkpoint)).start()

    def replay_into(self, plan: Callable[[DataFrame], DataFrame], **options: Any) -> Replayable:
        """Return what `attach` takes as `replay`: gaps are filled as soon as the agent acts, and ranges on order.

        Args:
            plan: the live query's.
            **options: `output_mode`, `trigger`, `tolerance` and `ranged` of `tidecast.backfill.replay_into`.
        """
        broker = {name: value for name, value in self._source.items() if name.lower().startswith("kafka.")}
        table = Path(self.sink.table)
        orders = tuple(epoch.gap for epoch in self.epochs if not is_filled(table, epoch.gap))
        return replay_into(
            self.records.sparkSession, self.sink.table, plan, broker, self.sink.plan, still_open=self.still_open,
            ends=self.ends, orders=orders, **options,
        )  # fmt: skip

    def ends(self, order: ReplayOrder) -> dict[Partition, int] | None:
        """Return where the records of a gap end, by partition, LATEST until it is known; None for other orders.

        Raises:
            OSError, RecoveryError: the broker cannot be asked.
        """
        if order.id in self._ends or all(epoch.gap.id != order.id for epoch in self.epochs):
            return self._ends.get(order.id)
        with Positions(self._source) as positions:
            return dict.fromkeys(positions.places, LATEST)

    def still_open(self, order: ReplayOrder) -> str:
        """Say why windows of a gap may still change; "" once they do not, and for other orders.

        Raises:
            OSError, RecoveryError: the checkpoint or the broker cannot be asked.
        """
        epoch = next((epoch for epoch in self.epochs if epoch.gap.id == order.id), None)
        if epoch is None:
            return ""
        if time.time() < epoch.final_s:
            return f"records of it may come until {instant(int(epoch.final_s * 1000))}"
        if order.id not in self._ends:
            with Positions(self._source) as positions:
                ends = positions.ends()
                self._ends[order.id] = positions.at(epoch.stamped_s, ends) if epoch.stamped_s else ends
        committed = read_committed(self.checkpoint)
        read = {} if committed is None else committed.offsets
        behind = sum(max(end - read.get(place, 0), 0) for place, end in self._ends[order.id].items())
        return f"the live query is to read {behind:,} records first" if behind else ""


def recover(
    spark: SparkSession, job: str, sink: MergeSink, source: Mapping[str, str], checkpoint: str,
    order: Literal["in_order", "live_first"] = "in_order", least_s: float = 30.0, late_s: float | None = None,
    ahead_s: float = 10.0, clock: Clock = WALL, rps: float | None = None, task_s: float = 0.5,
) -> Recovery:  # fmt: skip
    """Return how a job's live query goes on, at its first start and at each later one.

    In order it goes on where its checkpoint stands. `live_first` begins at the newest records after an outage, with a
    checkpoint of its own and without the state before; what came meanwhile, and the windows of which the query sees a
    part only, are a replay into the same table, which the job's agent runs beside it. Readers see a window as it was
    until it is whole. It rests on windows of one length, on records that are not stamped before they happen, and on
    an agent in mode `act`.

    Args:
        spark: a session with Delta.
        job: its name on Tidecast's topics.
        sink: of the live query; its table by an absolute path.
        source: options of Spark's Kafka source: broker, security, `subscribe`, limits; `startingOffsets` counts at the
            first start.
        checkpoint: absolute path of the first checkpoint, on this computer; those of later epochs lie beside it.
        order: which records come first.
        least_s: how long the oldest record has to wait before it is an outage, wall seconds.
        late_s: how late a record may be produced, wall seconds; None: as late as the plan's watermark takes it.
        ahead_s: how far event times may be ahead of this computer's clock, wall seconds.
        clock: of event times.
        rps: most records/s of the gap's replay; its rate where no autoscaler decides one.
        task_s: how long the records of a task of that replay should take: live records may have to wait for it.

    Raises:
        ValueError: another order.
        RecoveryError: `live_first` is asked for, and the sink does not merge, the gap is no longer on the topic, it
            cannot be known how far the job had come, or Spark looks for the checkpoint on another file system than this
            process, as on HDFS.
        MergeError: the table is not one that MergeSink writes.
        ConnectionError: the broker does not answer.
    """
    if order not in ("in_order", "live_first"):
        raise ValueError(f"order={order!r}: in_order or live_first is expected")
    root = Path(checkpoint)
    if not root.is_absolute() or not Path(sink.table).is_absolute():
        raise RecoveryError(f"checkpoint {checkpoint}, table {sink.table}: give the absolute path of each")
    if order == "live_first":
        refuse_other_file_system(spark, RecoveryError)
    epochs, text = read_epochs(root), "goes on in order"
    if order == "live_first":
        gaps = [epoch.gap for epoch in epochs if not is_filled(Path(sink.table), epoch.gap)]
        asked = Asked(job, sink, source, least_s, late_s, ahead_s, clock, rps, task_s)
        begun, text = begin_epoch(spark, asked, read_committed(checkpoint_of(root, epochs)), epochs, gaps)
        if begun is not None:
            noted = [*(_without(epoch, begun.absorbed) for epoch in epochs), begun.epoch]
            try:
                write_epochs(root, noted)
                epochs = noted
            except OSError as error:  # a full disk keeps no job from starting
                text = f"goes on in order: a new epoch cannot be noted beside {checkpoint} ({error})"
    log.info("%s: %s", job, text)
    options = dict(source)
    if epochs:
        options = {name: value for name, value in source.items() if name.lower() not in _STARTS}
        first = epochs[-1].gap.past
        if not any((checkpoint_of(root, epochs) / "commits").glob("[0-9]*")):
            # Spark begins it only where each partition has its own; what cannot be asked keeps no job from going on.
            with suppress(ValueError), Positions(source) as positions:
                first = dict.fromkeys(positions.places, 0) | first
        options["startingOffsets"] = json.dumps(by_topic(first))
        sink = replace(sink, epoch=epochs[-1].number, whole_from=epochs[-1].whole_from)
    records = spark.readStream.format("kafka").options(**options).load()
    return Recovery(records, sink, checkpoint_of(root, epochs), tuple(epochs), text, source)


def is_filled(table: Path, gap: ReplayOrder) -> bool:
    """Return whether a gap is in the table to its end."""
    spec = read_spec(table, gap.id)
    return spec is not None and spec.state != "open"


def _without(epoch: LiveEpoch, absorbed: tuple[str, ...]) -> LiveEpoch:
    """An epoch whose gap another one takes over."""
    if epoch.gap.id not in absorbed:
        return epoch
    at = later_than(epoch.gap, time.time())
    return replace(epoch, gap=replace(epoch.gap, wanted="cancel", wall_time=at))
