"""The clairvoyant optimum: what somebody who knows the future load pays at a given share of late seconds.

It is a plan that can be carried out: its cost and its violation are the twin's, with the start-up delays, cold batches
and restarts that every policy meets. So the least possible cost is not above it; `bound` says what it is not below.
Made by dynamic programming (`fluid`) for a range of prices of a late second, made better in the twin (`polish`), and
put together from a plan just within the budget and one just beyond it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from models.policy.core.capacity import Floats, Integers
from models.policy.core.choice import Choice, make_choice
from models.policy.core.policy import Rule
from models.policy.core.view import Memory, View
from models.twin.oracle.fluid import PRICES, Fluid, plan_executors
from models.twin.oracle.polish import edit_plans, simulate_plans
from models.twin.sim.given import Load, Looks
from models.twin.sim.job import TwinJobs
from models.twin.sim.run import first_executors

CHEAPEST, DEAREST = 4.0, 2000.0
"""Executor-seconds that a late second is worth in the first round of plans."""
HEADROOM = 1.6
"""Plans use executors for so many times the highest load."""
FACTORS, DEARER = (1.0, 0.25), (1.0, 4.0, 16.0)
"""The plans near a budget are made better for these multiples of the price that they were made for;
where none is within the budget then, for dearer ones."""
ROOM = (1.1, 1.25, 1.5)
"""Where no plan is within a budget yet, plans are made for so many times the load: noise and restarts take room."""
SWITCHES = 8
"""Moments that are tried for going from one plan to another, in one round."""


class Pool(NamedTuple):
    """Plans that were tried in the twin.

    Attributes:
        plans: (D, n) executors asked for at the looks.
        cost: (n,) executor-seconds.
        violation: (n,) share of the seconds over the target.
        prices: (n,) executor-seconds per late second that each plan was made for.
    """

    plans: Floats
    cost: Floats
    violation: Floats
    prices: Floats

    def plus(self, other: Pool) -> Pool:
        """Append the plans of another pool."""
        return Pool(*(np.concatenate(both, axis=-1) for both in zip(self, other, strict=True)))

    def meets(self, budget: float) -> bool:
        """Return whether any plan is within the budget."""
        return bool((self.violation <= budget).any())

    def best(self, budget: float) -> int:
        """Return the index of the cheapest plan within the budget; without one, of that with the fewest late seconds.

        Args:
            budget: share of the seconds that may be over the target.
        """
        if self.meets(budget):
            return int(np.argmin(np.where(self.violation <= budget, self.cost, np.inf)))
        return int(np.lexsort((self.cost, self.violation))[0])

    def cheaper_later(self, budget: float) -> int:
        """Return the index of the plan to mix with `best`: more late seconds, but cheaper, most saved per late second.

        Where no plan is cheaper than `best`, it is `best` itself.

        Args:
            budget: share of the seconds, 0 to 1, that may be over the latency target.
        """
        best = self.best(budget)
        saved, late = self.cost[best] - self.cost, self.violation - self.violation[best]
        worth = np.where((saved > 0) & (late > 0), saved / np.maximum(late, 1e-12), -1.0)
        return int(np.argmax(worth)) if worth.max() > 0 else best

    def near(self, budgets: Floats | list[float]) -> list[int]:
        """Return the rising indices of `best` and `cheaper_later` for all budgets, each once."""
        return sorted({at for budget in budgets for at in (self.best(budget), self.cheaper_later(budget))})


@dataclass(frozen=True, eq=False)
class Trials:
    """One run, on which plans are tried side by side.

    Attributes:
        job: the run's, one row.
        load: the run's, one row.
        every_s: seconds between two looks.
        seed: of its random numbers.
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
        return self.job.select(rows), load, self.every_s, np.full(count, self.seed), np.full(count, self.executors)

    def simulate(self, plans: Floats, prices: Floats) -> Pool:
        """Simulate (D, n) plans, made for (n,) prices of a late second, and return them with cost and violation."""
        return Pool(plans, *simulate_plans(plans, *self._many(plans.shape[1])), prices)

    def with_edits(self, pool: Pool, near: list[int], factors: tuple[float, ...]) -> Pool:
        """Edit plans of a pool where that pays in the twin, and return the pool with the edited plans appended.

        Args:
            pool: of this run.
            near: indices of the plans to edit.
            factors: each plan is edited once per factor, at so many times the price it was made for.
        """
        at = np.repeat(near, len(factors))
        prices = pool.prices[at] * np.tile(factors, len(near))
        return pool.plus(self.simulate(edit_plans(pool.plans[:, at], prices, *self._many(len(at))), prices))


@dataclass(frozen=True, eq=False)
class Optimum(Rule):
    """A policy that follows a plan made beforehand.

    Attributes:
        targets: (D, runs) executors at the looks.
        every_s: seconds between two looks.
    """

    targets: Floats
    every_s: int
    knob = "targets"

    def decide(self, memory: Memory, view: View) -> tuple[Memory, Choice]:
        """Return the plan's targets at this time, whatever is observed; after the end of the plan, its last ones."""
        return memory, make_choice(self.targets[min(round(view.now_s / self.every_s), len(self.targets) - 1)])


