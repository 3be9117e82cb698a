"""Whether a job was out for so long that it begins a new epoch, and the order that fills the gap."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from tidecast.backfill.spec import instant
from tidecast.control import Clock
from tidecast.merge.columns import version_of
from tidecast.merge.sink import MergeSink
from tidecast.merge.table import length_of_windows, read_form
from tidecast.orders import ReplayOrder
from tidecast.recovery.checkpoint import Committed, RecoveryError
from tidecast.recovery.epochs import LiveEpoch
from tidecast.recovery.gap import GapSpan, span_of
from tidecast.recovery.positions import Positions
from tidecast.spark.sensors import Partition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Asked:
    """What `recover` is asked for; as its arguments."""

    job: str
    sink: MergeSink
    source: Mapping[str, str]
    least_s: float
    late_s: float | None
    ahead_s: float
    clock: Clock
    rps: float | None
    task_s: float


class Begun(NamedTuple):
    """A new epoch, and the ids of earlier gaps that its own takes over."""

    epoch: LiveEpoch
    absorbed: tuple[str, ...]


class Waiting(NamedTuple):
    """What lies between a job and the newest records.

    Attributes:
        ends: offsets of the newest records.
        noted_s: wall time, noted after them.
        records: how many there are.
        oldest_s: since when the oldest waits.
    """

    ends: dict[Partition, int]
    noted_s: float
    records: int
    oldest_s: float


def begin_epoch(
    spark: SparkSession,
    asked: Asked,
    committed: Committed | None,
    epochs: Sequence[LiveEpoch],
    gaps: Sequence[ReplayOrder],
) -> tuple[Begun | None, str]:
    """Return the epoch that begins at the newest records, or None where the job goes on in order; and why.

    Args:
        spark: a session with Delta.
        asked: arguments of `recover`.
        committed: how far the newest epoch had come; None: it has not committed anything.
        epochs: those so far.
        gaps: those that are not filled.

    Raises:
        RecoveryError, MergeError, ConnectionError: as `recover`.
    """
    if committed is None and epochs:
        committed = _at_its_begin(epochs[-1], asked.clock)  # it was killed before its first micro-batch
    if committed is None:
        return None, "starts for the first time"
    with Positions(asked.source) as positions:
        waiting = _waiting(positions, committed)
        now_s = waiting.noted_s
        if waiting.oldest_s > now_s - asked.least_s:
            since = f", the oldest for {max(now_s - waiting.oldest_s, 0):.0f} s" if waiting.records else ""
            return None, f"goes on in order: {waiting.records:,} records wait{since}"
        # Only now: in a session that has just begun it takes ten seconds and more to read a Delta table first.
        form = read_form(spark, asked.sink.table)
        if form is None:
            raise RecoveryError(
                f"{asked.sink.table} is no table that MergeSink writes: live_first is for sinks that merge, because "
                "live and gap meet in one table; write the results by MergeSink, or recover in_order"
            )
        window_ms = _window_ms(spark, asked.sink.table)
        if window_ms is None:
            return None, "goes on in order: its table has no results yet"
        live = [gap for gap in gaps if gap.wanted != "cancel"]
        if asked.late_s is None and not committed.watermark_ms:
            return None, "goes on in order: no watermark says yet how late records may be; give late_s, wall seconds"
        span = span_of(committed, waiting.oldest_s, now_s, window_ms, asked.late_s, asked.ahead_s, asked.clock, live)
        starts = _starts(positions, committed, waiting.ends, span, asked.clock, live)
        if starts is None:
            return None, (
                f"goes on in order: the topic may no longer hold all from {instant(span.begin)}, and windows of then "
                "would have to be computed again"
            )
        opens = positions.at(asked.clock.wall_at(span.open_from / 1000), waiting.ends)
    number = max(form.epoch, asked.sink.epoch, *(epoch.number for epoch in epochs)) + 1
    order = _gap_order(number, asked, waiting, span, starts, opens)
    epoch = LiveEpoch(number, span.whole_from, span.final_s, order, span.final_s + asked.ahead_s)
    return Begun(epoch, span.absorbed), _begun_text(order, waiting, span)


def _at_its_begin(epoch: LiveEpoch, clock: Clock) -> Committed:
    """How far an epoch is that has committed nothing: its gap's windows are open, and records as late as before it."""
    begin_ms, end_ms = epoch.gap.begin_ms or 0, epoch.gap.end_ms or 0
    late_s = epoch.final_s - clock.wall_at(end_ms / 1000)
    return Committed(-1, clock.wall_at(begin_ms / 1000) + late_s, epoch.gap.past, begin_ms)


