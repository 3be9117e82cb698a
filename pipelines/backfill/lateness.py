"""How late records may be that the live query has counted: a range is to hold all of these, and be final.

A range that ends too early lacks records that live has counted, and its results would be put in place of live's. What
live tells of a window after its correction is not shown.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from configs.sections import Kafka
from pipelines.backfill.asked import RangeError, TimeRange
from pipelines.kafka.broker import Record, read_records
from tidecast.control import Clock
from tidecast.messages import MessageError, MetricSample, decode_keyed

LATE_S = 60.0
"""How much later than it happened a record may have been produced at least, wall seconds, where nothing is said."""
MOST_S = 366 * 86_400.0
"""The most that may be stated for how late a record was produced, wall seconds: whoever states more has mistyped."""
NEWEST = 4_000
"""Metrics that are looked at, of each partition."""
CLOCK_OFF_S = 10.0
"""By which a batch's end and the time of its record may differ; where it is more the job had another clock then."""


class CountedBatch(NamedTuple):
    """A micro-batch of a live query; wall epoch seconds.

    Attributes:
        ended: when it had run.
        batch_s: how long it took.
        watermark: the event time that it went by; what is older is dropped by the next one at the latest.
    """

    ended: float
    batch_s: float
    watermark: float


class Lateness(NamedTuple):
    """What a job's metrics tell of the records that it takes.

    Attributes:
        batches: its newest ones, in order; none where it has no watermark, or nothing is known.
        clock: its own time.
    """

    batches: tuple[CountedBatch, ...]
    clock: Clock

    @property
    def least_s(self) -> float:
        """How late a record is surely taken, wall seconds; 0 where that is not known."""
        return max(min((one.ended - one.batch_s - one.watermark for one in self.batches), default=0.0), 0.0)

    def late_s(self, end: float) -> float:
        """Return how late after the end of a range the last record may have been produced that live has counted in it.

        Those of the batch that first went by a watermark behind the range had been produced when that ended and, where
        it caught up, hardly later than its newest event. Of a range of before all known batches it is what the job
        takes at its usual pace. LATE_S at least.

        Args:
            end: of the range, wall epoch seconds.
        """
        for at, (before, one) in enumerate(pairwise(self.batches)):
            if before.watermark < end <= one.watermark:
                follows = self.batches[at + 2 : at + 3]  # its watermark is the newest event less what it waits
                newest = follows[0].watermark + self.least_s + LATE_S if follows else math.inf
                return max(min(one.ended, newest) - end, LATE_S)
        period_s = median([one.ended - before.ended for before, one in pairwise(self.batches)] or [0.0])
        return max(self.least_s + period_s, LATE_S)

    def range_of(self, begin: float, end: float, asked_s: float | None, now: float) -> TimeRange:
        """Return a range with all records of it that live has counted.

        Args:
            begin: wall epoch seconds.
            end: likewise.
            asked_s: how late records may be, wall seconds; None: as late as live takes them.
            now: wall epoch seconds.

        Raises:
            RangeError: `asked_s` is below 0 or above MOST_S, or surely less than live takes.
        """
        least_s, late_s = self.least_s, self.late_s(end)
        if asked_s is not None and not 0 <= asked_s <= MOST_S:
            raise RangeError(f"--late-s {asked_s:g}: wall seconds, 0 to {MOST_S:.0f} (a year), are expected")
        if asked_s is not None and asked_s < least_s:
            raise RangeError(
                f"--late-s {asked_s:g} is too little: the live query takes records that come {least_s:.0f} s late, and "
                f"a correction would lose those that it has counted: give {math.ceil(late_s)}, or leave it out"
            )
        final = self.batches[-1].watermark if self.batches else math.inf
        return TimeRange(begin, end, late_s if asked_s is None else asked_s, now, self.clock, least_s, final)


def read_lateness(kafka: Kafka, job: str, clock: Clock) -> Lateness:
    """Return what the metrics of a job say.

    Raises:
        BrokerError, ValueError: the topic cannot be read; an unknown security option.
    """
    return Lateness(counted_batches(read_records(kafka, "metrics", NEWEST), job, clock), clock)


def counted_batches(records: Iterable[Record], job: str, clock: Clock) -> tuple[CountedBatch, ...]:
    """Return the batches of a job of which its metrics tell a watermark, by their ends; of other clocks none."""
    found = []
    for record in records:
        if record.key != job:
            continue
        try:
            one = decode_keyed(MetricSample, record.key, record.value)
        except MessageError:
            continue
        ended = clock.wall_at(one.time + one.span_s)
        if one.watermark_lag_s is None or abs(ended - one.wall_time) > CLOCK_OFF_S:
            continue
        found.append(CountedBatch(ended, one.batch_s or 0.0, ended - one.watermark_lag_s))
    return tuple(sorted(found))
