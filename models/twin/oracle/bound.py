"""A bound that no policy can go below: executor-seconds at a given share of late seconds, whatever it knows.

Everything the twin asks for beyond the following is given away, so whatever a policy does, its figures in the twin
satisfy it too:

1. Work done in a window of `H` seconds is at most H * speed(Q), Q being the most executors that run in it: a batch
   never has fewer executors at its end than at its start, and overhead, triggers, cold batches and restarts only take
   time. Batch noise counts at its luckiest draw.
2. An executor that runs in a window was asked for at a look, at least the shortest start-up before, and has been paid
   since. So with J = floor(start-up / H) and H a part of the look interval, the window k costs at least
   H * max(Q[k+1], ..., Q[k+J]); summed, H per window and executor and (J - 1) * H per raise.
3. Records are committed in order, and none before its work is done: with a backlog whose oldest record is older than
   the target, the seconds between that record and now - target are late. They are counted once, at the ends of windows.
4. A backlog is rounded down to the next of `AGES`; less backlog never costs more.

The least cost of what remains, with late seconds at a price, is found by dynamic programming; minus price times budget
it is a bound for every price (Lagrangian duality), and the highest of them is taken.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numba
import numpy as np

from models.policy.core.capacity import Floats
from models.twin.sim.given import Load, Looks
from models.twin.sim.job import TwinJobs

PRICES = 4
"""Prices of a late second that are worked on in one pass."""
PASSES = 2  # rounds of prices, each nearer to the best of the last
CHEAPEST, DEAREST = 2.0, 500.0
"""Executor-seconds that a late second is worth in the first pass."""
AGES = np.concatenate([np.linspace(0, 1, 33), 1.15 ** np.arange(1, 24)])
"""Ages of a backlog that are told apart, in units of the latency target."""
SPREAD = 2 * 1.7320508
"""The luckiest draw of the twin's batch noise, in deviations."""


def lower_bound(jobs: TwinJobs, load: Load, looks: Looks, budgets: Floats) -> Floats:
    """Compute executor-seconds that no policy can stay below while its share of late seconds is within the budget.

    Args:
        jobs: of the runs.
        load: of the runs, (rows, T + 1) records before each second; all its seconds count.
        looks: of which only `every_s`, the seconds between decisions, is read.
        budgets: (runs,) shares of the seconds, 0 to 1, that may be over the latency target.

    Returns:
        (runs,) executor-seconds, a lower bound.

    Raises:
        ValueError: no runs.
    """
    found = np.zeros(len(budgets))
    for at in jobs.groups(load.row):
        arrived = load.arrived[load.row[at[0]], : load.produced.ends[at[0]] + 1]
        found[at] = _bound(jobs.select(at[:1]), arrived, looks.every_s, budgets[at])
    return found


class _Windows(NamedTuple):
    """What the search knows.

    Attributes:
        work, counted: (T + 1,) slot-seconds that arrived before each second, and seconds with a record.
        caps: (N,) most work of a window under `least` and more executors.
        length, windows: seconds of a window, and how many there are.
        ahead: windows within the shortest start-up.
        target: latency, seconds.
    """

    work: Floats
    counted: Floats
    caps: Floats
    least: int
    length: int
    windows: int
    ahead: int
    target: float


def _bound(jobs: TwinJobs, arrived: Floats, every_s: int, budgets: Floats) -> Floats:
    job, restarts, seconds = jobs.facts[0], bool(jobs.restart_s[0, 0] >= 0), len(arrived) - 1
    least, shortest = int(job["least"]), jobs.startup_s[0, 0]
    ready = not restarts and shortest >= 1
    window = max(h for h in range(1, every_s + 1) if every_s % h == 0 and (h <= shortest or not ready))
    worth = jobs.speeds[0, : int(job["most"]) + 1]
    if not restarts and not ready:
        # Executors that come and go at will within a window: their mean may be a fraction, so one more is free.
        worth = np.append(worth[1:], worth[-1])
    useful = int((worth < worth[-1]).sum())
    known = _Windows(
        arrived * job["per_record_s"], np.append(0, np.cumsum(np.diff(arrived) > 0.5)).astype(float),
        worth[least : max(useful, least) + 1] * window * math.exp(SPREAD * job["noise"]), least, window,
        seconds // window, int(shortest // window) if ready else 0, job["latency_target_s"],
    )  # fmt: skip
    budget_s = np.floor(budgets * seconds + 1e-9)
    # The first window is not charged where a start-up is; `least` executors are paid in the last one and the rest.
    spare = float(least * (seconds - known.windows * window + (window if known.ahead else 0)))
    prices, best = np.geomspace(CHEAPEST, DEAREST, PRICES), np.maximum(least * float(seconds), _worked(known, budget_s))
    ages, costs = AGES * known.target, np.zeros((2, 0))
    backlogs, late = _backlogs(known, ages), _late(known, ages)
    for _ in range(PASSES):
        costs = np.hstack([costs, [prices, _cheapest(known, prices, backlogs, late) + spare]])
        costs = costs[:, np.argsort(costs[0])]
        values = costs[1] - costs[0] * budget_s[:, None]
        best = np.maximum(best, values.max(axis=1))
        prices = _nearer(costs[0], values.argmax(axis=1))
    return best


