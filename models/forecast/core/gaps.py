"""What missing windows do to a job's forecasts: some are stepped over, after many the job begins anew."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from models.forecast.core.series import Floats, SeriesError

LONGEST = 24
"""A gap of more windows than this is not stepped over: what was carried says nothing any more."""
ROW = 24
"""Samples in a row after which a job that began anew may speak."""
DOUBTED, SETTLED = 3, 3
"""After a gap of more than `DOUBTED` windows a planner ignores forecasts until so many samples came after its end."""


class Streak(NamedTuple):
    """How a job's samples have come lately.

    Attributes:
        imputed: windows that were stepped over in the newest gap; 0: there was none since the job began.
        row: samples in a row, the newest one included.
        warming: whether the job began anew and had no `ROW` samples in a row yet.
    """

    imputed: int
    row: int
    warming: bool

    @property
    def doubted(self) -> bool:
        """Whether a planner had better ignore the forecast."""
        return self.imputed > DOUBTED and self.row - 1 < SETTLED


def resets(streak: Streak | None, missing: int) -> bool:
    """Whether a sample after so many missing windows finds nothing to step on from (seed 6.1, step 2)."""
    return streak is None or missing > LONGEST


def arrived(streak: Streak | None, missing: int) -> Streak:
    """The streak after one more sample (seed 6.1, step 2).

    A gap of 1 to 24 windows is stepped over: each of them is a NaN to the forecaster, which fills it by its own rule
    (same time last week, yesterday, the last value) and learns nothing from it. Own forecasts in their place would
    count as outcomes without an error: spreads would shrink, and the blend would learn from itself. So a state that
    was stepped over a gap is also the state that reads the same history at once.

    Args:
        streak: before; None where there was no sample yet.
        missing: windows between the sample before and this one.

    Raises:
        SeriesError: fewer than 0 are missing.
    """
    if missing < 0:
        raise SeriesError(f"missing={missing}: the sample is no newer than the one before. Drop it as stale.")
    if streak is None or resets(streak, missing):
        return Streak(0, 1, True)
    if missing:
        return Streak(missing, 1, streak.warming)
    row = streak.row + 1
    return Streak(streak.imputed, row, streak.warming and row < ROW)


def silence(streak: Streak | None, quantiles: Floats) -> str:
    """Why nothing may be said: `warming`, or `model_error` where a quantile is not finite; "" where it may."""
    if streak is None or streak.warming:
        return "warming"
    return "" if np.isfinite(quantiles).all() else "model_error"
