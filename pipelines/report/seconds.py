"""A run second by second: latency of every record, seconds without a running task, executors paid for.

Pure functions of arrays; times are epoch seconds of the wall clock, a second is `[start + s, start + s + 1)`.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pipelines.html.plot import ranges

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def commit_times(partition: Integers, offset: Integers, committed: Floats, ends: dict[int, Integers]) -> Floats:
    """Return (N,) when each record was committed, by the first batch whose end offset lies beyond it; inf for never.

    Args:
        partition: (N,) partition of the topic `events` that the record lies in; one that `ends` lacks is never
            committed.
        offset: (N,) its offset there.
        committed: (B,) epoch seconds at which each batch was committed, rising.
        ends: per partition, (B,) next offset after each batch, never falling.
    """
    when, times = np.append(committed, math.inf), np.full(len(offset), math.inf)
    for number, batch_ends in ends.items():
        mine = partition == number
        times[mine] = when[np.searchsorted(batch_ends, offset[mine], side="right")]
    return times


def latency_by_second(produced_at: Floats, committed_at: Floats, start: float, seconds: int) -> pd.DataFrame:
    """Aggregate records by the wall second in which they were produced.

    Args:
        produced_at: (N,) epoch seconds.
        committed_at: (N,) epoch seconds; inf for never.
        start: epoch seconds at which the first second begins.
        seconds: how many.

    Returns:
        A row per second, (seconds,): `produced` (records), `latency_p50_s` and `latency_max_s` (s, production to
        commit) of the records produced in it (NaN without any, inf where never committed), `lag` (records produced and
        not committed at its end), `waiting` (records that waited through all of it).
    """
    second = np.floor(produced_at - start).astype(np.int64)
    inside = (second >= 0) & (second < seconds)
    latency = pd.Series(committed_at - produced_at)[inside].groupby(second[inside])
    frame = pd.DataFrame(index=pd.RangeIndex(seconds, name="second"))
    frame["produced"] = latency.size().reindex(frame.index, fill_value=0)
    for name, level in (("latency_p50_s", 0.5), ("latency_max_s", 1.0)):
        frame[name] = latency.quantile(level, interpolation="higher").reindex(frame.index)
    frame["lag"] = _open_at(produced_at, committed_at, start + np.arange(1.0, seconds + 1))
    first = np.ceil(np.clip(produced_at - start, 0, seconds)).astype(np.int64)
    last = np.floor(np.clip(committed_at - start, 0, seconds)).astype(np.int64)
    through = last > first
    edges = [np.bincount(side[through], minlength=seconds + 1) for side in (first, last)]
    frame["waiting"] = np.cumsum(edges[0] - edges[1])[:seconds]
    return frame


def tasks_by_second(begin: Floats, end: Floats, start: float, seconds: int) -> pd.DataFrame:
    """Aggregate tasks by wall second.

    Args:
        begin: (N,) epoch seconds at which tasks began.
        end: (N,) epoch seconds at which they ended.
        start: epoch seconds at which the first second begins.
        seconds: how many.

    Returns:
        A row per second, (seconds,): `tasks` (mean number that ran) and `ran` (whether any did).
    """
    times, count = count_open(begin - start, end - start, 0.0, float(seconds))
    worked = np.concatenate([[0.0], np.cumsum(np.diff(times) * count[:-1])])
    tasks = np.diff(np.interp(np.arange(seconds + 1), times, worked))
    return pd.DataFrame({"tasks": tasks, "ran": tasks > 0}, index=pd.RangeIndex(seconds, name="second"))


def longest_pause(begin: Floats, end: Floats, produced_at: Floats, committed_at: Floats) -> float:
    """Return the longest time in seconds during which no task ran and some record waited, between first and last task.

    Args:
        begin: (N,) epoch seconds at which tasks began.
        end: (N,) epoch seconds at which they ended.
        produced_at: (M,) epoch seconds of records.
        committed_at: (M,) epoch seconds; inf for never.

    Returns:
        0 where there was no such pause, or no task.
    """
    if not len(begin):
        return 0.0
    at = np.unique(np.concatenate([begin, end, produced_at, committed_at]))
    at = at[(at >= begin.min()) & (at <= end.max())]
    idle = (_open_at(begin, end, at) == 0) & (_open_at(produced_at, committed_at, at) > 0)
    return max((float(at[last] - at[first]) for first, last in ranges(idle[:-1])), default=0.0)


def executor_seconds(added: Floats, removed: Floats, start: float, end: float) -> float:
    """Return the executor-seconds registered in `[start, end)`.

    Args:
        added: (N,) epoch seconds.
        removed: (N,) epoch seconds; NaN for an executor that lived on.
        start: epoch seconds.
        end: epoch seconds.
    """
    times, count = count_open(added, removed, start, end)
    return float((np.diff(times) * count[:-1]).sum())


def count_open(begin: Floats, end: Floats, start: float, until: float) -> tuple[Floats, Integers]:
    """Count how many of N intervals `[begin, end)` are open, as a step function.

    Args:
        begin: (N,) seconds.
        end: (N,) seconds; NaN never comes.
        start: first time of the result.
        until: last time of the result.

    Returns:
        (K,) rising times from `start` to `until`, and (K,) the count that holds from each on.
    """
    times = np.unique(np.concatenate([[start, until], begin, end]))
    times = times[(times >= start) & (times <= until)]
    return times, _open_at(begin, end, times)


def percentiles(values: Floats) -> dict[str, float | int | None]:
    """Return `p50` and `p95` (unit of the values, 3 decimals; None without any) and the number `n` of finite values."""
    finite = np.asarray(values, dtype=np.float64)
    finite = finite[np.isfinite(finite)]
    p50, p95 = np.percentile(finite, [50, 95]).round(3).tolist() if len(finite) else (None, None)
    return {"p50": p50, "p95": p95, "n": len(finite)}


def _open_at(begin: Floats, end: Floats, at: Floats) -> Integers:
    """How many of the intervals `[begin, end)` hold each moment."""
    return np.searchsorted(np.sort(begin), at, side="right") - np.searchsorted(np.sort(end), at, side="right")