def _worked(known: _Windows, budget_s: Floats) -> Floats:
    """(budgets,) executor-seconds for the work that cannot be left undone, at the best use of an executor.

    As records are committed in order, only a tail may stay: late seconds within the budget, and what is not late yet.
    """
    due = max(math.ceil(len(known.work) - 1 - known.target), 0)
    tail = np.searchsorted(known.counted[: due + 1], known.counted[due] - budget_s)
    speeds = known.caps / known.length
    best = (speeds / np.maximum(known.least + np.arange(len(speeds)), 1)).max()
    return known.work[np.minimum(tail, due)] / best


def _nearer(prices: Floats, at: Any) -> Floats:
    wider = np.concatenate([[prices[0] / 8], prices, [prices[-1] * 8]])
    each = [np.sqrt(wider[k + 1] * wider[k + 1 + side]) for k in dict.fromkeys(at.tolist()) for side in (-1, 1)]
    return np.resize(np.array(each), PRICES)


def _backlogs(known: _Windows, ages: Floats) -> Floats:
    """(windows + 1, G) work of the records that are younger than each age, at the edges of windows."""
    seconds, now = np.arange(len(known.work)), known.length * np.arange(known.windows + 1)
    then = np.maximum(now[:, None] - ages, 0.0)
    return known.work[now][:, None] - np.interp(then, seconds, known.work)


def _late(known: _Windows, ages: Floats) -> Floats:
    """(windows, G) seconds with records that are late at the end of a window and were not before, by the last's age."""
    now = known.length * np.arange(1, known.windows + 1)[:, None]
    oldest = np.maximum(now - ages, now - known.length - known.target)
    end, begin = (np.ceil(np.maximum(at, 0.0)).astype(np.int64) for at in (now - known.target, oldest))
    return np.where(end > begin, known.counted[end] - known.counted[np.minimum(begin, end)], 0.0)


@numba.njit(cache=True)
def _cheapest(known: _Windows, prices: Any, backlogs: Any, late: Any) -> Any:
    """(PRICES,) least cost of all windows, late seconds at each price."""
    count, ages, total = len(known.caps), backlogs.shape[1], np.zeros(PRICES)
    value, stage = np.zeros((count, ages, PRICES)), np.zeros((count, ages, PRICES))
    for k in range(known.windows - 1, -1, -1):
        arrived = known.work[(k + 1) * known.length] - known.work[k * known.length]
        for n in range(count):
            paid, to = float(known.length * (known.least + n)), 0
            for g in range(ages):
                left = backlogs[k, g] + arrived - known.caps[n] + 1e-9
                while to + 1 < ages and backlogs[k + 1, to + 1] <= left:
                    to += 1
                for p in range(PRICES):
                    stage[n, g, p] = paid + prices[p] * late[k, to] + value[n, to, p]
        if k > 0:
            _entered(stage, max(min(known.ahead, k) - 1, 0) * float(known.length), value, total)
    for n in range(count if known.ahead else 0):
        stage[n, 0] -= float(known.length * (known.least + n))  # the first executors are there from the beginning
    for p in range(PRICES):
        total[p] += stage[:, 0, p].min()
    return total


@numba.njit(cache=True)
def _entered(stage: Any, raise_cost: float, value: Any, total: Any) -> None:
    """The least cost from each number of executors before: keep, lower, raise; what is common goes to `total`."""
    count, ages = value.shape[0], value.shape[1]
    for g in range(ages):
        for p in range(PRICES):
            above = np.inf
            for n in range(count - 1, -1, -1):
                above = min(above + raise_cost, stage[n, g, p])
                value[n, g, p] = above
            below = np.inf
            for n in range(count):
                below = min(below, stage[n, g, p])
                value[n, g, p] = min(value[n, g, p], below)
    base = value[0, 0].copy()
    for p in range(PRICES):
        total[p] += base[p]
        for n in range(count):
            for g in range(ages):
                value[n, g, p] -= base[p]
