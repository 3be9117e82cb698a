"""The experts over many steps at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.forecast.blend import experts as made
from models.forecast.blend.experts import LEAST, LONG_DAYS, SHARES
from models.forecast.blend.ridge import BATCH
from models.forecast.blend.scoring import RESTS
from models.forecast.core.series import Floats
from tests.fakes.plain_blend.jump_filter import one_off
from tests.fakes.plain_blend.learning import Taught, Trail, follow, turns, unseen, untaught
from tests.fakes.plain_blend.reading import gather, mean

Flags = NDArray[np.bool_]


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


class Experts(made.Experts):
    """With what they learn and say."""

    def start(self) -> Learnt:
        """Before the first step."""
        means = 1 + len(SHARES)
        regressions = tuple(untaught(ridge) for ridge in self.ridges)
        return Learnt(0, regressions, np.zeros(means), np.zeros(means), unseen(self.task.horizon, self.lags.count))

    def follow(self, learnt: Learnt, values: Floats, known: Flags) -> tuple[Learnt, Floats, Floats, Flags]:
        """Take in the newest steps.

        Args:
            learnt: before them.
            values: (≥ reach or all, ) records/s up to the newest step, gaps filled.
            known: (N,) whether each of the N newest steps was measured.

        Returns:
            What was learnt, (N, E, H) what the experts said after each of these steps, (N,) the level there: the mean
            load of the last day, so that a day after a lasting shift it knows nothing of the time before; and (N,)
            whether the load rests.
        """
        count = len(known)
        at = np.arange(len(values) - count, len(values))
        sums, weights, means = self._means(learnt, values[at[0] :])
        levels = np.maximum(mean(values, at, self.task.day), LEAST * means[:, 0])
        gathered = np.concatenate([gather(self.lags, values, at[i : i + BATCH]) for i in range(0, count, BATCH)])
        trail = learnt.trail.extended(
            gathered, np.where(levels > 0, levels, np.nan), np.where(known, values[at], np.nan)
        )
        due = turns(learnt.seen, count, [len(each.parts) for each in learnt.regressions])
        regressions, said = [], self._repeated(gathered, means)
        for ridge, before, when in zip(self.ridges, learnt.regressions, due, strict=True):
            after, spoken = follow(ridge, before, trail, learnt.seen, count, when)
            regressions.append(after)
            said.append(spoken)
        kept = trail.newest(len(learnt.trail.levels))
        told = np.stack(said, axis=1)
        silent = one_off(values, at, self.task.day, self.task.horizon)[:, None, :] & self.daily[None, :, None]
        told[silent] = np.nan
        rests = levels < RESTS * means[:, 0]
        return Learnt(learnt.seen + count, tuple(regressions), sums, weights, kept), told, levels, rests

    def _means(self, learnt: Learnt, newest: Floats) -> tuple[Floats, Floats, Floats]:
        """Sums and weights after the newest steps, and (N, means) the means after each."""
        keep = np.array([0.5 ** (1 / (LONG_DAYS * self.task.day)), *(1 - share for share in SHARES)])
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
