"""The physics, compiled, because a backtest simulates billions of seconds.

Functions here change rows of `State` in place; `x` is a run's row of `State.x`, `job` its row of `Jobs.facts`.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from models.policy.core import capacity
from models.twin.sim.actuate import uniform
from models.twin.sim.compiled import forget_stale
from models.twin.sim.job import (
    BATCH_ROWS,
    BELIEVED_OVERHEAD_S,
    CATCH_UP,
    COLD_S,
    GUESS_S,
    NOISE,
    OVERHEAD_S,
    PER_RECORD_S,
    REWIND_S,
    TARGET_S,
    TOP,
    TRIGGER_S,
    WARMUP_KEPT,
)  # fmt: skip
from models.twin.sim.state import (
    BATCH_END,
    BATCH_S,
    BATCH_START,
    BATCHES,
    BINS,
    COLD,
    COUNTS,
    DONE,
    ENDED_AT,
    EXECUTORS,
    FINE_S,
    HALT_UNTIL,
    JOIN_UNTIL,
    LEAVING,
    LINEAR,
    LONGER,
    NEWEST,
    NEXT_READY,
    NEXT_START,
    OLDEST,
    OVER,
    PAID,
    PROCESSED,
    REREAD,
    ROWS,
    SLOPE_S,
    SLOTS,
    SPAN_S,
    UNTAUGHT,
    WAITING,
    WORK,
    WORST,
    XD,
    XX,
)  # fmt: skip

WARM = 1e-4
"""A smaller share than this makes no batch longer: a query that warmed up is a warm one from there on."""
_busy = numba.njit(inline="always")(capacity.busy)
_slope = numba.njit(inline="always")(capacity.slope)
_UNTAUGHT, _DECAY = float(capacity.COLD_BATCHES), capacity.DECAY


@numba.njit(inline="always")
def _bin(latency: float) -> int:
    """Of a latency in seconds."""
    if latency < LINEAR * FINE_S:
        return int(latency / FINE_S)
    return min(BINS - 1, LINEAR + int(16 * math.log2(latency / (LINEAR * FINE_S))))


@numba.njit(inline="always")
def _commit(x: Any, job: Any, believed: Any, latencies: Any, produced: Any, last: int) -> None:
    """The batch in flight ends: latencies of the seconds it completes, and what its duration teaches."""
    end, duration = x[BATCH_END], x[BATCH_END] - x[BATCH_START]
    done = x[DONE] + x[ROWS]
    p, target, slowest, worst, over = int(x[OLDEST]), job[TARGET_S], 0.0, 0.0, 0
    while p <= last and produced[p + 1] <= done + 0.5:
        if produced[p + 1] > produced[p]:
            latency = end - p
            slowest = max(slowest, latency)
            if p >= x[COUNTS]:
                latencies[_bin(latency)] += 1
                over += latency > target
                worst = max(worst, latency)
        p += 1
    x[DONE], x[OLDEST], x[BATCH_END] = done, p, np.inf
    x[OVER] += over
    x[NEWEST] = slowest if slowest > 0 else x[NEWEST]
    x[WORST] = max(x[WORST], worst)
    # What is measured of it, and what it teaches: as `batches.ended` and `memory.saw_batch` have it for a live job.
    slots, work = believed[int(x[EXECUTORS])], max(duration - job[BELIEVED_OVERHEAD_S], 0.0)
    span = max(duration, end - x[ENDED_AT]) if x[ENDED_AT] > -np.inf else duration
    x[ENDED_AT] = end
    x[BATCHES] += 1.0
    x[PROCESSED] += x[ROWS]
    x[BATCH_S] += duration
    x[SPAN_S] += span
    x[WORK] += work * slots
    x[SLOTS] += span * slots
    if x[UNTAUGHT] > 0:
        x[UNTAUGHT] -= 1.0
    elif _busy(job[BELIEVED_OVERHEAD_S], x[ROWS], slots, duration):
        rows = x[ROWS] / slots
        x[XX] = _DECAY * x[XX] + rows * rows
        x[XD] = _DECAY * x[XD] + rows * work
        x[SLOPE_S] = _slope(x[XX], x[XD], job[GUESS_S])
    x[COLD] = 1.0 if x[COLD] == 1.0 or x[COLD] == 3.0 else 0.0
    if x[LONGER] > 0:
        left = x[LONGER] * job[WARMUP_KEPT]
        x[LONGER] = left if left > WARM else 0.0


@numba.njit(inline="always")
def _triggered(now: float, job: Any) -> float:
    """The next trigger after a moment."""
    return float((math.floor(now / job[TRIGGER_S]) + 1.0) * job[TRIGGER_S])


@numba.njit(inline="always")
def _start(x: Any, job: Any, speeds: Any, chance: Any, run: int, now: float, waiting: float, rate: float) -> None:
    """A batch of what waits begins; `rate` is that of the arrivals, in records/s."""
    rows = min(waiting, job[BATCH_ROWS])
    speed = speeds[int(x[EXECUTORS])]
    duration = job[OVERHEAD_S] + job[PER_RECORD_S] * rows / speed
    if job[CATCH_UP] < np.inf and rate > 0:
        duration = max(duration, rows / (job[CATCH_UP] * rate))
    duration *= 1.0 + x[LONGER]
    x[JOIN_UNTIL] = now + duration * (1.0 - speed / job[TOP])
    if x[COLD] > 0:
        duration += job[COLD_S]
        x[COLD] = 2.0
    if job[NOISE] > 0:
        u = uniform(chance, run) + uniform(chance, run) + uniform(chance, run) + uniform(chance, run)
        duration *= math.exp(job[NOISE] * (u - 2.0) * 1.7320508)
    x[BATCH_START], x[ROWS], x[BATCH_END] = now, rows, now + max(duration, 1e-3)
    x[NEXT_START] = _triggered(now, job)


@numba.njit(inline="always")
def _arrive(x: Any, ready_at: Any, job: Any) -> None:
    """The executors whose start-up is over join, and the earliest of the others is noted.

    While the batch in flight has tasks that wait for a slot, it gets one of them, and the batch lasts until this first
    task of a cold executor is done; later the next batch is the first.
    """
    now, soonest = x[NEXT_READY], np.inf
    for k in range(len(ready_at)):
        if ready_at[k] <= now:
            ready_at[k] = np.inf
            x[EXECUTORS] += 1.0
            x[UNTAUGHT] = _UNTAUGHT
            x[WAITING] -= 1.0
            if x[BATCH_END] < np.inf and now < x[JOIN_UNTIL]:
                x[BATCH_END] = max(x[BATCH_END], now + job[COLD_S])
                x[COLD] = 2.0 if x[COLD] == 0 or x[COLD] == 2.0 else 3.0
            else:
                x[COLD] = 1.0 if x[COLD] < 2.0 else 3.0
        else:
            soonest = min(soonest, ready_at[k])
    x[NEXT_READY] = soonest


# Nothing is allocated here: without numba's reference counts, taken at every inlined call, it takes half the time.
@numba.njit(cache=True, error_model="numpy", _nrt=False)  # type: ignore[call-overload, untyped-decorator]
def advance(
    xs: Any, ready_at: Any, latencies: Any, chance: Any, facts: Any, speeds: Any, believed: Any, arrived: Any,
    row: Any, begin: float, end: float, lasts: Any = None,
) -> None:  # fmt: skip
    """Move every run from whole second `begin` to `end`, event by event: an executor joins, a batch begins or ends.

    Args:
        xs: (runs, 38) of `State`, as are the next three.
        ready_at: (runs, pending).
        latencies: (runs, BINS).
        chance: (runs,).
        facts: (runs, 16) of `Jobs`.
        speeds: (runs, N + 1) of `Jobs`.
        believed: (runs, N + 1) of `Jobs`.
        arrived: (rows, T + 1) records produced before each second.
        row: (runs,) which of these a run has.
        begin: second.
        end: second, at most T.
        lasts: (rows,) seconds after which the runs of a row stand still; None: T.
    """
    final, stop = arrived.shape[1] - 1, end
    for run in range(len(row)):
        if lasts is not None:
            end = min(stop, float(lasts[row[run]]))
            if begin >= end:
                continue
        x, job, speed, produced = xs[run], facts[run], speeds[run], arrived[row[run]]
        known = believed[run]
        now = begin
        while True:
            in_batch = x[BATCH_END] < np.inf
            if x[LEAVING] > 0 and not in_batch:
                x[EXECUTORS] -= x[LEAVING]
                x[LEAVING] = 0.0
            there = x[BATCH_END] if in_batch else max(x[NEXT_START], max(x[HALT_UNTIL], now))
            until = min(min(there, x[NEXT_READY]), end)
            x[PAID] += (x[EXECUTORS] + x[WAITING]) * max(until - now, 0.0)
            now = max(until, now)
            if x[NEXT_READY] <= now and now < end:
                _arrive(x, ready_at[run], job)
            elif there > now or now >= end:
                break
            elif in_batch:
                _commit(x, job, known, latencies[run], produced, min(int(now), final - 1))
            else:
                second = int(now)
                rate = produced[second + 1] - produced[second]
                if x[REREAD] > 0:
                    x[DONE] = max(x[DONE] - job[REWIND_S] * rate, 0.0)
                    x[REREAD] = 0.0
                waiting = produced[second] + rate * (now - second) - x[DONE]
                if waiting < 0.5 or x[EXECUTORS] < 0.5:
                    x[NEXT_START] = _triggered(now, job)
                else:
                    _start(x, job, speed, chance, run, now, waiting, rate)


@numba.njit(cache=True)
def close(xs: Any, latencies: Any, facts: Any, arrived: Any, row: Any, end: int, lasts: Any = None) -> None:
    """Count the seconds over the target whose records still wait at the end, with the latency they have by then."""
    for run in range(len(row)):
        if lasts is not None:
            end = lasts[row[run]]
        x, produced = xs[run], arrived[row[run]]
        for p in range(int(max(x[OLDEST], x[COUNTS])), end):
            latency = float(end - p)
            if produced[p + 1] > produced[p] and latency > facts[run, TARGET_S]:
                latencies[run, _bin(latency)] += 1
                x[OVER] += 1.0
                x[WORST] = max(x[WORST], latency)


forget_stale((advance, close))
