"""The late seconds that a job has to expect with each number of executors, by its forecast and learned capacity.

Each quantile of the forecast is taken for a course of the load with the probability between its neighbours' middles
(as if a load that is high in one step were so in all), and followed as a fluid: records that come above the capacity
wait, and a second is late while what waits is more than the slack of the latency target holds.
"""

from __future__ import annotations

import numpy as np

from models.policy.core.backlog import backlog
from models.policy.core.capacity import Floats
from models.policy.core.view import View

BATCHES = 2.0
"""Batches that fit into the latency of a record where nothing piles up: it waits for one, and is in the next."""
LEAST_SLACK = 0.1
"""Share of the latency target that may be spent on waiting, at least."""
DRAINED = 0.05
"""Share of the capacity, at least, at which what is left at the end is taken to be worked off."""
LASTS_S = 3600.0
"""Longest time for which what is left then is taken to be late: a job that is far behind is not given up."""


def late_seconds(view: View, target_s: float, lead_s: Floats | float, hold_s: float) -> Floats:
    """Return (runs, N + 1) late seconds to expect within lead and hold, and until what then waits is worked off.

    More executors than are there work after the lead time, fewer at once; in a step that the lead time ends within, the
    mean of both counts. What is left at the end is late until it is worked off at the rate of then, for at most
    `LASTS_S`.

    Args:
        view: of the jobs; without a usable forecast the present rate is taken to last.
        target_s: of the latency, seconds.
        lead_s: seconds from now until what is asked for now works, a number or one per run.
        hold_s: seconds after these for which executors asked for now must do, above 0.
    """
    capacity, ready = view.capacity, (view.executors - view.leaving)[:, None]
    speeds = np.broadcast_to(capacity.speeds, (view.runs, capacity.speeds.shape[1]))
    sustained = speeds * capacity.per_slot_rps[:, None]
    number = np.arange(speeds.shape[1])
    first = np.take_along_axis(sustained, np.minimum(number, ready).astype(np.int64), axis=1)
    slack_s = max(target_s - BATCHES * float(capacity.batch_s), LEAST_SLACK * target_s)
    lead = np.broadcast_to(np.asarray(lead_s, float), (view.runs,))
    rates, chances, ends = _courses(view, lead, hold_s)
    waiting = backlog(view.arrival_rps, view.lag_records, capacity.batch_s)
    waits = np.broadcast_to(waiting[:, None, None], (*sustained.shape, rates.shape[-1]))
    late, begin = np.zeros(waits.shape), np.zeros(view.runs)
    for step in range(rates.shape[1]):
        rate, seconds = rates[:, None, step], (ends[:, step] - begin)[:, None, None]
        before = np.clip((lead - begin) / np.maximum(ends[:, step] - begin, 1e-9), 0.0, 1.0)[:, None]
        able = (before * first + (1 - before) * sustained)[..., None]
        after = waits + (rate - able) * seconds
        late = late + seconds * _share_above(waits, after, slack_s * able)
        waits, begin = np.maximum(after, 0.0), ends[:, step]
    able = np.where(np.less_equal(begin, lead + 1e-9)[:, None], first, sustained)[..., None]
    spare = np.maximum(able - rate, DRAINED * np.maximum(able, 1e-9))
    left = np.maximum(waits - slack_s * able, 0.0) / spare
    late = late + np.minimum(left, LASTS_S)
    expected: Floats = (late * chances).sum(axis=-1)
    return expected


def _courses(view: View, lead_s: Floats, hold_s: float) -> tuple[Floats, Floats, Floats]:
    """(runs, K, Q) records/s, (Q,) or (runs, Q) chances of the courses, and (runs, K) seconds at which steps end."""
    still = np.repeat(view.arrival_rps[:, None], 2, axis=1)[..., None]
    ends = np.stack([lead_s, lead_s + hold_s], axis=1)
    if view.ahead is None:
        return still, np.ones(1), ends
    ahead, over = view.ahead, (lead_s + hold_s)[:, None]
    ends = np.broadcast_to(ahead.offsets_s, (view.runs, ahead.rps.shape[1]))
    known = np.asarray(np.isfinite(ahead.rps).all(axis=(1, 2)))[:, None, None]
    rates: Floats = np.where(known, ahead.rps, view.arrival_rps[:, None, None])
    middles = np.concatenate([[0.0], np.diff(ahead.levels) / 2 + np.array(ahead.levels[:-1]), [1.0]])
    # Where executors start in turns the forecast reaches further: what is far off takes nothing from who is late now.
    within = (np.concatenate([np.zeros((view.runs, 1)), ends[:, :-1]], axis=1) < over - 1e-9).sum(axis=1)
    last = np.minimum(np.arange(rates.shape[1]), np.maximum(within - 1, 0)[:, None])
    return np.take_along_axis(rates, last[..., None], axis=1), np.diff(middles), np.minimum(ends, over)


def _share_above(before: Floats, after: Floats, bound: Floats) -> Floats:
    """Share of a stretch in which something that goes linearly from one value to another is above a bound."""
    low, high = np.minimum(before, after), np.maximum(before, after)
    over = np.clip((high - bound) / np.maximum(high - low, 1e-9), 0.0, 1.0)
    share: Floats = np.where(low > bound, 1.0, over)
    return share
