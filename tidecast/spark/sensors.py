"""What is measured from outside the job: arrivals by broker end offsets, lag, and the latency of a batch's records.

Pure: every function takes its times and offsets as arguments. Offsets are keyed by (topic, partition).
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

Partition = tuple[str, int]
Offsets = Mapping[Partition, int]

KNOTS = 4096
"""Points kept per partition; beyond it the older half is thinned, which bounds the memory of a long backlog."""
SET_BACK_S = 5.0
"""Seconds by which a later end offset may have an earlier time; by more, the clock was set back."""
PROBES = 64  # most records per partition and batch whose arrival is interpolated; quantiles need no more


class OffsetCurve:
    """One partition's end offset over wall time, as a rising polyline from which an offset's arrival time is read."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.ends: list[int] = []

    def add(self, wall: float, end: int) -> None:
        """Add an observed end offset; offsets stay rising with time.

        An observation that is not the newest is dropped if a neighbour contradicts it; one that is above all others and
        over SET_BACK_S (5 s) older than the newest drops those of later times: the clock was set back. The newest one,
        if it is lower than the one before, drops all earlier ones: the topic was deleted and created again. Of more
        than KNOTS (4096) points every second one of the older half is dropped.

        Args:
            wall: time of the observation, wall epoch seconds.
            end: offset of the next record of the partition.
        """
        if self.times and end > self.ends[-1] and wall < self.times[-1] - SET_BACK_S:
            kept = bisect.bisect(self.times, wall)
            del self.times[kept:], self.ends[kept:]
        at = bisect.bisect(self.times, wall)
        newest = at == len(self.times)
        if at and end < self.ends[at - 1]:
            if not newest:
                return
            self.times, self.ends, at = [], [], 0
        if not newest and end > self.ends[at]:
            return
        if newest and at >= 2 and self.ends[-1] == self.ends[-2] == end:
            self.times[-1] = wall  # a plateau is its two ends
            return
        self.times.insert(at, wall)
        self.ends.insert(at, end)
        if len(self.times) > KNOTS:
            half = KNOTS // 2
            self.times[:half], self.ends[:half] = self.times[:half:2], self.ends[:half:2]

    def add_past(self, wall: float, end: int) -> None:
        """Add an end offset that is older than all observed ones, as records' timestamps tell it; else it is dropped.

        Takes what `add` takes; it is dropped too where it is above the first observed one.
        """
        if not self.times or (wall < self.times[0] and end <= self.ends[0]):
            self.times.insert(0, wall)
            self.ends.insert(0, end)

    def arrival_time(self, offset: float) -> float | None:
        """Interpolate the wall time, epoch seconds, at which the record at `offset` arrived at the broker.

        None if the offset lies below the first observed end, or not below the last one.
        """
        right = bisect.bisect_right(self.ends, offset)
        if right == 0 or right == len(self.ends):
            return None
        low, high = self.ends[right - 1], self.ends[right]
        share = (offset - low) / (high - low)
        return self.times[right - 1] + share * (self.times[right] - self.times[right - 1])

    def move(self, by_s: float) -> None:
        """Move all points by so many seconds, as where the clock was set forward since."""
        self.times = [wall + by_s for wall in self.times]

    def forget_before(self, offset: int) -> None:
        """Drop the points before the last one at or under `offset`; later batches do not need them."""
        keep = max(0, bisect.bisect_right(self.ends, offset) - 1)
        del self.times[:keep], self.ends[:keep]


class Latency(NamedTuple):
    """Seconds from a record's arrival at the broker to the commit of its batch: median, 95th percentile, maximum."""

    latency_p50_s: float
    latency_p95_s: float
    latency_max_s: float


def batch_latency(
    curves: Mapping[Partition, OffsetCurve], starts: Offsets, ends: Offsets, finished: float
) -> Latency | None:
    """Estimate the latency quantiles of a batch: its records are those with `starts[p] <= offset < ends[p]`.

    Arrival times are interpolated between samples of the end offsets (accurate to half a sampling step, 0.25 s) at up
    to PROBES (64) offsets per partition, weighted by records. Records whose arrival is unknown are left out.

    Args:
        curves: sampled end offsets by partition (topic, number).
        starts: the batch's start offsets; a partition without one counts nothing.
        ends: its end offsets.
        finished: when it committed, wall epoch seconds.

    Returns:
        p50, p95 and maximum in wall seconds; None when no record's arrival is known.
    """
    weighted: list[tuple[float, float]] = []
    for partition, end in ends.items():
        start = starts.get(partition, end)
        count, curve = max(0, end - start), curves.get(partition, OffsetCurve())
        probes = min(count, PROBES)
        arrivals = (curve.arrival_time(start + (i + 0.5) * count / probes) for i in range(probes))
        weighted += [(max(0.0, finished - at), count / probes) for at in arrivals if at is not None]
    if not weighted:
        return None
    weighted.sort()
    return Latency(_quantile(weighted, 0.5), _quantile(weighted, 0.95), weighted[-1][0])


