"""The effect of a new target on a run: executors are requested or dismissed, or the engine restarts."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from models.twin.sim.job import DRAWS, TwinJobs
from models.twin.sim.state import SimState


@numba.njit(inline="always")
def draw_uniform(chance: Any, run: int) -> float:
    """Draw the next random number in [0, 1) of a run (xorshift64*, Vigna 2016); its state in `chance` changes.

    Args:
        chance: (runs,) unsigned 64-bit states, none of them 0.
        run: index of the run, below the length (not checked: compiled).
    """
    bits = chance[run]
    bits ^= bits >> np.uint64(12)
    bits ^= bits << np.uint64(25)
    bits ^= bits >> np.uint64(27)
    chance[run] = bits
    return float((bits * np.uint64(0x2545F4914F6CDD1D)) >> np.uint64(11)) / 9007199254740992.0


@numba.njit(inline="always")
def _call(x: Any, ready_at: Any, more: int, now: float, startup_s: Any, chance: Any, run: int) -> None:
    """Request so many executors; those asked to leave stay instead, as far as there are any."""
    kept = min(float(more), x.leaving)
    x.leaving -= kept
    for _ in range(more - int(kept)):
        for k in range(len(ready_at)):
            if ready_at[k] == np.inf:
                ready_at[k] = now + startup_s[int(draw_uniform(chance, run) * DRAWS)]
                x.waiting += 1.0
                x.next_ready = min(x.next_ready, ready_at[k])
                break


@numba.njit(inline="always")
def _dismiss(x: Any, ready_at: Any, fewer: int) -> None:
    """Call off those on their way, the last first, then ask executors to leave."""
    for _ in range(fewer):
        last = -1
        for k in range(len(ready_at)):
            if ready_at[k] < np.inf and (last < 0 or ready_at[k] > ready_at[last]):
                last = k
        if last >= 0:
            ready_at[last] = np.inf
            x.waiting -= 1.0
        else:
            x.leaving += 1.0
    x.next_ready = ready_at.min()


@numba.njit(cache=True, error_model="numpy")
def retarget(state: SimState, jobs: TwinJobs, targets: Any, now: float) -> None:
    """Set the targets of the runs at second `now`; `state` changes in place.

    The sums since the last look (decision) begin anew in every run. Where the target changes, executors are requested
    (each arrives after a drawn start-up delay) or dismissed: requests on their way are cancelled first, the newest
    before the others, then running executors leave after the batch in flight. An engine that restarts has (and pays)
    the new number at once, loses its batch in flight and processes nothing for a drawn time; a change meanwhile does
    not prolong it.

    Args:
        state: of the runs.
        jobs: of the runs.
        targets: (runs,) whole numbers of executors as floats, within each job's bounds (not checked).
        now: seconds since the runs began.
    """
    for run in range(len(targets)):
        x, target = state.x[run], targets[run]
        x.batches = x.processed = x.batch_s = x.span_s = x.work = x.slots = 0.0
        if target == x.target:
            continue
        x.raised_at = now if target > x.target else x.raised_at
        x.target, x.changed_at = target, now
        x.changes += 1.0
        if jobs.restart_s[run, 0] >= 0:
            x.executors, x.batch_end, x.reread = target, np.inf, 1.0
            if x.halt_until <= now:
                x.halt_until = now + jobs.restart_s[run, int(draw_uniform(state.chance, run) * DRAWS)]
            continue
        more = int(target - (x.executors - x.leaving + x.waiting))
        if more > 0:
            _call(x, state.ready_at[run], more, now, jobs.startup_s[run], state.chance, run)
        else:
            _dismiss(x, state.ready_at[run], -more)
