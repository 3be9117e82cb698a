"""The forecasts that are blended: naive repetitions, running means, and ridge regressions that learn as they go."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from models.forecast.forecaster import Task
from models.forecast.lags import Indices, Lags
from models.forecast.ridge import Moments, Ridge, learn, nothing
from models.forecast.series import Floats

Flags = NDArray[np.bool_]
BATCH = 64
"""At most so many rows are learnt at once; with few rows seen, fewer."""
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
_LONG_DAYS = 7.0  # half-life of the long-run mean
_LEAST = 0.01  # of the long-run mean: loads are never measured in less
_TINY = 1e-9


@dataclass(frozen=True, eq=False)
class Learnt:
    """What the experts carry from step to step.

    Attributes:
        seen: steps so far.
        rows: moments that the regressions have learnt from.
        moments: of each regression.
        sums, weights: (means,) of the long-run mean and the running means; sum ÷ weight is the mean.
        levels, known: (trail,) of the newest steps: the level there, and whether the step was measured.
    """

    seen: int
    rows: int
    moments: tuple[Moments, ...]
    sums: Floats
    weights: Floats
    levels: Floats
    known: Flags


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
    def trail(self) -> int:
        """Newest steps whose level must be known."""
        return BATCH + self.task.horizon

    @property
    def reach(self) -> int:
        """Newest values that must be kept."""
        return self.lags.context + self.trail

    def start(self) -> Learnt:
        """Before the first step."""
        means = 1 + len(_SHARES)
        return Learnt(
            0, 0, tuple(nothing(ridge) for ridge in self.ridges), np.zeros(means), np.zeros(means),
            np.full(self.trail, np.nan), np.zeros(self.trail, dtype=np.bool_),
        )  # fmt: skip

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
        sums, weights, means = self._means(learnt, values[len(values) - count :])
        newest = self.lags.mean(values, np.arange(len(values) - count, len(values)), self.task.day)
        newest = np.maximum(newest, _LEAST * means[:, 0] + _TINY)
        levels = np.concatenate([learnt.levels, newest])
        flags = np.concatenate([learnt.known, known])
        said = np.empty((count, self.count, self.task.horizon))
        rows, moments, done = learnt.rows, learnt.moments, 0
        while done < count:
            if _due(learnt.seen + done + 1):
                fresh = learnt.seen + done + 1 - self.task.horizon - rows
                if fresh > 0:
                    after = count - done - 1  # steps after this one
                    at = np.arange(-fresh, 0) - self.task.horizon - after
                    moments = self._learn(moments, values, levels, flags, at)
                    rows += fresh
            until = done + 1
            while until < count and not _due(learnt.seen + until + 1):
                until += 1
            at = np.arange(len(values) - count + done, len(values) - count + until)
            said[done:until] = self._say(moments, values, newest[done:until], means[done:until], at)
            done = until
        kept = slice(len(levels) - self.trail, None)
        return Learnt(learnt.seen + count, rows, moments, sums, weights, levels[kept], flags[kept]), said, newest

    def _means(self, learnt: Learnt, newest: Floats) -> tuple[Floats, Floats, Floats]:
        """Sums and weights after the newest steps, and (N, means) the means after each."""
        keep = np.array([0.5 ** (1 / (_LONG_DAYS * self.task.day)), *(1 - share for share in _SHARES)])
        sums, weights, means = learnt.sums, learnt.weights, np.empty((len(newest), len(keep)))
        for i, value in enumerate(newest):
            sums, weights = keep * sums + value, keep * weights + 1
            means[i] = sums / weights
        return sums, weights, means

    def _learn(
        self, moments: tuple[Moments, ...], values: Floats, levels: Floats, known: Flags, at: Indices
    ) -> tuple[Moments, ...]:
        """Learn from moments, counted back from the newest step (−1)."""
        ahead = at[:, None] + np.arange(1, self.task.horizon + 1)
        outcomes = np.where(known[ahead], values[ahead], np.nan)
        gathered = self.lags.gather(values, at + len(values))
        pairs = zip(self.ridges, moments, strict=True)
        return tuple(learn(ridge, before, gathered, levels[at], outcomes) for ridge, before in pairs)

    def _say(self, moments: tuple[Moments, ...], values: Floats, levels: Floats, means: Floats, at: Indices) -> Floats:
        """(N, E, H) what each expert says at moments."""
        horizon, (day, week) = self.task.horizon, self.lags.seasons
        gathered = self.lags.gather(values, at)
        still = [gathered[:, :1], *(means[:, i : i + 1] for i in range(1, means.shape[1]))]
        ahead = np.arange(1, horizon + 1)
        seasonal = [
            gathered[:, column] for column in (day.lag(0) + ahead, week.lag(0) + ahead, week.profile(0) + ahead)
        ]
        pairs = zip(self.ridges, moments, strict=True)
        linear = [ridge.predict(m.coefficients, gathered, levels) for ridge, m in pairs]
        return np.stack([*(np.repeat(said, horizon, axis=1) for said in still), *seasonal, *linear], axis=1)


def _due(seen: int) -> bool:
    """Whether the regressions are solved again after so many steps: every 2nd at first, every 64th from 2048 on."""
    every = min(max((1 << seen.bit_length() - 1) // 32, 2), BATCH)
    return seen % every == 0
