"""A run in figures: latency of every record, seconds without a running task, executors paid for.

Pure functions of arrays; times are epoch seconds of the wall clock, a second is `[start + s, start + s + 1)`.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def commit_times(partition: Integers, offset: Integers, committed: Floats, ends: dict[int, Integers]) -> Floats:
    """When each of N records was committed: at the first batch whose end offset lies beyond it; inf for never.

    Args:
        partition: (N,) partition of `events` the record lies in.
        offset: (N,) its offset there.
        committed: (B,) when each batch was committed, rising.
        ends: per partition, (B,) next offset after each batch, never falling.
    """
    when = np.append(committed, math.inf)
    times = np.full(len(offset), math.inf)
    for number in np.unique(partition):
        mine = partition == number
        batch_ends = ends.get(int(number), np.zeros(len(committed), dtype=np.int64))
        times[mine] = when[np.searchsorted(batch_ends, offset[mine], side="right")]
    return times


def by_second(produced_at: Floats, committed_at: Floats, start: float, seconds: int) -> pd.DataFrame:
    """What happened to the records, second by second.

    Returns:
        (seconds,) rows of `produced` (records), `latency_p50_s`, `latency_p95_s`, `latency_max_s` of the records
        produced in the second (NaN without any), `lag` (produced and not committed at its end), `waiting` (records
        that waited through all of it).
    """
    second = np.floor(produced_at - start).astype(np.int64)
    inside = (second >= 0) & (second < seconds)
    latency = pd.Series(committed_at - produced_at)[inside].groupby(second[inside])
    frame = pd.DataFrame(index=pd.RangeIndex(seconds, name="second"))
    frame["produced"] = latency.size().reindex(frame.index, fill_value=0)
    for name, level in (("latency_p50_s", 0.5), ("latency_p95_s", 0.95), ("latency_max_s", 1.0)):
        frame[name] = latency.quantile(level, interpolation="higher").reindex(frame.index)
    closes = start + 1 + np.arange(seconds)
    frame["lag"] = np.searchsorted(np.sort(produced_at), closes, side="right") - np.searchsorted(
        np.sort(committed_at), closes, side="right"
    )
    first = np.ceil(np.clip(produced_at - start, 0, seconds)).astype(np.int64)
    last = np.floor(np.clip(committed_at - start, 0, seconds)).astype(np.int64)
    frame["waiting"] = _covered(first, last, seconds)
    return frame


def busy_by_second(begin: Floats, end: Floats, start: float, seconds: int) -> pd.DataFrame:
    """What tasks did, second by second: `tasks` (how many ran in it, mean) and `ran` (whether any ran at all)."""
    clipped = [np.clip(x - start, 0, seconds) for x in (begin, end)]
    frame = pd.DataFrame(index=pd.RangeIndex(seconds, name="second"))
    grid = np.arange(seconds + 1, dtype=np.float64)
    frame["tasks"] = np.diff(_elapsed(clipped[0], grid) - _elapsed(clipped[1], grid))
    seen = (end > start) & (begin < start + seconds)
    first, last = np.floor(clipped[0][seen]).astype(np.int64), np.ceil(clipped[1][seen]).astype(np.int64)
    frame["ran"] = _covered(first, np.maximum(last, first + 1), seconds) > 0
    return frame


def stopped(waiting: NDArray[np.int64], ran: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Seconds through all of which a record waited and in which no task of the query ran."""
    return (np.asarray(waiting) > 0) & ~np.asarray(ran)


def longest_pause(begin: Floats, end: Floats, produced_at: Floats, committed_at: Floats) -> float:
    """Longest time between two tasks, in seconds, all through which some record waited."""
    busy_from, busy_until = _union(begin, end)
    waits_from, waits_until = _union(produced_at, committed_at)
    longest = 0.0
    for idle_from, idle_until in zip(busy_until[:-1], busy_from[1:], strict=True):
        first = np.searchsorted(waits_until, idle_from, side="right")
        last = np.searchsorted(waits_from, idle_until, side="left")
        both = np.minimum(waits_until[first:last], idle_until) - np.maximum(waits_from[first:last], idle_from)
        longest = max(longest, float(both.max(initial=0.0)))
    return longest


def _union(begin: Floats, end: Floats) -> tuple[Floats, Floats]:
    """Begins and ends of the stretches that intervals cover together, in order and apart."""
    order = np.argsort(begin)
    begin, until = begin[order], np.maximum.accumulate(end[order])
    first = np.concatenate([[True], begin[1:] > until[:-1]])[: len(begin)]
    last = np.concatenate([first[1:], [True]])[: len(begin)]
    return begin[first], until[last]


def executor_seconds(added: Floats, removed: Floats, start: float, end: float) -> float:
    """Executors registered, summed over `[start, end)`; `removed` is NaN for one that lived on."""
    until = np.where(np.isnan(removed), end, removed)
    return float(np.clip(np.minimum(until, end) - np.maximum(added, start), 0, None).sum())


def executor_steps(added: Floats, removed: Floats, start: float, end: float) -> tuple[Floats, Integers]:
    """Executors registered as a step function: times from `start` to `end` and the count that holds from each on."""
    gone = removed[~np.isnan(removed)]
    times = np.unique(np.concatenate([[start], added, gone, [end]]))
    times = times[(times >= start) & (times <= end)]
    count = np.searchsorted(np.sort(added), times, side="right") - np.searchsorted(np.sort(gone), times, side="right")
    return times, count.astype(np.int64)


def spread(values: Floats) -> dict[str, float | int | None]:
    """Median, 95th percentile and how many of finite values; None where there are none."""
    finite = np.asarray(values, dtype=np.float64)
    finite = finite[np.isfinite(finite)]
    if len(finite) == 0:
        return {"p50": None, "p95": None, "n": 0}
    p50, p95 = np.percentile(finite, [50, 95])
    return {"p50": round(float(p50), 3), "p95": round(float(p95), 3), "n": len(finite)}


def _covered(first: Integers, last: Integers, size: int) -> Integers:
    """How many of the ranges `[first, last)` hold each of `0 … size − 1`."""
    some = last > first
    change = np.bincount(first[some], minlength=size + 1) - np.bincount(last[some], minlength=size + 1)
    return np.cumsum(change)[:size].astype(np.int64)


def _elapsed(since: Floats, grid: Floats) -> Floats:
    """Σ max(0, t − since) at every t of the grid."""
    ordered = np.sort(since)
    total = np.concatenate([[0.0], np.cumsum(ordered)])
    before = np.searchsorted(ordered, grid, side="right")
    elapsed: Floats = before * grid - total[before]
    return elapsed
