"""How missing windows affect a job's forecasts: short gaps are filled, after long ones the job starts over."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from models.forecast.core.series import Floats, SeriesError

LONGEST = 24
"""After a gap of more windows than this the job starts over, its state dropped."""
ROW = 24
"""Consecutive samples after which forecasts of a job that (re)started may be issued."""
DOUBTED, SETTLED = 3, 3
"""After a gap of more than `DOUBTED` windows a planner ignores forecasts until so many samples came after its end."""


class Streak(NamedTuple):
    """How regularly a job's samples have come lately.

    Attributes:
        imputed: windows that were missing, and filled, in the newest gap; 0: there was none since the job began.
        row: consecutive samples, the newest one included.
        warming: whether the job (re)started and has not had `ROW` consecutive samples yet.
    """

    imputed: int
    row: int
    warming: bool

    @property
    def doubted(self) -> bool:
        """Whether planners should ignore the forecast.

        True after a gap of more than `DOUBTED` windows, until `SETTLED` samples have followed the first one after it.
        """
        return self.imputed > DOUBTED and self.row - 1 < SETTLED


def resets(streak: Streak | None, missing: int) -> bool:
    """Whether a sample starts the job over: it is the first, or follows more than `LONGEST` missing windows.

    Args:
        streak: before the sample; None where there was no sample yet.
        missing: windows between the sample before and this one.
    """
    return streak is None or missing > LONGEST


def arrived(streak: Streak | None, missing: int) -> Streak:
    """Return the streak after one more sample.

    A gap of 1 to `LONGEST` windows is bridged: the caller steps the forecaster once per missing window with NaN, which
    it fills by its own rule. Its own forecasts are not put there, since they would count as outcomes without an error.
    A longer gap starts the job over.

    Args:
        streak: before the sample; None where there was no sample yet.
        missing: windows between the sample before and this one.

    Raises:
        SeriesError: `missing` is negative, so the sample is stale.
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
    """Return why no forecast may be issued, or "" where one may.

    Args:
        streak: after the newest sample; None where there was none.
        quantiles: records/s of any shape.

    Returns:
        "warming" while the job has no streak or has just started; "model_error" where a quantile is not finite; else
        "".
    """
    if streak is None or streak.warming:
        return "warming"
    return "" if np.isfinite(quantiles).all() else "model_error"
