"""The forecasts that are blended: naive repetitions, running means, and ridge regressions that learn as they go."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from models.forecast.blend.jump_filter import echoes
from models.forecast.blend.lags import Lags
from models.forecast.blend.ridge import Ridge
from models.forecast.blend.staggered import BATCH, Flags, Taught, Trail, follow, turns, unseen, untaught
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
_SHARES = (0.05, 0.2)  # of the newest step in the running means
YESTERDAY = 1 + len(_SHARES)
"""Which of the experts repeats the same time yesterday."""
_LONG_DAYS = 7.0  # half-life of the long-run mean
_LEAST = 0.01  # of the long-run mean: loads are never measured in less
_TINY = 1e-9


@dataclass(frozen=True, eq=False)
class Learnt:
    """What the experts carry from step to step.

    Attributes:
        seen: steps so far.
        regressions: each of them.
        sums, weights: (means,) of the long-run mean and the running means; sum ÷ weight is the mean.
        trail: the newest moments.
    """

    seen: int
    regressions: tuple[Taught, ...]
    sums: Floats
    weights: Floats
    trail: Trail

    @property
    def taught(self) -> bool:
        """Whether any regression has learnt from anything."""
        return any(part.rows for each in self.regressions for part in each.parts)


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
        return 4 + len(_SHARES) + len(_SPECS)

    @property
    def reach(self) -> int:
        """Newest values that must be kept."""
        return self.lags.context

    def start(self) -> Learnt:
        """Before the first step."""
        means = 1 + len(_SHARES)
        regressions = tuple(untaught(ridge) for ridge in self.ridges)
        return Learnt(0, regressions, np.zeros(means), np.zeros(means), unseen(self.task.horizon, self.lags.count))

    def follow(self, learnt: Learnt, values: Floats, known: Flags) -> tuple[Learnt, Floats, Floats]:
        """Take in the newest steps.

        Args:
            learnt: before them.
            values: (≥ reach or all, ) records/s up to the newest step, gaps filled.
            known: (N,) whether each of the N newest steps was measured.

        Returns:
            What was learnt, (N, E, H) what the experts said after each of these steps, and (N,) the level there: the
            mean load of the last day, so that a day after a lasting shift it knows nothing of the time before.
        """
        count = len(known)
        at = np.arange(len(values) - count, len(values))
        sums, weights, means = self._means(learnt, values[at[0] :])
        levels = np.maximum(self.lags.mean(values, at, self.task.day), _LEAST * means[:, 0] + _TINY)
        gathered = np.concatenate([self.lags.gather(values, at[i : i + BATCH]) for i in range(0, count, BATCH)])
        trail = learnt.trail.extended(gathered, levels, np.where(known, values[at], np.nan))
        due = turns(learnt.seen, count, [len(each.parts) for each in learnt.regressions])
        regressions, said = [], self._repeated(gathered, means)
        for ridge, before, when in zip(self.ridges, learnt.regressions, due, strict=True):
            after, spoken = follow(ridge, before, trail, learnt.seen, count, when)
            regressions.append(after)
            said.append(spoken)
        kept = trail.newest(len(learnt.trail.levels))
        told = np.stack(said, axis=1)
        silent = echoes(values, at, self.task.day, self.task.horizon)[:, None, :] & self._daily[None, :, None]
        told[silent] = np.nan
        return Learnt(learnt.seen + count, tuple(regressions), sums, weights, kept), told, levels

    @cached_property
    def _daily(self) -> Flags:
        """(E,) which of them read the same time yesterday."""
        naive = np.arange(self.count - len(_SPECS)) == YESTERDAY
        return np.concatenate([naive, [season != "none" for season, *_ in _SPECS]])

    def _means(self, learnt: Learnt, newest: Floats) -> tuple[Floats, Floats, Floats]:
        """Sums and weights after the newest steps, and (N, means) the means after each."""
        keep = np.array([0.5 ** (1 / (_LONG_DAYS * self.task.day)), *(1 - share for share in _SHARES)])
        sums, weights, means = learnt.sums, learnt.weights, np.empty((len(newest), len(keep)))
        for i, value in enumerate(newest):
            sums, weights = keep * sums + value, keep * weights + 1
            means[i] = sums / weights
        return sums, weights, means

    def _repeated(self, gathered: Floats, means: Floats) -> list[Floats]:
        """What each expert before the regressions says, (N, H) each."""
        horizon, (day, week) = self.task.horizon, self.lags.seasons
        still = [gathered[:, :1], *(means[:, i : i + 1] for i in range(1, means.shape[1]))]
        ahead = np.arange(1, horizon + 1)
        columns = day.lag(0) + ahead, week.lag(0) + ahead, week.profile(0) + ahead
        return [*(np.repeat(said, horizon, axis=1) for said in still), *(gathered[:, each] for each in columns)]
