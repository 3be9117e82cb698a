"""A plan as time goes on: kept while it is about as sure as was asked for, else made anew from where things stand."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from models.backfill.finish import HOUR_S, weigh
from models.backfill.futures import Futures
from models.backfill.given import ReplayWork
from models.backfill.plan import BackfillPlan, Surroundings, at_once_schedule, describe_schedule
from models.backfill.search import WeighedSchedule, cheapest_schedule, with_tail
from models.policy.core.capacity import Integers
from models.policy.planners.turns import one_by_one

LITTLE, STARTS = 0.05, 3.0
"""Share of the executor-hours to come that a new schedule must save to be worth a change that nothing forces; and no
less than one executor for a step, or for so many starts: one that is given back may have to be started again."""


class Tolerance(NamedTuple):
    """How far a schedule's chance may move before it is replaced: multiples of the chance of missing asked for.

    A schedule planned to be done in time with 0.9 is meant to miss in one of ten cases. Who restores 0.9 whenever it
    is less misses hardly ever, as at every step there is another step to mend things; so a schedule made on the way may
    miss oftener than that, and costs less. The numbers were chosen on half of the loads of docs/deadlines.md.

    Attributes:
        rescue: a schedule that misses oftener than so many times what was asked for is replaced.
        save: one that misses less often is replaced, too, where that saves a share of `LITTLE`; 0: executors are only
            ever added.
        aim: how often the new one may miss.
    """

    rescue: float = 5.0
    save: float = 0.3
    aim: float = 2.0

    def chances(self, sure: float) -> tuple[float, float, float]:
        """Return the least and most chance that is left as it is, and the one that a new schedule is given."""
        low, high, aim = (max(1 - times * (1 - sure), sure / 2) for times in self)
        return low, high, aim


class Replanned(NamedTuple):
    """A plan from now on.

    Attributes:
        plan: as it is from now on, its seconds counted from now.
        changed: whether the schedule is another one.
        kept_chance: of the schedule before, under what is known now.
        attainable: whether the probability asked for can still be had with all executors; if not, `unplanned_extra`
            are taken at once where the schedule falls below the tolerance, or what it has where that is more.
    """

    plan: BackfillPlan
    changed: bool
    kept_chance: float
    attainable: bool = True


def replan(
    plan: BackfillPlan, passed: int, records: float, around: Surroundings, tolerance: Tolerance | None = None
) -> Replanned:
    """Look at a plan again after some of its steps.

    Args:
        plan: so far.
        passed: whole steps since its beginning, at least 0; the deadline must not have passed.
        records: that are left.
        around: as things stand now, its outlook in the plan's steps.
        tolerance: how far the schedule's chance may move.

    Returns:
        The plan from now on: the same schedule, or a new one.

    Raises:
        BackfillPlanError: the deadline has passed, or lies beyond the outlook.
    """
    work = ReplayWork(records, plan.work.cost, plan.work.cost_deviation)
    by_s = plan.by_s - passed * plan.step_s
    return reconsider(plan.extra[passed:], work, by_s, plan.sure, around, tolerance, plan.schedule.price)


def reconsider(
    extra: Integers, work: ReplayWork, by_s: float, sure: float, around: Surroundings,
    tolerance: Tolerance | None = None, price: float = 0.0,
) -> Replanned:  # fmt: skip
    """Look again at a schedule that stands, whatever it was planned from.

    Args:
        extra: (D,) extra executors of it from now on, in the outlook's steps; beyond them the most of these.
        work: that is left.
        by_s: seconds until the deadline.
        sure: probability asked for.
        around: as things stand now.
        tolerance: how far the schedule's chance may move.
        price: of a record at which it was found, which shortens the search; 0: unknown.

    Raises:
        BackfillPlanError: the deadline has passed, or lies beyond the outlook.
    """
    steps, futures = around.steps_to(by_s), around.futures(work)
    low, high, aim = (Tolerance() if tolerance is None else tolerance).chances(sure)
    kept = _weighed(futures, with_tail(extra[:steps], futures.steps), work.records, steps, price)
    found, attainable = kept, True
    least = max(LITTLE * kept.hours, max(futures.step_s, STARTS * float(np.median(futures.lead_s))) / HOUR_S)
    if kept.chance < low or (kept.chance > high and kept.hours > least):
        anew = cheapest_schedule(futures, work.records, steps, aim, around.extra_now, price, rounds=1)
        attainable = anew is not None
        if anew is None and kept.chance < low and one_by_one(futures.fleet.growth):
            anew = cheapest_schedule(futures, work.records, steps, low, around.extra_now, price, rounds=1)
        if kept.chance < low:
            found = anew or _weighed(futures, _unplanned(futures, kept.extra), work.records, steps, price)
        elif anew is not None and anew.hours <= kept.hours - least:
            found = anew
    changed = not np.array_equal(found.extra[:steps], kept.extra[:steps])
    plan = describe_schedule(found, futures, work, by_s, sure, around.published_s)
    return Replanned(plan, changed, kept.chance, attainable)


def unplanned_extra(most: int, growth: float) -> int:
    """Return how many extra executors a backfill takes that no plan brings in time.

    Those are all of them, where they do not slow each other's start down. Where they share a computer it is one: each
    further start would take seconds from live records, for a backfill that may be late all the same.

    Args:
        most: that it may take.
        growth: exponent by which a start takes longer with the executors that start at once.
    """
    return min(most, 1) if one_by_one(growth) else most


def _unplanned(futures: Futures, extra: Integers) -> Integers:
    """(K,) executors where no schedule is done in time: no fewer than (K,) of the one that stands."""
    every = at_once_schedule(futures)[0]
    return np.clip(extra, unplanned_extra(int(every[0]), futures.fleet.growth), every)


def _weighed(futures: Futures, extra: Integers, records: float, steps: int, price: float) -> WeighedSchedule:
    chances, hours = weigh(futures, extra[None], records, steps)
    return WeighedSchedule(extra, float(chances[0]), float(hours[0]), price)
