"""Plans of a job whose load is known: dynamic programming over its batches seen as a fluid.

A batch of work w (slot-seconds) takes d = overhead + w / speed, and the work that arrives meanwhile is the next batch;
a second's records are committed when the batch after the one they arrived in has ended, so the latencies of the
seconds lie between d' + 1 and d + d' + 1 (d' being the next batch). Between two looks the rate is taken as constant.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

from models.policy.core.capacity import Floats, Integers

PRICES = 8
"""Plans for so many prices are made in one pass: neighbours in memory, one vector register."""
LEVELS, WORKS, BLOCK = 192, 32, 128
"""Rates and amounts of work in the tables; looks between two kept value functions, the others are computed again."""
LONGEST_S = 600.0
"""Seconds of the highest load that may pile up."""


class Fluid(NamedTuple):
    """A job and its load, simplified for planning.

    Attributes:
        speeds: (N,) slots that `least` and more executors are worth.
        rates: (D,) mean work that arrives between two looks, in slots (slot-seconds per second).
        least: executors of the first entry of `speeds`.
        span_s: seconds between two looks.
        overhead_s, trigger_s, latency_target_s, cold_s: seconds, as in `TwinJob`.
        batch_work: most work of a batch, slot-seconds.
        startup: looks from the request of an executor to its first task; 0 for engines that restart.
        restart_s: mean seconds without work at each change; NaN for engines that do not restart.
    """

    speeds: Floats
    rates: Floats
    least: int
    span_s: float
    overhead_s: float
    trigger_s: float
    latency_target_s: float
    cold_s: float
    batch_work: float
    startup: int
    restart_s: float


class _Table(NamedTuple):
    """By (rate, executors, work): where the work lies one look later, in `works`, and seconds over the target."""

    works: Any
    at: Any
    share: Any
    late: Any


def plan_executors(job: Fluid, prices: Floats, first: float) -> Integers:
    """Plan the executors of a job with a known load, at the least cost for each price of a late second.

    Args:
        job: with its load: `rates` (D,) slot-seconds of work per second, D at least 1; `speeds` (N,) slots.
        prices: (8,) executor-seconds that a second over the latency target is worth; exactly 8 (`PRICES`, not checked).
        first: executors at the beginning, among those that `job.speeds` covers.

    Returns:
        (8, D) executors that should run from each look (decision) to the next; ask for them a start-up delay earlier.
    """
    top = max(job.rates.max(), 1e-9)
    levels = top * np.linspace(0, 1, LEVELS) ** 2
    works = np.concatenate([[0.0], np.geomspace(1e-3 * top, LONGEST_S * top, WORKS - 1)])
    table = _Table(works, *_table(job, levels, works))
    chosen = _plans(job, table, _diffused(job.rates, levels), prices.astype(np.float32), int(first) - job.least)
    return chosen + job.least


@numba.njit(cache=True)
def _step(job: Fluid, speed: float, rate: float, work: float) -> tuple[float, float]:
    """The batch's work one look later, and the seconds over the target among those that arrive meanwhile."""
    overhead, target, most = job.overhead_s, job.latency_target_s, job.batch_work
    passed, late = 0.0, 0.0
    while passed < job.span_s - 1e-9:
        period = max(overhead + min(work, most) / speed, job.trigger_s)
        following = max(work - most, 0.0) + rate * period
        slowest = period + (overhead + following / speed) + 1.0
        share = min(max((slowest - target) / period, 0.0), 1.0)
        if following > most:
            share = 1.0 if (following / most) * (overhead + most / speed) > target else share
        part = min((job.span_s - passed) / period, 1.0)
        work += part * (following - work)
        late += part * period * share
        passed += period
    return work, late


@numba.njit(cache=True)
def _place(works: Any, work: float) -> Any:
    """Where an amount of work lies in the table: the entry below it and the share of the way to the next."""
    if work >= works[-1]:
        return len(works) - 2, 1.0
    k: Any = max(np.searchsorted(works, work, side="right") - 1, 0)
    return k, (work - works[k]) / (works[k + 1] - works[k])


@numba.njit(cache=True)
def _table(job: Fluid, levels: Any, works: Any) -> Any:
    """(LEVELS, N, WORKS) `at`, `share` and `late` of a `_Table`."""
    shape = (len(levels), len(job.speeds), len(works))
    at, share, late = np.zeros(shape, np.int32), np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    for r in range(shape[0]):
        for n in range(shape[1]):
            for j in range(shape[2]):
                work, seconds = _step(job, job.speeds[n], levels[r], works[j])
                at[r, n, j], share[r, n, j] = _place(works, work)
                late[r, n, j] = seconds
    return at, share, late


@numba.njit(cache=True)
def _diffused(rates: Any, levels: Any) -> Any:
    """The table's rate for each look; what rounding leaves out goes to the next, so that no work is lost."""
    found, owed = np.zeros(len(rates), np.int32), 0.0
    for t in range(len(rates)):
        wanted = rates[t] + owed
        k = min(max(np.searchsorted(levels, wanted), 1), len(levels) - 1)
        k -= wanted - levels[k - 1] < levels[k] - wanted
        found[t], owed = k, wanted - levels[k]
    return found


@numba.njit(cache=True, fastmath=True)
def _stage(after: Any, at: Any, share: Any, late: Any, prices: Any, span: float, out: Any) -> None:
    """(N, WORKS, PRICES) cost from a look on when n executors run until the next one."""
    for n in range(out.shape[0]):
        paid = np.float32(n * span)
        for j in range(out.shape[1]):
            k, b, seconds = at[n, j], share[n, j], late[n, j]
            a = np.float32(1.0) - b
            for p in range(PRICES):
                out[n, j, p] = paid + prices[p] * seconds + a * after[n, k, p] + b * after[n, k + 1, p]


