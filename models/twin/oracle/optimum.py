"""The clairvoyant optimum: what somebody who knows the future load pays at a given share of late seconds.

It is a plan that can be carried out: its cost and its violation are the twin's, with the start-up delays, cold batches
and restarts that every policy meets. So the least possible cost is not above it; `bound` says what it is not below.
Made by dynamic programming (`fluid`) for a range of prices of a late second, made better in the twin (`polish`), and
put together from a plan just within the budget and one just beyond it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from models.policy.core.capacity import Floats, Integers
from models.policy.core.view import Choice, Memory, View, chosen
from models.twin.oracle.fluid import PRICES, Fluid
from models.twin.oracle.plans import Pool, Trials
from models.twin.sim.job import BATCH_ROWS, COLD_S, LEAST, MOST, OVERHEAD_S, PER_RECORD_S, TARGET_S, TRIGGER_S, TwinJobs
from models.twin.sim.run import Load, Looks, first_executors

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


@dataclass(frozen=True, eq=False)
class Optimum:
    """Follows a plan.

    Attributes:
        targets: (D, runs) executors at the looks.
        every_s: seconds between two looks.
        name: optimum.
    """

    targets: Floats
    every_s: int
    name: str = "optimum"
    knob: ClassVar[str] = "targets"

    def fresh(self, runs: int) -> Memory:
        """Nothing to carry."""
        return {}

    def decide(self, memory: Memory, view: View) -> tuple[Memory, Choice]:
        """What the plan says, whatever is seen."""
        return memory, chosen(self.targets[min(round(view.now_s / self.every_s), len(self.targets) - 1)])


def clairvoyant(jobs: TwinJobs, load: Load, looks: Looks, seeds: Integers, budgets: Floats) -> Optimum:
    """For each run the cheapest plan found whose share of late seconds, of those that count, is within its budget.

    Runs that differ in nothing but their budget share the work. Where no plan meets the budget, as under a load above
    what all executors can do, the plan with the fewest late seconds is given.

    Args:
        jobs: of the runs.
        load: of the runs.
        looks: when the plan may change.
        seeds: (runs,) of their chance, which the plan knows too.
        budgets: (runs,) shares of the seconds that may be over the target.
    """
    executors = first_executors(jobs, load, looks)
    targets = np.zeros((looks.count(load.seconds), len(budgets)))
    for group in _groups(jobs, load, seeds):
        one = group[:1]
        arrived = load.arrived[load.row[one], : load.ends[group[0]] + 1]
        run = Trials(
            jobs.of(one), arrived, looks.every_s, int(seeds[group[0]]), executors[group[0]], int(load.begins[group[0]])
        )
        targets[: looks.count(load.ends[group[0]]), group] = _planned(run, budgets[group])
    return Optimum(targets, looks.every_s)


def _groups(jobs: TwinJobs, load: Load, seeds: Integers) -> Iterator[Integers]:
    """The runs that are alike but for their budget."""
    what = [jobs.facts, jobs.speeds, jobs.startup_s, jobs.restart_s, load.row[:, None], seeds[:, None]]
    alike = np.unique(np.nan_to_num(np.hstack(what), nan=-1.0), axis=0, return_inverse=True)[1].ravel()
    return (np.flatnonzero(alike == group) for group in range(alike.max() + 1))


def _planned(run: Trials, budgets: Floats) -> Floats:
    """(D, n) a plan per budget."""
    prices = np.geomspace(CHEAPEST, DEAREST, PRICES)
    pool = _made(run, _fluid(run), prices)
    near = {at for budget in budgets for at in (pool.best(budget), pool.rival(budget))}
    pool = _better(run, pool, sorted(near), FACTORS)
    if missed := [budget for budget in budgets if not pool.meets(budget)]:
        pool = _better(run, pool, sorted({pool.best(budget) for budget in missed}), DEARER)
    if missed := [budget for budget in missed if not pool.meets(budget)]:
        pool = _roomy(run, pool, prices, missed)
    found = np.zeros((len(pool.plans), len(budgets)))
    for k, budget in enumerate(budgets):
        mixed = _mixed(run, pool, budget)
        found[:, k] = mixed.plans[:, mixed.best(budget)]
    return found


def _roomy(run: Trials, pool: Pool, prices: Floats, budgets: list[float]) -> Pool:
    """The pool and plans with room to spare, the last of which never change, for budgets that none is within."""
    for room in ROOM:
        if all(pool.meets(budget) for budget in budgets):
            break
        pool = pool.plus(_made(run, _fluid(run, room), prices))
    least, most = (int(run.job.facts[0, column]) for column in (LEAST, MOST))
    still = np.tile(np.arange(least, most + 1, dtype=float), (len(pool.plans), 1))
    pool = pool.plus(run.pool(still, np.full(still.shape[1], DEAREST)))
    near = {at for budget in budgets for at in (pool.best(budget), pool.rival(budget))}
    return _better(run, pool, sorted(near), FACTORS)


def _better(run: Trials, pool: Pool, near: list[int], factors: tuple[float, ...]) -> Pool:
    """The pool and what edits make of some of its plans, at multiples of the price that each was made for."""
    at = np.repeat(near, len(factors))
    prices = pool.prices[at] * np.tile(factors, len(near))
    return pool.plus(run.pool(run.polished(pool.plans[:, at], prices), prices))


def _made(run: Trials, fluid: Fluid, prices: Floats) -> Pool:
    """The plans for prices, tried; executors are asked for so early that they run when the plan wants them."""
    running = fluid.plans(prices, run.executors)
    targets = running.copy()
    for ahead in range(1, fluid.startup + 1):
        np.maximum(targets[:, :-ahead], running[:, ahead:], out=targets[:, :-ahead])
    return run.pool(np.ascontiguousarray(targets.T, float), prices)


def _mixed(run: Trials, pool: Pool, budget: float) -> Pool:
    """The pool and plans that go from its best to its rival at one moment, which fills the budget."""
    best, rival = pool.best(budget), pool.rival(budget)
    if best == rival or pool.violation[best] > budget:
        return pool
    early, late = 0, len(pool.plans)
    for _ in range(2):
        moments = np.unique(np.linspace(early, late, SWITCHES + 2).astype(int)[1:-1])
        plans = np.stack([np.append(pool.plans[:m, best], pool.plans[m:, rival]) for m in moments], axis=1)
        tried = run.pool(plans, np.full(len(moments), pool.prices[best]))
        pool = pool.plus(tried)
        # The later the switch, the more of the plan within the budget: take the first moment that is.
        within = np.flatnonzero(tried.violation <= budget)
        at = int(within[0]) if len(within) else len(moments)
        early, late = (moments[at - 1] if at > 0 else early), (moments[at] if at < len(moments) else late)
    return pool


def _fluid(run: Trials, room: float = 1.0) -> Fluid:
    job, every = run.job.facts[0], run.every_s
    ends = np.minimum(np.arange(0, run.arrived.shape[1] - 1 + every, every), run.arrived.shape[1] - 1)
    rates = room * np.diff(run.arrived[0, ends]) * job[PER_RECORD_S] / np.diff(ends)
    least, speeds = int(job[LEAST]), run.job.speeds[0]
    useful = int((speeds < min(rates.max() * HEADROOM + 1e-9, speeds[int(job[MOST])])).sum())
    startup = run.job.startup_s[0]
    top = max(useful, least, int(run.executors))
    return Fluid(
        speeds=speeds[least : top + 1], rates=rates, least=least, span_s=float(every),
        overhead_s=job[OVERHEAD_S], trigger_s=job[TRIGGER_S], target_s=job[TARGET_S], cold_s=job[COLD_S],
        batch_work=job[BATCH_ROWS] * job[PER_RECORD_S],
        startup=0 if run.job.restart_s[0, 0] >= 0 else math.ceil(np.quantile(startup, 0.9) / every),
        restart_s=float(run.job.restart_s[0].mean()),
    )  # fmt: skip
