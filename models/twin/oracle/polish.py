"""Simulate plans in the twin and improve them there by small edits, each of which is tried by simulation."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from models.policy.core.capacity import Floats, Integers
from models.twin.sim import kernel
from models.twin.sim.actuate import retarget
from models.twin.sim.given import Load, Produced
from models.twin.sim.job import DRAWS, TwinJobs
from models.twin.sim.state import SimState, begin

SETTLE = 8
"""Looks after which a small edit of a plan has had its effect, beyond the start-up."""
REACH = 8
"""Looks by which an executor may be dismissed earlier than planned, in one edit."""


def simulate_plans(
    plans: Floats, jobs: TwinJobs, load: Load, every_s: int, seeds: Integers, executors: Floats
) -> tuple[Floats, Floats]:
    """Simulate plans and return what they cost, as `simulate` would find it.

    Args:
        plans: (D, runs) executors asked for at the looks (decisions), at least one run.
        jobs: of the runs.
        load: of the runs, which all count from the same second on, a multiple of `every_s`, to their common end.
        every_s: seconds between looks.
        seeds: (runs,) of their random numbers.
        executors: (runs,) at the beginning.

    Returns:
        (runs,) executor-seconds paid, and (runs,) share of the seconds over the latency target.
    """
    state, begins = begin(jobs, executors, seeds), int(load.begins[0])
    _follow(state, jobs, load.produced, np.ascontiguousarray(plans), every_s, begins // every_s)
    kernel.close(state, jobs, load.produced)
    return state.x["paid"], state.x["over"] / (load.seconds - begins)


def edit_plans(
    plans: Floats, prices: Floats, jobs: TwinJobs, load: Load, every_s: int, seeds: Integers, executors: Floats
) -> Floats:
    """Edit plans decision by decision wherever another number of executors for some time is cheaper in the simulator.

    Args:
        plans: (D, runs) executors asked for at the looks (decisions); not changed.
        prices: (runs,) executor-seconds that a second over the latency target is worth.
        jobs: of the runs.
        load: of the runs, (rows, T + 1) records before each second.
        every_s: seconds between looks.
        seeds: (runs,) of their random numbers.
        executors: (runs,) at the beginning.

    Returns:
        (D, runs) executors asked for at the looks, a new array.
    """
    plans = np.ascontiguousarray(plans)
    late = _follow(begin(jobs, executors, seeds), jobs, load.produced, plans, every_s, 0)
    better = np.ascontiguousarray(plans.T)
    for run, plan in enumerate(better):
        one = np.array([run])
        alone, job = Produced(load.arrived, load.row[one], load.produced.ends[one]), jobs.select(one)
        _polish(begin(job, executors[one], seeds[one]), job, alone, plan, every_s, prices[run], late[run])
    return np.ascontiguousarray(better.T)


@numba.njit(cache=True)
def _pass(state: SimState, jobs: TwinJobs, load: Produced, targets: Any, look: int, every: int) -> None:
    retarget(state, jobs, targets, float(look * every))
    until = float(min((look + 1) * every, load.arrived.shape[1] - 1))
    kernel.advance(state, jobs, load, float(look * every), until)


@numba.njit(cache=True)
def _follow(state: SimState, jobs: TwinJobs, load: Produced, plans: Any, every: int, first: int) -> Any:
    """(runs, D) seconds over the target that each look found, from the first look to the end of the load.

    What the looks before `first` cost is forgotten.
    """
    x, late = state.x, np.zeros((plans.shape[1], plans.shape[0]))
    for look in range(len(plans)):
        if look == first:
            x["paid"][:] = 0.0
            x["over"][:] = 0.0
            x["counts"][:] = look * every
        late[:, look] = x["over"]
        _pass(state, jobs, load, plans[look], look, every)
        late[:, look] = x["over"] - late[:, look]
    return late


@numba.njit(cache=True)
def _late(x: Any, produced: Any, now: int, target: float) -> Any:
    """Seconds over the target, those included whose records already wait for longer."""
    late, p = x.over, int(x.oldest)
    while p < now - target:
        late += produced[p + 1] > produced[p]
        p += 1
    return late


@numba.njit(cache=True)
def _tried(
    state: SimState, jobs: TwinJobs, load: Produced, plan: Any, every: int, look: int, until: int, price: float,
    edit: Any,
) -> Any:  # fmt: skip
    """What the looks [look, until) cost from here, with targets [edit[0], edit[1]) replaced by edit[2]."""
    after = SimState(state.x.copy(), state.ready_at.copy(), state.latencies.copy(), state.chance.copy())
    x, target, end = after.x[0], np.zeros(1), load.arrived.shape[1] - 1
    paid, over = x.paid, x.over
    for k in range(look, until):
        target[0] = edit[2] if edit[0] <= k < edit[1] else plan[k]
        _pass(after, jobs, load, target, k, every)
    now = min(until * every, end)
    late = _late(x, load.arrived[load.row[0]], now, jobs.facts[0].latency_target_s)
    # A backlog that is not late yet costs a little by its age, because it may become late.
    age = max(now - x.oldest, 0.0)
    return x.paid - paid + price * (late - over) + 0.05 * price * age + 1e-6 * x.changes


@numba.njit(cache=True)
def _edits(plan: Any, look: int, late: Any, ahead: int, job: Any, found: Any) -> int:
    """Edits of the targets from a look on that are worth a trial: rows of begin, end and target; how many."""
    count, end, now = 0, len(plan), plan[look]
    before = plan[look - 1] if look > 0 else now
    here = look
    while here < end and plan[here] == now:
        here += 1
    after = plan[here] if here < end else now
    if now != before:
        for later in (1, 2):
            count = _add(found, count, look, min(look + later, end), before)
        if here - look <= 6 * REACH:
            for other in (before, after, now - 1, now + 1):
                if job.least <= other <= job.most and other != now:
                    count = _add(found, count, look, here, other)
        elif now - 1 >= job.least and now > before:
            count = _add(found, count, look, min(look + REACH, here), now - 1)
    if here < end and after != now and here - look in (1, 2, REACH // 2, REACH):
        count = _add(found, count, look, here, after)
    soon = late[max(look + ahead - 1, 0) : look + ahead + 4].sum() > 0
    for more in (1, 2):
        for length in (ahead + 2, ahead + REACH):
            if soon and now + more <= job.most:
                count = _add(found, count, look, min(look + length, end), now + more)
    return count


@numba.njit(cache=True)
def _add(found: Any, count: int, begin: int, end: int, target: float) -> int:
    found[count, 0], found[count, 1], found[count, 2] = begin, end, target
    return count + 1


@numba.njit(cache=True)
def _polish(state: SimState, jobs: TwinJobs, load: Produced, plan: Any, every: int, price: float, late: Any) -> None:
    """Walk along the plan of a run; where an edit from this look on is cheaper than none, the best is made."""
    found, none = np.zeros((24, 3)), np.array([-1.0, -1.0, 0.0])
    ahead = math.ceil(jobs.startup_s[0, DRAWS // 2] / every)
    for look in range(len(plan)):
        count = _edits(plan, look, late, ahead, jobs.facts[0], found)
        furthest = look
        for e in range(count):
            furthest = max(furthest, int(found[e, 1]))
        until, best, least = min(furthest + ahead + SETTLE, len(plan)), -1, np.inf
        for e in range(-1, count if count else -1):
            edit = found[e] if e >= 0 else none
            cost = _tried(state, jobs, load, plan, every, look, until, price, edit)
            if cost < least - 1e-9:
                best, least = e, cost
        if best >= 0:
            plan[int(found[best, 0]) : int(found[best, 1])] = found[best, 2]
        _pass(state, jobs, load, plan[look : look + 1], look, every)
