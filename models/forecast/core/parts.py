"""Which of a job's times and loads belong together: a few that lie apart come from a wrong clock or a wrong count.

Job time is not wall time (a trace of years ago may be replayed today), so times are held against each other only.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from configs.bounds import DAY_S
from models.forecast.core.series import MAX_STEPS, Floats

GAP_DAYS = 42
"""Where nothing was measured for more days than this one part of the times ends and another begins."""
LONE_DAYS = 1
"""A part that covers fewer days than this is left out beside one that covers more."""
PAUSE_S = 3600.0
"""Within a part, a gap of more seconds than this may be a job's pause, or be made by a wrong time beyond it."""
RESUMED = 168
"""What lies beyond such a gap at an end counts once the gap is not so many times as long: after a week one hour."""
_USUAL = 0.1  # of the longest run between pauses: one that covers as much is usual, as of a job that runs now and then

FEW, BEYOND = 10, 1e4
"""Fewer steps than `FEW` with a load of over `BEYOND` times that of all others come from a wrong count."""


def select_miscounted(values: Floats) -> NDArray[np.bool_]:
    """Tell which loads are too few and too far above a job's others to be of it; a network would learn nothing else.

    Args:
        values: (N,) records/s, NaN where missing.

    Returns:
        (N,) whether a load is above `BEYOND` (10⁴) times the `FEW`th (tenth) highest; none where that one is 0 or
        missing.
    """
    known = values[np.isfinite(values)]
    usual = np.partition(known, -FEW)[-FEW] if len(known) >= FEW else 0.0
    found: NDArray[np.bool_] = (values > BEYOND * usual) & (usual > 0)
    return found


def select_parts(steps: NDArray[np.int64], weights: Floats, step_s: float) -> NDArray[np.bool_]:
    """Tell which steps make a job's series; the others are too few and too far away, or too old for one series.

    Steps are cut into parts at gaps of more than `GAP_DAYS`. A part is long enough if it covers `LONE_DAYS`, or as much
    as the longest does. Of these are kept the newest and all that fit with it into `MAX_STEPS`. At both ends of what is
    kept, steps beyond a gap of over `PAUSE_S` are left out, as they would make the series longer by it, if they cover
    less than `LONE_DAYS`, than 1 / `RESUMED` of the gap, and than a tenth of the longest run without such a gap.
    Between others such steps are kept.

    Args:
        steps: (N,) index since the epoch, in any order; one may occur several times.
        weights: (N,) seconds of job time that records cover in it.
        step_s: seconds per step, above 0.

    Returns:
        (N,) whether a step is kept; where N > 0, at least one is.
    """
    if len(steps) == 0:
        return np.zeros(0, dtype=bool)
    part, _ = _cut(steps, step_s, GAP_DAYS * DAY_S)
    covered = np.bincount(part, weights)
    long = covered >= min(LONE_DAYS * DAY_S, covered.max())
    newest = int(np.flatnonzero(long)[-1])
    first = np.full(len(long), steps.max())
    np.minimum.at(first, part, steps)
    fitting = first > int(steps[part == newest].max()) - MAX_STEPS
    fitting[newest] = True
    kept: NDArray[np.bool_] = (long & fitting)[part]
    kept[kept] = _without_lone_ends(steps[kept], weights[kept], step_s)
    return kept


def _without_lone_ends(steps: NDArray[np.int64], weights: Floats, step_s: float) -> NDArray[np.bool_]:
    run, gaps_s = _cut(steps, step_s, PAUSE_S)
    covered: Floats = np.bincount(run, weights).astype(np.float64)
    most_s = min(LONE_DAYS * DAY_S, _USUAL * covered.max())  # so that the longest run is never left out
    enough_s = np.minimum(gaps_s / RESUMED, most_s)
    last = len(gaps_s) - _lone_runs(covered, enough_s)
    kept: NDArray[np.bool_] = (run >= _lone_runs(covered[::-1], enough_s[::-1])) & (run <= last)
    return kept


def _lone_runs(covered: Floats, enough_s: Floats) -> int:
    """Return how many of the last of (R,) runs are left out, given what has to be beyond each of (R − 1,) gaps."""
    lone, beyond_s = 0, 0.0
    for gap in range(len(enough_s) - 1, -1, -1):
        beyond_s += covered[gap + 1]
        if beyond_s < enough_s[gap]:
            lone, beyond_s = len(enough_s) - gap, 0.0
    return lone


def _cut(steps: NDArray[np.int64], step_s: float, longest_s: float) -> tuple[NDArray[np.int64], Floats]:
    """Number the parts, (N,) in order of time, into which longer gaps cut the steps; and these gaps' seconds."""
    order = np.argsort(steps, kind="stable")
    missing_s = (np.diff(steps[order], prepend=steps[order[0]] - 1) - 1) * step_s
    begins = missing_s > longest_s
    part = np.empty(len(steps), dtype=np.int64)
    part[order] = np.cumsum(begins)
    return part, missing_s[begins]
