"""Plans followed in the twin itself, and made better there: what is tried is simulated, so nothing is estimated."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from models.policy.core.capacity import Floats, Integers
from models.twin.sim import kernel
from models.twin.sim.actuate import retarget
from models.twin.sim.compiled import forget_stale
from models.twin.sim.job import DRAWS, LEAST, MOST, TARGET_S, TwinJobs
from models.twin.sim.run import Load
from models.twin.sim.state import CHANGES, COUNTS, OLDEST, OVER, PAID, SimState, begin

SETTLE = 8
"""Looks after which a small edit of a plan has had its effect, beyond the start-up."""
REACH = 8
"""Looks by which an executor may be dismissed earlier than planned, in one edit."""


def followed(
    jobs: TwinJobs, load: Load, plans: Floats, every_s: int, seeds: Integers, executors: Floats
) -> tuple[Floats, Floats]:  # fmt: skip
    """(runs,) executor-seconds and share of seconds over the target of plans; the same as `simulate` finds.

    Args:
        jobs: of the runs.
        load: of the runs, which all count from the same second on.
        plans: (D, runs) targets at the looks.
        every_s: seconds between them.
        seeds: (runs,) of their chance.
        executors: (runs,) at the beginning.
    """
    s, begins = begin(jobs, executors, seeds), int(load.begins[0])
    _follow(*_arrays(s, jobs, load, np.ascontiguousarray(plans), every_s, np.zeros(plans.T.shape), begins // every_s))
    kernel.close(s.x, s.latencies, jobs.facts, load.arrived, load.row, load.seconds)
    return s.x[:, PAID], s.x[:, OVER] / (load.seconds - begins)


def polished(
    jobs: TwinJobs, load: Load, plans: Floats, prices: Floats, every_s: int, seeds: Integers, executors: Floats
) -> Floats:  # fmt: skip
    """(D, runs) the plans after small edits that pay in the twin at a price of a second over the target, (runs,)."""
    s, late = begin(jobs, executors, seeds), np.zeros(plans.T.shape)
    _follow(*_arrays(s, jobs, load, np.ascontiguousarray(plans), every_s, late, 0))
    s = begin(jobs, executors, seeds)
    better = np.ascontiguousarray(plans.T)
    _polish(*_arrays(s, jobs, load, better, prices, every_s, late))
    return np.ascontiguousarray(better.T)


def _arrays(s: SimState, jobs: TwinJobs, load: Load, *more: Any) -> Any:
    facts = jobs.facts, jobs.speeds, jobs.startup_s, jobs.restart_s
    return (s.x, s.ready_at, s.latencies, s.chance, *facts, load.arrived, load.row, *more)


@numba.njit(cache=True)
def _follow(
    x: Any, ready_at: Any, latencies: Any, chance: Any, facts: Any, speeds: Any, startup_s: Any, restart_s: Any,
    arrived: Any, row: Any, plans: Any, every: int, late: Any, first: int,
) -> None:  # fmt: skip
    """From the first look to the end of the load; `late` keeps the seconds over the target that each look found.

    What the looks before `first` cost is forgotten.
    """
    end = arrived.shape[1] - 1
    for look in range(len(plans)):
        now = look * every
        if look == first:
            x[:, PAID] = 0.0
            x[:, OVER] = 0.0
            x[:, COUNTS] = now
        late[:, look] = x[:, OVER]
        retarget(x, ready_at, chance, startup_s, restart_s, plans[look], float(now))
        kernel.advance(x, ready_at, latencies, chance, facts, speeds, speeds, arrived, row, float(now),
                       float(min(now + every, end)))  # fmt: skip
        late[:, look] = x[:, OVER] - late[:, look]


@numba.njit(cache=True)
def _late(x: Any, produced: Any, now: int, target: float) -> Any:
    """Seconds over the target, those included whose records already wait for longer."""
    late, p = x[OVER], int(x[OLDEST])
    while p < now - target:
        late += produced[p + 1] > produced[p]
        p += 1
    return late


@numba.njit(cache=True)
def _tried(
    x: Any, ready_at: Any, latencies: Any, chance: Any, facts: Any, speeds: Any, startup_s: Any, restart_s: Any,
    arrived: Any, row: Any, plan: Any, every: int, look: int, until: int, price: float, edit: Any,
) -> Any:  # fmt: skip
    """What the looks [look, until) cost from here, with targets [edit[0], edit[1]) replaced by edit[2]."""
    x, ready_at, chance, end = x.copy(), ready_at.copy(), chance.copy(), arrived.shape[1] - 1
    paid, over, target = x[0, PAID], x[0, OVER], np.zeros(1)
    for k in range(look, until):
        target[0] = edit[2] if edit[0] <= k < edit[1] else plan[k]
        retarget(x, ready_at, chance, startup_s, restart_s, target, float(k * every))
        kernel.advance(x, ready_at, latencies, chance, facts, speeds, speeds, arrived, row, float(k * every),
                       float(min((k + 1) * every, end)))  # fmt: skip
    late = _late(x[0], arrived[row[0]], min(until * every, end), facts[0, TARGET_S])
    # A backlog that is not late yet is as near to it as its age.
    age = max(min(until * every, end) - x[0, OLDEST], 0.0)
    return x[0, PAID] - paid + price * (late - over) + 0.05 * price * age + 1e-6 * x[0, CHANGES]


@numba.njit(cache=True)
def _edits(plan: Any, look: int, late: Any, ahead: int, least: float, most: float, found: Any) -> int:
    """Edits of the targets from a look on that are worth a trial: begin, end and target; how many."""
    count, end = 0, len(plan)
    before = plan[look - 1] if look > 0 else plan[look]
    here = look
    while here < end and plan[here] == plan[look]:
        here += 1
    after = plan[here] if here < end else plan[look]
    if plan[look] != before:
        for later in (1, 2):
            found[count, 0], found[count, 1], found[count, 2] = look, min(look + later, end), before
            count += 1
        if here - look <= 6 * REACH:
            for other in (before, after, plan[look] - 1, plan[look] + 1):
                if least <= other <= most and other != plan[look]:
                    found[count, 0], found[count, 1], found[count, 2] = look, here, other
                    count += 1
        elif plan[look] - 1 >= least and plan[look] > before:
            found[count, 0], found[count, 1], found[count, 2] = look, min(look + REACH, here), plan[look] - 1
            count += 1
    if here < end and after != plan[look] and here - look in (1, 2, REACH // 2, REACH):
        found[count, 0], found[count, 1], found[count, 2] = look, here, after
        count += 1
    soon = late[max(look + ahead - 1, 0) : look + ahead + 4].sum() > 0
    for more in (1, 2):
        for length in (ahead + 2, ahead + REACH):
            if soon and plan[look] + more <= most:
                found[count, 0], found[count, 1], found[count, 2] = look, min(look + length, end), plan[look] + more
                count += 1
    return count


@numba.njit(cache=True)
def _polish(
    x: Any, ready_at: Any, latencies: Any, chance: Any, facts: Any, speeds: Any, startup_s: Any, restart_s: Any,
    arrived: Any, row: Any, plans: Any, prices: Any, every: int, late: Any,
) -> None:  # fmt: skip
    """Walk along each plan; where an edit from this look on is cheaper than none, the best is made."""
    end, found, none = arrived.shape[1] - 1, np.zeros((24, 3)), np.array([-1.0, -1.0, 0.0])
    for run in range(len(plans)):
        a = slice(run, run + 1)
        plan, target, ahead = plans[run], np.zeros(1), math.ceil(startup_s[run, DRAWS // 2] / every)
        for look in range(len(plan)):
            count = _edits(plan, look, late[run], ahead, facts[run, LEAST], facts[run, MOST], found)
            furthest = look
            for e in range(count):
                furthest = max(furthest, int(found[e, 1]))
            until, best, least = min(furthest + ahead + SETTLE, len(plan)), -1, np.inf
            for e in range(-1, count if count else -1):
                cost = _tried(
                    x[a], ready_at[a], latencies[a].copy(), chance[a], facts[a], speeds[a], startup_s[a], restart_s[a],
                    arrived, row[a], plan, every, look, until, prices[run], found[e] if e >= 0 else none,
                )  # fmt: skip
                if cost < least - 1e-9:
                    best, least = e, cost
            if best >= 0:
                plan[int(found[best, 0]) : int(found[best, 1])] = found[best, 2]
            target[0] = plan[look]
            retarget(x[a], ready_at[a], chance[a], startup_s[a], restart_s[a], target, float(look * every))
            kernel.advance(x[a], ready_at[a], latencies[a], chance[a], facts[a], speeds[a], speeds[a], arrived, row[a],
                           float(look * every), float(min((look + 1) * every, end)))  # fmt: skip


forget_stale((_follow, _tried, _polish))
