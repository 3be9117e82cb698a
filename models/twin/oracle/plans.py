"""Plans that know the load: tried side by side in the twin, and kept with what they cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.policy.core.capacity import Floats, Integers
from models.twin.oracle.polish import followed, polished
from models.twin.sim.job import TwinJobs
from models.twin.sim.run import Load


@dataclass(frozen=True, eq=False)
class Trials:
    """One run (jobs and load of one row), of which plans are tried side by side."""

    job: TwinJobs
    arrived: Floats
    every_s: int
    seed: int
    executors: float
    begins: int

    def many(self, count: int) -> tuple[TwinJobs, Load, Integers, Floats]:
        """So many copies of it: jobs, load, seeds, executors at the beginning."""
        rows = np.zeros(count, np.int64)
        load = Load(self.arrived, rows, counts=np.array([self.begins]))
        return self.job.of(rows), load, np.full(count, self.seed), np.full(count, self.executors)

    def pool(self, plans: Floats, prices: Floats) -> Pool:
        """(D, n) plans with what they cost."""
        jobs, load, seeds, executors = self.many(plans.shape[1])
        return Pool(plans, *followed(jobs, load, plans, self.every_s, seeds, executors), prices)

    def polished(self, plans: Floats, prices: Floats) -> Floats:
        """(D, n) plans after edits that pay."""
        jobs, load, seeds, executors = self.many(plans.shape[1])
        return polished(jobs, load, plans, prices, self.every_s, seeds, executors)


@dataclass(frozen=True, eq=False)
class Pool:
    """(D, n) plans, what they cost, their violation and the price of a late second that each was made for."""

    plans: Floats
    cost: Floats
    violation: Floats
    prices: Floats

    def plus(self, other: Pool) -> Pool:
        """Both."""
        return Pool(
            np.hstack([self.plans, other.plans]), np.append(self.cost, other.cost),
            np.append(self.violation, other.violation), np.append(self.prices, other.prices),
        )  # fmt: skip

    def meets(self, budget: float) -> bool:
        """Whether a plan is within the budget."""
        return bool((self.violation <= budget).any())

    def best(self, budget: float) -> int:
        """The cheapest within the budget; where there is none the one with the fewest late seconds."""
        within = self.violation <= budget
        if within.any():
            return int(np.argmin(np.where(within, self.cost, np.inf)))
        return int(np.lexsort((self.cost, self.violation))[0])

    def rival(self, budget: float) -> int:
        """The plan beyond the budget that saves most per late second against the best; the best where none does."""
        best = self.best(budget)
        saved, late = self.cost[best] - self.cost, self.violation - self.violation[best]
        worth = np.where((saved > 0) & (late > 0), saved / np.maximum(late, 1e-12), -1.0)
        return int(np.argmax(worth)) if worth.max() > 0 else best