@numba.njit(cache=True)
def _changed(stage: Any, jumps: Any, works: Any, out: Any) -> None:
    """The same where the change to n executors leaves `jumps[n]` more work: a cold batch or a restart."""
    for n in range(out.shape[0]):
        for j in range(out.shape[1]):
            k, b = _place(works, works[j] + jumps[n])
            a, b = np.float32(1.0 - b), np.float32(b)
            for p in range(PRICES):
                out[n, j, p] = a * stage[n, k, p] + b * stage[n, k + 1, p]


@numba.njit(cache=True, fastmath=True)
def _best(stage: Any, changed: Any, raise_cost: float, restarts: bool, out: Any) -> None:
    """The least cost from each number of executors: keep, lower, raise; less that of (0, 0), only differences count."""
    count, cost = out.shape[0], np.float32(raise_cost)
    for j in range(out.shape[1]):
        above = np.full(PRICES, np.inf, np.float32)
        for n in range(count - 1, -1, -1):
            for p in range(PRICES):
                out[n, j, p] = min(stage[n, j, p], above[p])
                above[p] = min(changed[n, j, p], above[p]) + cost
        below = np.full(PRICES, np.inf, np.float32)
        for n in range(count):
            for p in range(PRICES):
                out[n, j, p] = min(out[n, j, p], below[p])
                below[p] = min(below[p], changed[n, j, p] if restarts else stage[n, j, p])
    base = out[0, 0].copy()
    for n in range(count):
        for j in range(out.shape[1]):
            for p in range(PRICES):
                out[n, j, p] -= base[p]


@numba.njit(cache=True)
def _jumps(job: Fluid, rate: float) -> Any:
    """(N,) work that a change leaves: the cold batch's, or what arrives while the engine restarts."""
    if job.restart_s >= 0:
        return np.full(len(job.speeds), rate * job.restart_s)
    return job.speeds * job.cold_s


@numba.njit(cache=True)
def _back(begin: int, end: int, job: Fluid, table: _Table, level: Any, prices: Any, value: Any, stages: Any) -> None:
    """Turn `value`, the cost to come at look `end`, into that at `begin`; `stages`: what each choice is made from."""
    restarts, scratch = job.restart_s >= 0, np.empty_like(value)
    raise_cost = 0.0 if restarts else job.startup * job.span_s
    for t in range(end - 1, begin - 1, -1):
        stage, r = stages[t - begin], level[t]
        _stage(value, table.at[r], table.share[r], table.late[r], prices, job.span_s, stage)
        if restarts or job.cold_s > 0:
            _changed(stage, _jumps(job, job.rates[t]), table.works, scratch)
            _best(stage, scratch, raise_cost, restarts, value)
        else:
            _best(stage, stage, raise_cost, restarts, value)


@numba.njit(cache=True)
def _plans(job: Fluid, table: _Table, level: Any, prices: Any, first: int) -> Any:
    """(PRICES, D) choices, backwards in blocks of looks, then forwards with the block's values computed again."""
    looks, shape = len(job.rates), (len(job.speeds), len(table.works), PRICES)
    blocks = -(-looks // BLOCK)
    kept = np.zeros((blocks, *shape), np.float32)
    stages = np.zeros((BLOCK, *shape), np.float32)
    value = np.zeros(shape, np.float32)
    for b in range(blocks - 1, 0, -1):
        kept[b] = value
        _back(b * BLOCK, min((b + 1) * BLOCK, looks), job, table, level, prices, value, stages)
    kept[0] = value
    chosen = np.zeros((PRICES, looks), np.int64)
    executors, work = np.full(PRICES, first), np.full(PRICES, job.rates[0] * job.trigger_s)
    for b in range(blocks):
        begin, end = b * BLOCK, min((b + 1) * BLOCK, looks)
        value[:] = kept[b]
        _back(begin, end, job, table, level, prices, value, stages)
        for t in range(begin, end):
            jumps = _jumps(job, job.rates[t])
            for p in range(PRICES):
                most = executors[p] if t < job.startup else len(job.speeds) - 1
                n = _choice(stages[t - begin, :, :, p], table.works, jumps, job, executors[p], most, work[p])
                jump = jumps[n] if _hit(job, n, executors[p]) else 0.0
                work[p], _ = _step(job, job.speeds[n], job.rates[t], work[p] + jump)
                chosen[p, t] = executors[p] = n
    return chosen


@numba.njit(cache=True)
def _hit(job: Fluid, n: int, executors: int) -> bool:
    return n != executors if job.restart_s >= 0 else n > executors


@numba.njit(cache=True)
def _choice(stage: Any, works: Any, jumps: Any, job: Fluid, executors: int, most: int, work: float) -> int:
    """The executors with the least cost to come; on a tie the present ones."""
    best, least = executors, np.inf
    for n in range(most + 1):
        hit = _hit(job, n, executors)
        k, b = _place(works, work + (jumps[n] if hit else 0.0))
        cost = (1 - b) * stage[n, k] + b * stage[n, k + 1]
        if hit and not job.restart_s >= 0:
            cost += job.startup * job.span_s * (n - executors)
        if cost < least - 1e-6 or (cost < least + 1e-6 and n == executors):
            best, least = n, cost
    return best
