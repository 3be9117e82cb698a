"""Plans that know the load: tried side by side in the twin, and kept with what they cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from models.policy.core.capacity import Floats, Integers
from models.twin.oracle.polish import followed, polished
from models.twin.sim.job import TwinJobs
from models.twin.sim.run import Load


class Pool(NamedTuple):
    """(D, n) plans, what they cost, their violation and the price of a late second that each was made for."""

    plans: Floats
    cost: Floats
    violation: Floats
    prices: Floats

    def plus(self, other: Pool) -> Pool:
        """Both."""
        return Pool(*(np.concatenate(both, axis=-1) for both in zip(self, other, strict=True)))

    def meets(self, budget: float) -> bool:
        """Whether a plan is within the budget."""
        return bool((self.violation <= budget).any())

    def best(self, budget: float) -> int:
        """The cheapest within the budget; where there is none the one with the fewest late seconds."""
        if self.meets(budget):
            return int(np.argmin(np.where(self.violation <= budget, self.cost, np.inf)))
        return int(np.lexsort((self.cost, self.violation))[0])

    def rival(self, budget: float) -> int:
        """The plan beyond the budget that saves most per late second against the best; the best where none does."""
        best = self.best(budget)
        saved, late = self.cost[best] - self.cost, self.violation - self.violation[best]
        worth = np.where((saved > 0) & (late > 0), saved / np.maximum(late, 1e-12), -1.0)
        return int(np.argmax(worth)) if worth.max() > 0 else best

    def near(self, budgets: Floats | list[float]) -> list[int]:
        """The best plans and their rivals."""
        return sorted({at for budget in budgets for at in (self.best(budget), self.rival(budget))})


@dataclass(frozen=True, eq=False)
class Trials:
    """One run, of which plans are tried side by side.

    Attributes:
        job, load: of one row.
        every_s: seconds between two looks.
        seed: of its chance.
        executors: at the beginning.
    """

    job: TwinJobs
    load: Load
    every_s: int
    seed: int
    executors: float

    def _many(self, count: int) -> tuple[TwinJobs, Load, int, Integers, Floats]:
        rows = np.zeros(count, np.int64)
        load = Load(self.load.arrived, rows, counts=self.load.counts)
        return self.job.of(rows), load, self.every_s, np.full(count, self.seed), np.full(count, self.executors)

    def pool(self, plans: Floats, prices: Floats) -> Pool:
        """(D, n) plans with what they cost."""
        return Pool(plans, *followed(plans, *self._many(plans.shape[1])), prices)

    def better(self, pool: Pool, near: list[int], factors: tuple[float, ...]) -> Pool:
        """The pool and what edits make of some of its plans, at multiples of the price that each was made for."""
        at = np.repeat(near, len(factors))
        prices = pool.prices[at] * np.tile(factors, len(near))
        return pool.plus(self.pool(polished(pool.plans[:, at], prices, *self._many(len(at))), prices))