def guess_first_starts(curves: Mapping[Partition, OffsetCurve], ends: Offsets, rows: int) -> Offsets:
    """Guess the start offsets of a query's first batch, which Spark does not report, as the first offsets known.

    Args:
        curves: sampled end offsets by partition; partitions without any are left out.
        ends: the batch's end offsets.
        rows: the batch's records.

    Returns:
        Offset by partition; empty if they would span more records than the batch had.
    """
    starts = {p: curves[p].ends[0] for p in ends if p in curves and curves[p].ends}
    return starts if sum(max(0, ends[p] - start) for p, start in starts.items()) <= rows else {}


def _quantile(weighted: Sequence[tuple[float, float]], level: float) -> float:
    goal, seen = level * sum(w for _, w in weighted), 0.0
    for value, weight in weighted:
        seen += weight
        if seen >= goal:
            return value
    return weighted[-1][0]


def count_arrived(before: Offsets, after: Offsets) -> int:
    """Count the records produced between two samples of end offsets.

    A partition that is missing in `before`, or whose offset fell, counts 0.
    """
    return sum(max(0, end - before[p]) for p, end in after.items() if p in before)


def lag_records(ends: Offsets, committed: Offsets | None) -> int | None:
    """Return the records that no finished batch has read: sum over partitions of end offset minus committed offset.

    Counts the topics in `committed`, with their new partitions (from offset 0). None if nobody knows: before the first
    batch, where `committed` is None, and before an end of its topics was seen.
    """
    read = {topic for topic, _ in committed or ()}
    known = {place: end for place, end in ends.items() if place[0] in read}
    if committed is None or not known:
        return None
    return sum(max(0, end - committed.get(place, 0)) for place, end in known.items())


class BottleneckStage:
    """Finds the stage that limits the job's rate; its number of tasks is the ceiling of useful task slots.

    Of each stage a line `run_s = a + b * rows` is fitted (least squares, old batches fading by FADE); its load is `b`,
    not the fixed cost `a`. A narrow stage lowers the ceiling only on clear evidence (CLEAR) that lasts (LASTS): a slow
    task of an executor that has just come looks like it, and executors would be given back while the load rises.
    """

    COLD = 3  # number of first batches left out, because JVMs are cold
    SPREAD = 0.2  # least standard deviation of the rows, as a share of their mean, for a slope to mean anything
    CLEAR = 1.5  # factor by which a narrower stage's slope must exceed the widest one's

    LASTS = 3  # batches in a row for which it must
    FADE = 0.95  # factor on the weight of past batches with each new one
    FEW = 6  # batches of a stage below which it is one that ran now and then
    GONE = 45  # batches after the last of these for which it still counts

    def __init__(self) -> None:
        self._batches = 0
        self._sums: dict[int, tuple[float, ...]] = {}  # of 1, x, xx, y, xy
        self._seen: dict[int, tuple[int, int]] = {}  # in how many batches, and which was the last
        self._heaviest, self._for = 0, 0  # tasks of the stage that limits the rate, and for how many batches by now

    def add_batch(self, rows: int, stages: Iterable[tuple[int, float]]) -> None:
        """Add one batch to the fit; empty batches and the first COLD (3) others are left out.

        Args:
            rows: number of records in the batch.
            stages: (number of tasks, seconds of run time summed over them) of each stage; stages with the same number
                of tasks count as one.
        """
        self._batches += rows > 0
        if rows <= 0 or self._batches <= self.COLD:
            return
        runs: dict[int, float] = {}
        for tasks, run_s in stages:
            runs[tasks] = runs.get(tasks, 0.0) + run_s
        for tasks, run_s in runs.items():
            new = (1.0, float(rows), float(rows) ** 2, run_s, rows * run_s)
            old = self._sums.get(tasks, (0.0,) * 5)
            self._sums[tasks] = tuple(self.FADE * a + b for a, b in zip(old, new, strict=True))
            self._seen[tasks] = self._seen.get(tasks, (0, 0))[0] + 1, self._batches
        # A stage that came a few times and no more, as of a command that ran within one batch, limits nothing any more.
        for tasks, (times, last) in [*self._seen.items()]:
            if times < self.FEW and self._batches - last > self.GONE:
                del self._seen[tasks], self._sums[tasks]
        if runs:
            before, self._heaviest = self._heaviest, self._find_heaviest()
            self._for = self._for + 1 if self._heaviest == before else 1

    def tasks(self) -> int | None:
        """Return the number of tasks of the stage that limits the job's rate; None before the first batch in the fit.

        It is the stage with the most tasks, unless for LASTS (3) batches by now the run time (s) of another has grown
        over CLEAR (1.5) times as much with each record; both growths must be known: six batches whose rows deviate by
        SPREAD (0.2) of their mean.
        """
        known = [*self._sums]  # at once: the thread that watches Spark changes them
        if not known:
            return None
        return self._heaviest if self._for >= self.LASTS else max(known)

    def _find_heaviest(self) -> int:
        widest = max(self._sums)
        slopes = {tasks: slope for tasks in self._sums if (slope := self._slope(tasks)) is not None}
        heaviest = max(slopes, key=slopes.__getitem__, default=widest)
        if widest not in slopes or slopes[heaviest] <= self.CLEAR * max(slopes[widest], 0.0):
            return widest
        return heaviest

    def _slope(self, tasks: int) -> float | None:
        n, x, xx, y, xy = self._sums[tasks]
        variance = xx / n - (x / n) ** 2
        if n < 5 or variance < (self.SPREAD * x / n) ** 2:
            return None
        return (xy / n - x * y / n**2) / variance
