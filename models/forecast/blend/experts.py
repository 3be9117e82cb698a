"""The forecasts that are blended: naive repetitions, running means, and ridge regressions that learn as they go."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from models.forecast.blend.lags import Lags
from models.forecast.blend.ridge import Ridge
from models.forecast.core.forecaster import Task

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
SHARES = (0.05, 0.2)  # of the newest step in the running means
YESTERDAY = 1 + len(SHARES)
"""Which of the experts repeats the same time yesterday."""
LONG_DAYS = 7.0  # half-life of the long-run mean
LEAST = 0.01  # of the long-run mean: loads are never measured in less
TINY = 1e-9


@dataclass(frozen=True)
class Experts:
    """The experts for a task.

    In order: last value, two running means, same time yesterday, same time last week, the weekly profile, and the
    regressions. One that cannot speak yet (no week of history, nothing learnt) says NaN.
    """

    task: Task

    @cached_property
    def lags(self) -> Lags:
        """What they read."""
        return Lags(self.task)

    @cached_property
    def ridges(self) -> tuple[Ridge, ...]:
        """The regressions; none of them was best everywhere, and none could be left out without loss somewhere."""
        return tuple(Ridge(self.lags, *spec) for spec in _SPECS)

    @property
    def count(self) -> int:
        """How many experts there are."""
        return 4 + len(SHARES) + len(_SPECS)

    @property
    def reach(self) -> int:
        """Newest values that must be kept."""
        return self.lags.context

    @cached_property
    def daily(self) -> NDArray[np.bool_]:
        """(E,) which of them read the same time yesterday."""
        naive = np.arange(self.count - len(_SPECS)) == YESTERDAY
        return np.concatenate([naive, [season != "none" for season, *_ in _SPECS]])
