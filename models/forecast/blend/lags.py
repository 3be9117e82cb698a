"""Regressors of the blend's experts: loads at fixed distances from a moment, and means over windows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from models.forecast.core.forecaster import Task

Indices = NDArray[np.int64]
RECENT = 24
"""Newest steps that are read one by one."""
NEAR = 3
"""Newest steps whose mean is the anchor that shifts of the level move along with."""
AROUND = 3
"""Steps before and after the same time in an earlier season that are read."""
_SMOOTH_S = 300.0  # same times are means over so many seconds: one second a day ago is mostly noise
_POINTS = 9  # of which at most so many steps are read
_DAYS, _WEEKS = 7, 3  # seasons that a profile is the mean of
_LONG = 20_160  # steps: weeks longer than this (steps under 30 s) have no profile of several


@dataclass(frozen=True)
class Season:
    """Columns of one season, a day or a week.

    Attributes:
        steps: its length.
        repeats: how many of the newest seasons a profile is the mean of.
        first: its first column, `lag(1 - NEAR - AROUND)`.
        offsets: (lags,) steps from the moment to the middle of what each lag column reads.
    """

    steps: int
    repeats: int
    first: int
    offsets: Indices

    @property
    def size(self) -> int:
        """Number of columns: each lag, each profile entry, and the level of both."""
        return 2 * len(self.offsets) + 2

    def lag(self, ahead: int) -> int:
        """Return the column of the load whole seasons before a step, one season where that is known.

        Args:
            ahead: steps from the newest one to it; 0 is the newest, 1 the first forecast. From −5 to horizon + 3.
        """
        return self.first + ahead + NEAR + AROUND - 1

    def profile(self, ahead: int) -> int:
        """Return the column of the mean over the newest seasons at that time; `ahead` as in `lag`."""
        return self.lag(ahead) + len(self.offsets)

    @property
    def lag_anchor(self) -> int:
        """Column of the level one season ago, a mean over `NEAR` lags."""
        return self.first + 2 * len(self.offsets)

    @property
    def profile_anchor(self) -> int:
        """Column of the level of the profile now, a mean over `NEAR` entries."""
        return self.lag_anchor + 1


@dataclass(frozen=True)
class Lags:
    """The columns for a task: recent steps, their mean, means of longer windows, then per season lags and profiles."""

    task: Task

    @property
    def near(self) -> int:
        """Column of the mean over the newest `NEAR` steps."""
        return RECENT

    @cached_property
    def windows(self) -> tuple[int, ...]:
        """Lengths in steps of the windows that are averaged: a day, its quarter, and so on while above 24 steps."""
        lengths, length = [self.task.day], self.task.day // 4
        while length > RECENT:
            lengths.append(length)
            length //= 4
        return tuple(lengths)

    @cached_property
    def seasons(self) -> tuple[Season, Season]:
        """Columns of the day and the week for −5 to horizon + 3 steps ahead, in the newest season known by then."""
        first, seasons = RECENT + 1 + len(self.windows), []
        for steps, repeats in ((self.task.day, _DAYS), (self.task.week, _WEEKS if self.task.week <= _LONG else 1)):
            ahead = np.arange(1 - NEAR - AROUND, self.task.horizon + AROUND + 1)
            reach = ahead + self.points.max(initial=0)
            whole = steps * np.maximum(1, -(-reach // steps))  # never a step still to come
            seasons.append(Season(steps, repeats, first, ahead - whole))
            first += seasons[-1].size
        return seasons[0], seasons[1]

    @property
    def count(self) -> int:
        """Number of columns."""
        return self.seasons[1].first + self.seasons[1].size

    @cached_property
    def points(self) -> Indices:
        """Offsets in steps around a lag whose loads are averaged: at most 9 within 300 s, a single 0 for long steps."""
        half = int(_SMOOTH_S / self.task.step_s) // 2
        return np.unique(np.linspace(-half, half, _POINTS).round().astype(np.int64))

    @property
    def context(self) -> int:
        """Steps that are read at most, from the oldest to the newest one inclusive."""
        reach = max(s.repeats * s.steps - int((s.offsets + s.steps).min()) for s in self.seasons)
        return reach + int(self.points.max(initial=0)) + 1
