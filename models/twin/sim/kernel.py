"""The physics of the twin, compiled, because a backtest simulates billions of seconds.

Functions here change runs of a `SimState` in place; `x` is a run's record of `SimState.x`, `job` its `TwinJobs.facts`.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from models.contract.service_rate import COLD_BATCHES
from models.policy.core import batch_time
from models.twin.sim.actuate import draw_uniform
from models.twin.sim.job import TwinJobs
from models.twin.sim.state import BINS, FINE_S, LINEAR, SimState

WARM = 1e-4
"""A warm-up that has shrunk to this share is dropped."""
_learn = numba.njit(inline="always")(batch_time.learn)
_UNTAUGHT = float(COLD_BATCHES)


@numba.njit(inline="always")
def _bin(latency: float) -> int:
    if latency < LINEAR * FINE_S:
        return int(latency / FINE_S)
    return min(BINS - 1, LINEAR + int(16 * math.log2(latency / (LINEAR * FINE_S))))


@numba.njit(inline="always")
def _commit(x: Any, job: Any, believed: Any, latencies: Any, produced: Any, last: int) -> None:
    """The batch in flight ends: latencies of the seconds it completes, and what its duration teaches."""
    end, duration = x.batch_end, x.batch_end - x.batch_start
    done = x.done + x.rows
    p, target, slowest, worst, over = int(x.oldest), job.latency_target_s, 0.0, 0.0, 0
    while p <= last and produced[p + 1] <= done + 0.5:
        if produced[p + 1] > produced[p]:
            latency = end - p
            slowest = max(slowest, latency)
            if p >= x.counts:
                latencies[_bin(latency)] += 1
                over += latency > target
                worst = max(worst, latency)
        p += 1
    x.done, x.oldest, x.batch_end = done, p, np.inf
    x.over += over
    x.newest = slowest if slowest > 0 else x.newest
    x.worst = max(x.worst, worst)
    # Sums for the next look and the learned batch time, as `batches.add_batch` and `live.memory.with_batch` do live.
    slots, work = believed[int(x.executors)], max(duration - x.overhead_s, 0.0)
    span = max(duration, end - x.ended_at) if x.ended_at > -np.inf else duration
    x.ended_at = end
    x.batches += 1.0
    x.processed += x.rows
    x.batch_s += duration
    x.span_s += span
    x.work += work * slots
    x.slots += span * slots
    if x.untaught > 0:
        x.untaught -= 1.0
    elif x.waiting == 0 or end - x.raised_at >= job.quiet_s:
        x.overhead_s, x.per_record_s, x.sure_overhead, x.sure_both, x.sure_record = _learn(
            x.rows, slots, duration, x.overhead_s, x.per_record_s, x.sure_overhead, x.sure_both, x.sure_record,
            job.guessed_overhead_s, job.guessed_per_record_s,
        )  # fmt: skip
    x.used_at = end if x.cold >= 2.0 else x.used_at
    x.cold = 1.0 if x.cold == 1.0 or x.cold == 3.0 else 0.0
    if x.longer > 0:
        left = x.longer * job.warmup_kept
        x.longer = left if left > WARM else 0.0


@numba.njit(inline="always")
def _triggered(now: float, job: Any) -> float:
    return float((math.floor(now / job.trigger_s) + 1.0) * job.trigger_s)


@numba.njit(inline="always")
def _start(x: Any, job: Any, speeds: Any, chance: Any, run: int, now: float, waiting: float, rate: float) -> None:
    """A batch of what waits begins; `rate` is that of the arrivals, in records/s."""
    rows = min(waiting, job.batch_rows)
    speed = speeds[int(x.executors)]
    duration = job.overhead_s + job.per_record_s * rows / speed
    if job.catch_up < np.inf and rate > 0:
        duration = max(duration, rows / (job.catch_up * rate))
    duration *= 1.0 + x.longer
    x.join_until = now + duration * (1.0 - speed / job.top)
    if x.cold > 0:
        duration += job.cold_s
        x.cold = 2.0
    if job.noise > 0:
        u = (
            draw_uniform(chance, run)
            + draw_uniform(chance, run)
            + draw_uniform(chance, run)
            + draw_uniform(chance, run)
        )
        duration *= math.exp(job.noise * (u - 2.0) * 1.7320508)
    x.batch_start, x.rows, x.batch_end = now, rows, now + max(duration, 1e-3)
    x.next_start = _triggered(now, job)


@numba.njit(inline="always")
def _arrive(x: Any, ready_at: Any, job: Any) -> None:
    """The executors whose start-up is over join, and the earliest of the others is noted.

    While the batch in flight has tasks that wait for a slot, it gets one of them, and the batch lasts until this first
    task of a cold executor is done; later the next batch is the first.
    """
    now, soonest = x.next_ready, np.inf
    for k in range(len(ready_at)):
        if ready_at[k] <= now:
            ready_at[k] = np.inf
            x.executors += 1.0
            x.untaught = _UNTAUGHT
            x.waiting -= 1.0
            if x.batch_end < np.inf and now < x.join_until:
                x.batch_end = max(x.batch_end, now + job.cold_s)
                x.cold = 2.0 if x.cold == 0 or x.cold == 2.0 else 3.0
            else:
                x.cold = 1.0 if x.cold < 2.0 else 3.0
        else:
            soonest = min(soonest, ready_at[k])
    x.next_ready = soonest


# Nothing is allocated here: without numba's reference counts, taken at every inlined call, it takes half the time.
@numba.njit(cache=True, error_model="numpy", _nrt=False)  # type: ignore[call-overload, untyped-decorator]
def advance(state: SimState, jobs: TwinJobs, load: Any, begin: float, end: float) -> None:
    """Simulate every run from second `begin` to `end`, event by event: an executor joins, a batch begins or ends.

    Nothing is returned or raised: executor-seconds, commits, latencies and what a policy measures are added to `state`.

    Args:
        state: of the runs, changed in place.
        jobs: of the runs.
        load: `Produced`: `arrived` (rows, T + 1) records before each second; `row` and `ends` (second), (runs,).
        begin: seconds since the runs began; where the last call ended.
        end: seconds, at most the length of the longest load (not checked). A run stands still from its own end on.
    """
    final, stop = load.arrived.shape[1] - 1, end
    for run in range(len(load.row)):
        end = min(stop, float(load.ends[run]))
        if begin >= end:
            continue
        x, job, produced = state.x[run], jobs.facts[run], load.arrived[load.row[run]]
        now = begin
        while True:
            in_batch = x.batch_end < np.inf
            if x.leaving > 0 and not in_batch:
                x.executors -= x.leaving
                x.leaving = 0.0
            there = x.batch_end if in_batch else max(x.next_start, max(x.halt_until, now))
            until = min(min(there, x.next_ready), end)
            x.paid += (x.executors + x.waiting) * max(until - now, 0.0)
            now = max(until, now)
            if x.next_ready <= now and now < end:
                _arrive(x, state.ready_at[run], job)
            elif there > now or now >= end:
                break
            elif in_batch:
                _commit(x, job, jobs.believed[run], state.latencies[run], produced, min(int(now), final - 1))
            else:
                second = int(now)
                rate = produced[second + 1] - produced[second]
                if x.reread > 0:
                    x.done = max(x.done - job.rewind_s * rate, 0.0)
                    x.reread = 0.0
                waiting = produced[second] + rate * (now - second) - x.done
                if waiting < 0.5 or x.executors < 0.5:
                    x.next_start = _triggered(now, job)
                else:
                    _start(x, job, jobs.speeds[run], state.chance, run, now, waiting, rate)


@numba.njit(cache=True, error_model="numpy")
def watch(
    state: SimState, jobs: TwinJobs, load: Any, begin: int, end: int, per_s: int, lag: Any, there: Any, commits: Any,
    many: Any,
) -> None:  # fmt: skip
    """Simulate every run step by step, as `advance` does, and note what is seen after each step.

    Args:
        state: of the runs, changed in place.
        jobs: of the runs.
        load: as in `advance`.
        begin: first step, counted since the runs began.
        end: the step behind the last one.
        per_s: steps in a second.
        lag: (runs, T) records that are not committed at the end of each second; set.
        there: (runs, T) executors that run, likewise.
        commits: (runs, end - begin, 2) second, and records committed by then, of each step in which a batch ended; set.
        many: (runs,) how many of them there are; set.
    """
    runs = len(load.row)
    ends, done = np.empty(runs), np.empty(runs)
    many[:] = 0
    for step in range(begin, end):
        second, until = step // per_s, (step + 1) / per_s
        for run in range(runs):
            x = state.x[run]
            ends[run], done[run] = x.batch_end, x.done
        advance(state, jobs, load, step / per_s, until)
        for run in range(runs):
            x = state.x[run]
            if x.done > done[run]:
                commits[run, many[run], 0] = min(ends[run], until)
                commits[run, many[run], 1] = x.done
                many[run] += 1
            lag[run, second] = load.arrived[load.row[run], second + 1] - x.done
            there[run, second] = x.executors


@numba.njit(cache=True)
def close(state: SimState, jobs: TwinJobs, load: Any) -> None:
    """Count the records that still wait at the end of the load: their seconds over the latency target enter `state`.

    Each such second enters `over`, `worst` and the latency histogram with the latency it has by the end. A second call
    would count them twice.
    """
    for run in range(len(load.row)):
        x, produced, end = state.x[run], load.arrived[load.row[run]], load.ends[run]
        for p in range(int(max(x.oldest, x.counts)), end):
            latency = float(end - p)
            if produced[p + 1] > produced[p] and latency > jobs.facts[run].latency_target_s:
                state.latencies[run, _bin(latency)] += 1
                x.over += 1.0
                x.worst = max(x.worst, latency)