def plan_clairvoyantly(jobs: TwinJobs, load: Load, looks: Looks, seeds: Integers, budgets: Floats) -> Optimum:
    """Find for each run, with its future load known, the cheapest plan within its budget of late seconds.

    Only seconds that count (`Load.counts`) are held against the budget. Where no plan meets it, as under a load beyond
    what all executors sustain, the plan with the fewest late seconds is taken. Runs that differ only in their budget
    share the work.

    Args:
        jobs: of the runs.
        load: of the runs, (rows, T + 1) records before each second.
        looks: when the plan may change.
        seeds: (runs,) of their random numbers, which the plan knows too.
        budgets: (runs,) shares of the seconds, 0 to 1, that may be over the latency target.

    Returns:
        A policy for `simulate` with the same runs, looks and seeds; `targets` (D, runs) executors.

    Raises:
        ValueError: no runs.
    """
    executors = first_executors(jobs, load, looks)
    targets = np.zeros((looks.count(load.seconds), len(budgets)))
    for group in jobs.groups(load.row, seeds):
        one, end = group[:1], load.produced.ends[group[0]]
        alone = Load(load.arrived[load.row[one], : end + 1], np.zeros(1, np.int64), counts=load.begins[one])
        run = Trials(jobs.select(one), alone, looks.every_s, int(seeds[group[0]]), executors[group[0]])
        targets[: looks.count(end), group] = _planned(run, budgets[group])
    return Optimum("optimum", targets, looks.every_s)


def _planned(run: Trials, budgets: Floats) -> Floats:
    """(D, n) a plan per budget."""
    prices = np.geomspace(CHEAPEST, DEAREST, PRICES)
    pool = _made(run, prices)
    pool = run.with_edits(pool, pool.near(budgets), FACTORS)
    if missed := [budget for budget in budgets if not pool.meets(budget)]:
        pool = run.with_edits(pool, sorted({pool.best(budget) for budget in missed}), DEARER)
    if missed := [budget for budget in missed if not pool.meets(budget)]:
        pool = _roomy(run, pool, prices, missed)
    mixed = [(_mixed(run, pool, budget), budget) for budget in budgets]
    return np.stack([found.plans[:, found.best(budget)] for found, budget in mixed], axis=1)


def _roomy(run: Trials, pool: Pool, prices: Floats, budgets: list[float]) -> Pool:
    """The pool and plans with room to spare, the last of which never change, for budgets that none is within."""
    for room in ROOM:
        if all(pool.meets(budget) for budget in budgets):
            break
        pool = pool.plus(_made(run, prices, room))
    least, most = (int(run.job.facts[0][name]) for name in ("least", "most"))
    still = np.tile(np.arange(least, most + 1, dtype=float), (len(pool.plans), 1))
    pool = pool.plus(run.simulate(still, np.full(still.shape[1], DEAREST)))
    return run.with_edits(pool, pool.near(budgets), FACTORS)


def _made(run: Trials, prices: Floats, room: float = 1.0) -> Pool:
    """The plans for prices, tried; executors are asked for so early that they run when the plan wants them."""
    fluid = _fluid(run, room)
    running = plan_executors(fluid, prices, run.executors)
    targets = running.copy()
    for ahead in range(1, fluid.startup + 1):
        np.maximum(targets[:, :-ahead], running[:, ahead:], out=targets[:, :-ahead])
    return run.simulate(np.ascontiguousarray(targets.T, float), prices)


def _mixed(run: Trials, pool: Pool, budget: float) -> Pool:
    """The pool and plans that go from its best to its rival at one moment, which fills the budget."""
    best, rival = pool.best(budget), pool.cheaper_later(budget)
    if best == rival or pool.violation[best] > budget:
        return pool
    early, late = 0, len(pool.plans)
    for _ in range(2):
        moments = np.unique(np.linspace(early, late, SWITCHES + 2).astype(int)[1:-1])
        switched = np.stack([np.append(pool.plans[:m, best], pool.plans[m:, rival]) for m in moments], axis=1)
        tried = run.simulate(switched, np.full(len(moments), pool.prices[best]))
        pool = pool.plus(tried)
        # The later the switch, the more of the plan within the budget: take the first moment that is.
        within = np.flatnonzero(tried.violation <= budget)
        at = int(within[0]) if len(within) else len(moments)
        early, late = (moments[at - 1] if at > 0 else early), (moments[at] if at < len(moments) else late)
    return pool


def _fluid(run: Trials, room: float) -> Fluid:
    job, every, arrived = run.job.facts[0], run.every_s, run.load.arrived[0]
    ends = np.minimum(np.arange(0, run.load.seconds + every, every), run.load.seconds)
    rates = room * np.diff(arrived[ends]) * job["per_record_s"] / np.diff(ends)
    least, speeds = int(job["least"]), run.job.speeds[0]
    useful = int((speeds < min(rates.max() * HEADROOM + 1e-9, speeds[int(job["most"])])).sum())
    startup = math.ceil(np.quantile(run.job.startup_s[0], 0.9) / every)
    return Fluid(
        speeds=speeds[least : max(useful, least, int(run.executors)) + 1], rates=rates, least=least,
        span_s=float(every), batch_work=job["batch_rows"] * job["per_record_s"],
        startup=0 if run.job.restart_s[0, 0] >= 0 else startup, restart_s=float(run.job.restart_s[0].mean()),
        **{name: job[name] for name in ("overhead_s", "trigger_s", "latency_target_s", "cold_s")},
    )  # fmt: skip
