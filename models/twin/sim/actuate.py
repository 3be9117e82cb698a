"""What a change of the target does to a run: executors are requested or asked to leave, or the engine restarts."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from models.twin.sim.compiled import forget_stale
from models.twin.sim.job import DRAWS
from models.twin.sim.state import (
    BATCH_END,
    BATCH_S,
    BATCHES,
    CHANGED_AT,
    CHANGES,
    EXECUTORS,
    HALT_UNTIL,
    LEAVING,
    NEXT_READY,
    PROCESSED,
    REREAD,
    SLOTS,
    SPAN_S,
    TARGET,
    WAITING,
    WORK,
)  # fmt: skip


@numba.njit(inline="always")
def uniform(chance: Any, run: int) -> float:
    """The next random number in [0, 1) of a run (xorshift64*, Vigna 2016)."""
    bits = chance[run]
    bits ^= bits >> np.uint64(12)
    bits ^= bits << np.uint64(25)
    bits ^= bits >> np.uint64(27)
    chance[run] = bits
    return float((bits * np.uint64(0x2545F4914F6CDD1D)) >> np.uint64(11)) / 9007199254740992.0


@numba.njit(inline="always")
def _call(x: Any, ready_at: Any, more: int, now: float, startup_s: Any, chance: Any, run: int) -> None:
    """Request so many executors; those asked to leave stay instead, as far as there are any."""
    kept = min(float(more), x[LEAVING])
    x[LEAVING] -= kept
    for _ in range(more - int(kept)):
        for k in range(len(ready_at)):
            if ready_at[k] == np.inf:
                ready_at[k] = now + startup_s[int(uniform(chance, run) * DRAWS)]
                x[WAITING] += 1.0
                x[NEXT_READY] = min(x[NEXT_READY], ready_at[k])
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
            x[WAITING] -= 1.0
        else:
            x[LEAVING] += 1.0
    x[NEXT_READY] = ready_at.min()


@numba.njit(cache=True, error_model="numpy")
def retarget(xs: Any, ready_at: Any, chance: Any, startup_s: Any, restart_s: Any, targets: Any, now: float) -> None:
    """Act on the runs whose target changes at second `now`; what is counted since the last look starts anew.

    An engine that restarts loses its batch in flight (its records are read again), does nothing for a drawn time, and
    has the new number at once; a change while it restarts is taken up by the same restart.
    """
    for run in range(len(targets)):
        x, target = xs[run], targets[run]
        x[BATCHES] = x[PROCESSED] = x[BATCH_S] = x[SPAN_S] = x[WORK] = x[SLOTS] = 0.0
        if target == x[TARGET]:
            continue
        x[TARGET], x[CHANGED_AT] = target, now
        x[CHANGES] += 1.0
        if restart_s[run, 0] >= 0:
            x[EXECUTORS], x[BATCH_END], x[REREAD] = target, np.inf, 1.0
            if x[HALT_UNTIL] <= now:
                x[HALT_UNTIL] = now + restart_s[run, int(uniform(chance, run) * DRAWS)]
            continue
        more = int(target - (x[EXECUTORS] - x[LEAVING] + x[WAITING]))
        if more > 0:
            _call(x, ready_at[run], more, now, startup_s[run], chance, run)
        else:
            _dismiss(x, ready_at[run], -more)


forget_stale((retarget,))
