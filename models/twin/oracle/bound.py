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
from models.twin.sim.job import TwinJobs
from models.twin.sim.run import Load, Looks

PRICES = 4
"""Prices of a late second that are worked on in one pass."""
PASSES = 2
CHEAPEST, DEAREST = 2.0, 500.0
"""Executor-seconds that a late second is worth in the first pass."""
AGES = np.concatenate([np.linspace(0, 1, 33), 1.15 ** np.arange(1, 24)])
"""Ages of a backlog that are told apart, in units of the latency target."""
SPREAD = 2 * 1.7320508
"""The luckiest draw of the twin's batch noise, in deviations."""


def bound(jobs: TwinJobs, load: Load, looks: Looks, budgets: Floats) -> Floats:
    """(runs,) executor-seconds that no policy can do without, if its share of late seconds is within the budget.

    Args:
        jobs: of the runs.
        load: of the runs.
        looks: how often a policy may choose.
        budgets: (runs,) shares of the seconds that may be over the target.
    """
    found = np.zeros(len(budgets))
    for at in jobs.groups(load.row):
        arrived = load.arrived[load.row[at[0]], : load.produced.ends[at[0]] + 1]
        found[at] = _bound(jobs.of(at[:1]), arrived, looks.every_s, budgets[at])
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
    costs = np.zeros((2, 0))
    for _ in range(PASSES):
        costs = np.hstack([costs, [prices, _cheapest(known, prices, AGES * known.target) + spare]])
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
    """(PRICES,) prices on both sides of the best ones."""
    wider = np.concatenate([[prices[0] / 8], prices, [prices[-1] * 8]])
    each = [np.sqrt(wider[k + 1] * wider[k + 1 + side]) for k in dict.fromkeys(at.tolist()) for side in (-1, 1)]
    return np.resize(np.array(each), PRICES)


@numba.njit(cache=True)
def _backlogs(work: Any, now: float, ages: Any, out: Any) -> None:
    """(G,) work of the records that are younger than each age."""
    last = work[int(now)]
    for g in range(len(ages)):
        then = max(now - ages[g], 0.0)
        k = min(int(then), len(work) - 2)
        out[g] = last - (work[k] + (work[k + 1] - work[k]) * (then - k))


@numba.njit(cache=True)
def _late(counted: Any, now: int, before: int, target: float, ages: Any, out: Any) -> None:
    """(G,) seconds with records that are late at `now` and were not yet at `before`, by the age of the backlog."""
    end = max(math.ceil(now - target), 0)
    for g in range(len(ages)):
        begin = max(math.ceil(max(now - ages[g], before - target)), 0)
        out[g] = counted[end] - counted[begin] if end > begin else 0.0


@numba.njit(cache=True)
def _cheapest(known: _Windows, prices: Any, ages: Any) -> Any:
    """(PRICES,) least cost of all windows, late seconds at each price."""
    count, window, total = len(known.caps), known.length, np.zeros(PRICES)
    value, stage = np.zeros((count, len(ages), PRICES)), np.zeros((count, len(ages), PRICES))
    here, there, late = np.zeros(len(ages)), np.zeros(len(ages)), np.zeros(len(ages))
    for k in range(known.windows - 1, -1, -1):
        begin, end = k * window, (k + 1) * window
        _backlogs(known.work, float(begin), ages, here)
        _backlogs(known.work, float(end), ages, there)
        _late(known.counted, end, begin, known.target, ages, late)
        arrived = known.work[end] - known.work[begin]
        for n in range(count):
            paid, to = float(window * (known.least + n)), 0
            for g in range(len(ages)):
                left = here[g] + arrived - known.caps[n] + 1e-9
                while to + 1 < len(ages) and there[to + 1] <= left:
                    to += 1
                for p in range(PRICES):
                    stage[n, g, p] = paid + prices[p] * late[to] + value[n, to, p]
        if k > 0:
            _entered(stage, max(min(known.ahead, k) - 1, 0) * float(window), value, total)
    for p in range(PRICES):
        cheapest = np.inf
        for n in range(count):
            # The first executors are there from the beginning.
            cheapest = min(cheapest, stage[n, 0, p] - (float(window * (known.least + n)) if known.ahead else 0.0))
        total[p] += cheapest
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
