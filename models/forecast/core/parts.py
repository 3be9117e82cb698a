"""Which of a job's times belong together: a few that lie months or years from the rest come from a wrong clock.

Job time is not wall time (a trace of years ago may be replayed today), so times are held against each other only.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from models.forecast.core.forecaster import DAY_S
from models.forecast.core.series import MAX_STEPS, Floats

GAP_DAYS = 42
"""Where nothing was measured for more days than this one part of the times ends and another begins."""
LONE_DAYS = 1
"""A part that covers fewer days than this is left out beside one that covers more."""


def select_parts(steps: NDArray[np.int64], weights: Floats, step_s: float) -> NDArray[np.bool_]:
    """Tell which steps make a job's series; the others are too few and too far away, or too old for one series.

    Steps are cut into parts at gaps of more than `GAP_DAYS`. A part is long enough if it covers `LONE_DAYS`, or as much
    as the longest does. Of these are kept the newest and all that fit with it into `MAX_STEPS`.

    Args:
        steps: (N,) index since the epoch, in any order; one may occur several times.
        weights: (N,) seconds of job time that records cover in it.
        step_s: seconds per step, above 0.

    Returns:
        (N,) whether a step is kept; where N > 0, at least one is.
    """
    if len(steps) == 0:
        return np.zeros(0, dtype=bool)
    order = np.argsort(steps, kind="stable")
    ordered = steps[order]
    begins_part = np.diff(ordered, prepend=ordered[0]) > GAP_DAYS * DAY_S / step_s + 1
    part = np.empty(len(steps), dtype=np.int64)
    part[order] = np.cumsum(begins_part)
    covered = np.bincount(part, weights)
    long = covered >= min(LONE_DAYS * DAY_S, covered.max())
    newest = int(np.flatnonzero(long)[-1])
    first = np.append(ordered[0], ordered[begins_part])
    fitting = first > int(steps[part == newest].max()) - MAX_STEPS
    fitting[newest] = True
    kept: NDArray[np.bool_] = (long & fitting)[part]
    return kept
