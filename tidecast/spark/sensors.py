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
"""Knots kept per partition; beyond it the older half is thinned, so that an hour's backlog costs no more memory."""
PROBES = 64
"""Records of a partition whose arrival is interpolated per batch; quantiles need no more."""


class Curve:
    """One partition's end offset over wall time: a rising polyline, from which an offset's arrival time is read."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.ends: list[int] = []

    def add(self, wall: float, end: int) -> None:
        """Add one observation; one from the past is sorted in, an offset below what was already seen starts afresh."""
        at = bisect.bisect(self.times, wall)
        if at and end < self.ends[at - 1]:
            if at < len(self.times):
                return  # jitter between two clocks: what came later is known better
            self.times, self.ends, at = [], [], 0  # the topic was made anew
        if at < len(self.times) and end > self.ends[at]:
            return
        if 2 <= at == len(self.times) and self.ends[-1] == self.ends[-2] == end:
            self.times[-1] = wall  # a plateau is its two ends
            return
        self.times.insert(at, wall)
        self.ends.insert(at, end)
        if len(self.times) > KNOTS:
            half = KNOTS // 2
            self.times[:half], self.ends[:half] = self.times[:half:2], self.ends[:half:2]

    def arrival(self, offset: float) -> float | None:
        """Wall time at which a record arrived; None if that was before the first or after the last observation."""
        right = bisect.bisect_right(self.ends, offset)
        if right == 0 or right == len(self.ends):
            return None
        low, high = self.ends[right - 1], self.ends[right]
        share = (offset - low) / (high - low)
        return self.times[right - 1] + share * (self.times[right] - self.times[right - 1])

    def forget_before(self, offset: int) -> None:
        """Drop what no later batch can ask for: everything below the last knot at or under `offset`."""
        keep = max(0, bisect.bisect_right(self.ends, offset) - 1)
        del self.times[:keep], self.ends[:keep]


class Latency(NamedTuple):
    """Arrival to committed result, seconds."""

    latency_p50_s: float
    latency_p95_s: float
    latency_max_s: float


def latency(curves: Mapping[Partition, Curve], starts: Offsets, ends: Offsets, finished: float) -> Latency | None:
    """Latency quantiles of the records `starts[p] <= offset < ends[p]` of a batch that committed at `finished`.

    Arrival times are interpolated between samples of the end offsets, so they are right to half a sampling step.
    Records from before the first sample are left out; None when no record's arrival is known.
    """
    weighted: list[tuple[float, float]] = []
    for partition, end in ends.items():
        start = starts.get(partition, end)
        count, curve = max(0, end - start), curves.get(partition, Curve())
        probes = min(count, PROBES)
        arrivals = (curve.arrival(start + (i + 0.5) * count / probes) for i in range(probes))
        weighted += [(max(0.0, finished - at), count / probes) for at in arrivals if at is not None]
    if not weighted:
        return None
    weighted.sort()
    return Latency(_quantile(weighted, 0.5), _quantile(weighted, 0.95), weighted[-1][0])


def first_starts(curves: Mapping[Partition, Curve], ends: Offsets, rows: int) -> Offsets:
    """Where a query's first batch began, which Spark does not tell: at the first offsets known if the rows allow."""
    starts = {p: curves[p].ends[0] for p in ends if p in curves and curves[p].ends}
    return starts if sum(max(0, ends[p] - start) for p, start in starts.items()) <= rows else {}


def _quantile(weighted: Sequence[tuple[float, float]], level: float) -> float:
    goal, seen = level * sum(w for _, w in weighted), 0.0
    for value, weight in weighted:
        seen += weight
        if seen >= goal:
            return value
    return weighted[-1][0]


def arrived(before: Offsets, after: Offsets) -> int:
    """Records produced between two looks at the end offsets; partitions seen once and rewound ones count nothing."""
    return sum(max(0, end - before[p]) for p, end in after.items() if p in before)


def lag(ends: Offsets, committed: Offsets | None) -> int | None:
    """Records in the broker that no finished batch covers: sum of ends minus sum of the last batch's end offsets.

    Over the topics that the query reads, new partitions included; None before the first batch, when nobody knows where
    the query stands.
    """
    if committed is None:
        return None
    read = {topic for topic, _ in committed}
    return sum(max(0, end - committed.get(p, 0)) for p, end in ends.items() if p[0] in read)


class HeavyStage:
    """Which stage takes the job's time, by its number of tasks: the ceiling of useful task slots (invariant 6).

    Of each stage a line `run_s = a + b * rows` is fitted (least squares, old batches fading). What grows with the load
    is `b`; the fixed cost `a`, such as a state store's commit, is all there is in an idle batch and says nothing. A
    narrow stage lowers the ceiling only on clear evidence, because a ceiling that is too low forbids a needed scale-up.
    """

    COLD = 3
    """First batches, whose time is that of cold JVMs."""
    SPREAD = 0.2
    """Least standard deviation of the rows, as a share of their mean, for a slope to mean anything."""
    CLEAR = 1.5
    """How many times the widest stage's slope a narrower one's must be."""

    FADE = 0.95
    """What the past keeps of its weight with each batch."""

    def __init__(self) -> None:
        self._batches = 0
        self._sums: dict[int, tuple[float, ...]] = {}  # of 1, x, xx, y, xy

    def saw(self, rows: int, stages: Iterable[tuple[int, float]]) -> None:
        """One batch: `stages` are (tasks, run time summed over tasks in seconds); equally wide ones are one stage."""
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

    def tasks(self) -> int | None:
        """Tasks of the heavy stage, the widest one's without clear evidence; None before a warm batch was seen."""
        if not self._sums:
            return None
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
