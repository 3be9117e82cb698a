"""How missing windows affect a job's forecasts: at what level gaps are filled, and that long ones begin anew."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from models.forecast.core.series import Floats, SeriesError

LONGEST_GAP = 24
"""After a gap of more windows than this the job starts over: it warms up, on all that its model knows from before."""
WARM_UP = 24
"""Consecutive samples after which forecasts of a job that (re)started may be issued."""
DOUBTED, SETTLED = 3, 3
"""After a gap of more than `DOUBTED` windows no forecast is issued until so many samples came after its end."""
PARTS, CHANGED = 8, 1.25
"""A level has changed for good once so many parts of a day have each changed by more than this factor, all one way."""
MOST_CHANGE = 10.0
"""That change is cut to this factor, and to its inverse."""


class Streak(NamedTuple):
    """How regularly a job's samples have come lately.

    Attributes:
        imputed: windows that were missing, and filled, in the newest gap, or in a longer one before it that is still
            doubted; 0: there was none since the job began.
        row: consecutive samples, the newest one included.
        warming: whether the job (re)started and has not had `WARM_UP` consecutive samples yet.
    """

    imputed: int
    row: int
    warming: bool

    @property
    def doubted(self) -> bool:
        """Whether a forecast would rest too much on windows that were filled.

        True after a gap of more than `DOUBTED` windows, until `SETTLED` samples have followed the first one after it.
        """
        return self.imputed > DOUBTED and self.row - 1 < SETTLED


def starts_over(streak: Streak | None, missing: int) -> bool:
    """Return whether a sample starts the job over: it is the first, or follows more than `LONGEST_GAP` missing windows.

    Args:
        streak: before the sample; None where there was no sample yet.
        missing: windows between the sample before and this one.
    """
    return streak is None or missing > LONGEST_GAP


def streak_after(streak: Streak | None, missing: int) -> Streak:
    """Return the streak (how regularly a job's samples came) after one more sample.

    A gap of over 24 missing windows, or no sample before, starts the job over: 1 in a row, warming until 24 in a row.
    The caller steps the forecaster once per missing window with NaN.

    Args:
        streak: before the sample; None where there was no sample yet.
        missing: windows between the sample before and this one.

    Raises:
        SeriesError: `missing` is negative, so the sample is stale.
    """
    if missing < 0:
        raise SeriesError(f"missing={missing}: the sample is no newer than the one before. Drop it as stale.")
    if streak is None or starts_over(streak, missing):
        return Streak(0, 1, True)
    if missing:
        imputed = max(missing, streak.imputed) if streak.doubted else missing  # a short gap ends no doubt
        return Streak(imputed, 1, streak.warming)
    row = streak.row + 1
    return Streak(streak.imputed, row, streak.warming and row < WARM_UP)


def silence_reason(streak: Streak | None, quantiles: Floats) -> str:
    """Return why no forecast may be issued, or "" where one may.

    Args:
        streak: after the newest sample; None where there was none.
        quantiles: records/s of any shape.

    Returns:
        "warming" while the job has no streak or has just started; "model_error" where a quantile is not finite;
        "doubted" where a long gap is recent; else "".
    """
    if streak is None or streak.warming:
        return "warming"
    if not np.isfinite(quantiles).all():
        return "model_error"
    return "doubted" if streak.doubted else ""


def level_change(values: Floats, at: int, day: int, week: int) -> float:
    """Return the factor that takes the value of a week before a step to the level that has changed for good since.

    The day before the step is compared with the same day a week ago, part by part, so that a busy afternoon or a quiet
    night is no change; the least of their changes counts. It is divided by that of the day which begins with the value:
    this may lie after the change already, which counted twice a week later, and in a gap once more each week. Where
    Monday differs from Sunday that divides by too much: fills there may stay as low, or as high, as a week before.

    The networks' rule for last week's steps (`neural.windows`) is another one, by the mean root of a whole day: they
    have learned what such steps are worth, but a fill counts like a measured step, and so changes less readily.

    Args:
        values: (T,) records/s, oldest first, filled up to the step.
        at: index of the step, at most T.
        day: steps per day, at least 1.
        week: steps per week.

    Returns:
        The factor, 1/10 to 10; 1 where the level has not changed, or one of the three days is not known or idle in a
        part.
    """
    if at < week + day:
        return 1.0
    parts = np.arange(min(PARTS, day)) * day // min(PARTS, day)
    starts = (at - day, at - week, at - week - day)
    now, then, before = (np.add.reduceat(values[start : start + day], parts) for start in starts)
    # beside the parts the value itself: it may be the last one before the change
    then, earlier = np.append(then, values[at - week]), np.append(before, values[at - week - day])
    if not np.concatenate([now, then, earlier]).min() > 0:
        return 1.0
    return _rise(now / before, then / earlier) / _rise(before / now, earlier / then)


def _rise(changes: Floats, had: Floats) -> float:
    """Return by what factor all parts of a day have risen, ÷ what they had risen by already; 1 for other changes."""
    least = float(changes.min())
    return min(max(least / max(float(had.min()), 1.0), 1.0), MOST_CHANGE) if least > CHANGED else 1.0