def _gap_order(
    number: int, asked: Asked, waiting: Waiting, span: GapSpan, starts: Mapping[Partition, int],
    opens: Mapping[Partition, int],
) -> ReplayOrder:  # fmt: skip
    return ReplayOrder(
        f"gap-{number}", asked.job, waiting.noted_s, "run", by_topic(starts), by_topic(waiting.ends),
        most_rps=asked.rps, task_s=asked.task_s, begin_ms=span.begin, end_ms=span.end,
        holds=version_of(number, 0) - 1, open_ms=span.open_from,
        open_starts=by_topic({place: max(at, starts[place]) for place, at in opens.items()}),
    )  # fmt: skip


def _begun_text(order: ReplayOrder, waiting: Waiting, span: GapSpan) -> str:
    return (
        f"was out for {waiting.noted_s - waiting.oldest_s:.0f} s: {waiting.records:,} records wait and are replayed as "
        f"{order.id}, {order.records:,} with those of the same windows; the newest come first, windows that begin "
        f"before {instant(span.whole_from)} stay as they are until they are whole"
    )


def _waiting(positions: Positions, committed: Committed) -> Waiting:
    ends, noted_s = positions.ends(), time.time()
    known = {place: committed.offsets.get(place, 0) for place in ends}
    behind = {place: at for place, at in known.items() if at < ends[place]}
    if lost := {place: at for place, at in positions.begins().items() if behind.get(place, at) < at}:
        (topic, part), at = min(lost.items())
        raise RecoveryError(
            f"partition {part} of topic {topic!r} begins at offset {at}, the job had come to {behind[topic, part]}: "
            "records of the gap are gone. Start the live query anew with another epoch of its sink, and read the gap "
            "from a table: tidecast backfill --table"
        )
    oldest_s = positions.oldest_s(behind) if behind else None
    waiting = sum(ends[place] - at for place, at in behind.items())
    return Waiting(ends, noted_s, waiting, noted_s if oldest_s is None else oldest_s)


def _window_ms(spark: SparkSession, table: str) -> int | None:
    why = (
        "live_first is for windows of one length, a session that began before the outage cannot be told from its rest; "
        "recover in_order"
    )
    return length_of_windows(spark, table, RecoveryError, why)


def _starts(
    positions: Positions, committed: Committed, ends: Mapping[Partition, int], span: GapSpan, clock: Clock,
    gaps: Sequence[ReplayOrder],
) -> dict[Partition, int] | None:  # fmt: skip
    """First offsets of all records of the windows; None where the topic may have dropped some.

    A partition that holds nothing any more does not tell when what it dropped was produced.
    """
    at, begins = positions.at(clock.wall_at(span.begin / 1000), ends), positions.begins()
    if any(0 < begins[place] == first for place, first in at.items()):
        return None
    taken = [gap.first for gap in gaps if gap.id in span.absorbed]
    for before in (committed.offsets, *taken):
        at = {place: min(first, before.get(place, 0)) for place, first in at.items()}
    return {place: max(first, begins[place]) for place, first in at.items()}


def by_topic(offsets: Mapping[Partition, int]) -> dict[str, dict[str, int]]:
    """Return {topic: {partition: offset}} of offsets by partition."""
    found: dict[str, dict[str, int]] = {}
    for (topic, part), at in sorted(offsets.items()):
        found.setdefault(topic, {})[str(part)] = at
    return found
