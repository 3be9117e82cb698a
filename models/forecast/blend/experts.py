"""The forecasts that are blended: naive repetitions, running means, and ridge regressions that learn online."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.forecast.blend.lags import Indices, Lags
from models.forecast.blend.ridge import SCALES, Ridge
from models.forecast.core.forecaster import Task
from models.forecast.core.series import Floats

_SPECS = (
    ("none", "level", "root", 0.0),
    ("day", "own level", "root", 0.0),
    ("day", "own level", "log", 5.0),
    ("day", "season", "identity", 0.0),
    ("week", "level", "identity", 0.0),
    ("week", "level", "log", 0.0),
    ("week", "own level", "identity", 5.0),
    ("week", "season", "root", 0.0),
    ("week", "season", "log", 14.0),
)
SHARES = (0.05, 0.2)  # weight of the newest step in each running mean
YESTERDAY = 1 + len(SHARES)
"""Which of the experts repeats the same time yesterday."""
LONG_DAYS = 7.0  # half-life of the long-run mean, days
LEAST = 0.01  # share of the long-run mean: the level is never lower


class IndexTables(NamedTuple):
    """Index tables that the compiled step reads, the same for every series of a task.

    Attributes:
        day, near: steps of a day; column of the mean over the newest three steps.
        windows: steps of the longer means, of which the first is a day.
        points: steps around each lag whose mean it is.
        lags: (2, repeats, lags) steps from the newest one, of the day and the week.
        repeats: (2,) how many of these repeats a profile is the mean of.
        keep: (means,) factor of the sums of the long-run mean and the running means per step.
        naive: (3, horizon) columns that the seasonal experts repeat.
        base, plus, minus: (R, horizon), (R, horizon, p) twice: columns of the regressions, padded.
        widths, scales: (R,) how many of these p a regression has; which of `SCALES` it reads loads by.
        daily: (E,) whether an expert reads the same time yesterday.
    """

    day: int
    near: int
    windows: Indices
    points: Indices
    lags: Indices
    repeats: Indices
    keep: Floats
    naive: Indices
    base: Indices
    plus: Indices
    minus: Indices
    widths: Indices
    scales: Indices
    daily: NDArray[np.uint8]


@dataclass(frozen=True)
class Experts:
    """The experts of a task.

    In order: last value, two running means, same time yesterday, same time last week, the weekly profile (mean of
    several weeks), and the ridge regressions. An expert that has too little history, or has learnt nothing yet,
    forecasts NaN.
    """

    task: Task

    @cached_property
    def lags(self) -> Lags:
        """The columns of regressors that the experts read."""
        return Lags(self.task)

    @cached_property
    def ridges(self) -> tuple[Ridge, ...]:
        """The ridge-regression experts, one per specification."""
        return tuple(Ridge(self.lags, *spec) for spec in _SPECS)

    @property
    def count(self) -> int:
        """How many experts there are."""
        return 4 + len(SHARES) + len(_SPECS)

    @property
    def reach(self) -> int:
        """How many of the newest values must be kept."""
        return self.lags.context

    @cached_property
    def daily(self) -> NDArray[np.bool_]:
        """(E,) whether each expert reads the same time yesterday."""
        naive = np.arange(self.count - len(_SPECS)) == YESTERDAY
        return np.concatenate([naive, [season != "none" for season, *_ in _SPECS]])

    def index_tables(self) -> IndexTables:
        """Build the arrays by which the compiled step finds each expert's columns in a row of lagged loads."""
        lags, ridges, horizon = self.lags, self.ridges, self.task.horizon
        day, week = lags.seasons
        most_repeats, widths = max(day.repeats, week.repeats), np.array([len(ridge.columns[3]) for ridge in ridges])
        lag_steps = np.stack([each.offsets - each.steps * np.arange(most_repeats)[:, None] for each in lags.seasons])
        plus, minus = np.zeros((2, len(ridges), horizon, widths.max()), np.int64)
        for r, ridge in enumerate(ridges):
            plus[r, :, : widths[r]], minus[r, :, : widths[r]] = ridge.columns[1:3]
        ahead = np.arange(1, horizon + 1)
        return IndexTables(
            self.task.day, lags.near, np.array(lags.windows), lags.points, lag_steps,
            np.array([day.repeats, week.repeats]),
            np.array([0.5 ** (1 / (LONG_DAYS * self.task.day)), *(1 - share for share in SHARES)]),
            np.stack([day.lag(0) + ahead, week.lag(0) + ahead, week.profile(0) + ahead]),
            np.stack([ridge.columns[0] for ridge in ridges]), plus, minus, widths,
            np.array([SCALES.index(ridge.scale) for ridge in ridges]), self.daily.astype(np.uint8),
        )  # fmt: skip
