"""Follow a plan beside a load as it truly comes: live records first, the rest to the replay, replanned at each step.

The load, its arrivals, the forecasts and the job's numbers are the twin's; the batches of the two queries are not
simulated one by one: within a part of a step the replay gets what capacity, live records and the promise leave, which
is where the contract's controller settles.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from models.backfill.futures import Futures
from models.backfill.given import ReplayWork, SlotRate
from models.backfill.plan import BackfillPlan, Surroundings, plan_backfill
from models.backfill.replan import Tolerance, replan
from models.contract.service_rate import ServiceRate
from models.policy.core.capacity import Floats, Integers
from models.twin.backfill.case import PARTS, DrawnBackfill
from models.twin.backfill.hindsight import least_hours

NOISE, BATCHES, BATCH = 0.1, 5, 3000
"""Deviation of the logarithm of a measured batch's time; batches per step of a plan; records of one."""
BEFORE = 40
"""Batches of live records that the capacity was learned from before the backfill."""
GUESSED = 0.5
"""The first guess of what a slot serves, over the truth."""


@dataclass(frozen=True)
class FollowedBackfill:
    """What became of a backfill.

    Attributes:
        finish_s: seconds until it was done; infinite: not while it was followed.
        hours: executor-hours paid beside those of the live promise.
        kept: whether it was done by its deadline.
        place: of the finishing time in the distribution that was told at first, 0 to 1.
        changes: steps at which the schedule was changed.
        moves: executors by which the extra ones were raised or lowered, in all.
        busiest: largest share of the capacity that live records and the replay took together, where live records alone
            left any.
    """

    finish_s: float
    hours: float
    kept: bool
    place: float
    changes: int
    moves: int
    busiest: float


class MeasuredSoFar:
    """What is known of capacity and cost, from batches as they are measured."""

    def __init__(self, case: DrawnBackfill) -> None:
        self._case, self._random = case, np.random.default_rng((case.seed, 1))
        self._rate = ServiceRate.prior(GUESSED * case.job.slot_rps)
        self._cost, self._sure = math.log(case.work.cost), 1 / max(case.work.cost_deviation, 1e-6) ** 2
        for _ in range(BEFORE):
            self._measure()

    def _measure(self) -> None:
        busy_s = BATCH / self._case.job.slot_rps * math.exp(NOISE * self._random.standard_normal())
        self._rate = self._rate.observed(BATCH, busy_s)

    def learn(self, replayed: bool) -> None:
        """Measure a step's batches; those of the replay tell its cost."""
        for _ in range(BATCHES):
            self._measure()
        if replayed:
            seen = math.log(self._case.true_cost) + NOISE / math.sqrt(BATCHES) * self._random.standard_normal()
            more = BATCHES / NOISE**2
            self._cost = (self._cost * self._sure + seen * more) / (self._sure + more)
            self._sure += more

    @property
    def slot(self) -> SlotRate:
        """What a slot serves."""
        return SlotRate.learned(self._rate)

    def work(self, records: float) -> ReplayWork:
        """Return the work that is left."""
        return ReplayWork(records, math.exp(self._cost), 1 / math.sqrt(self._sure))


def surroundings(case: DrawnBackfill, learned: MeasuredSoFar, step: int, running: int, extra: int) -> Surroundings:
    """Return all that is known when a step begins, and nothing of what comes."""
    outlook = case.outlook_at(step)
    joint = case.past[0].head(len(outlook.quantiles))
    return Surroundings(
        outlook, joint, case.promise, learned.slot, case.job.fleet, running, extra, case.seed % 1000 + 1
    )  # fmt: skip


def first_plan(case: DrawnBackfill, sure: float) -> BackfillPlan:
    """Plan a backfill at its beginning.

    Raises:
        DeadlineError: it cannot be done in time so surely.
    """
    learned = MeasuredSoFar(case)
    around = surroundings(case, learned, 0, int(case.held[0]), 0)
    return plan_backfill(learned.work(case.work.records), case.by_s, around, sure)


def follow(case: DrawnBackfill, plan: BackfillPlan, tolerance: Tolerance | None) -> FollowedBackfill:
    """Follow a plan, looked at again when each step begins.

    Args:
        case: the truth.
        plan: of its beginning.
        tolerance: how far the schedule's chance may move; None: it is never looked at again.
    """
    learned, told, fleet = MeasuredSoFar(case), plan.finish, case.job.fleet
    left, since, paid, changes, moves, before = case.work.records, 0, 0.0, 0, 0, 0
    running, busiest, finish = int(case.held[0]), 0.0, math.inf
    leads = np.random.default_rng((case.seed, 2)).choice(case.job.lead_s, case.horizon)
    for step in range(case.horizon):
        if tolerance is not None and 0 < step < case.steps:
            around = surroundings(case, learned, step, running, before)
            again = replan(_with_cost(plan, learned), step - since, left, around, tolerance)
            if again.changed:
                plan, since, changes = again.plan, step, changes + 1
        extra = int(plan.extra[min(step - since, len(plan.extra) - 1)])
        target = min(int(case.held[step]) + extra, fleet.most)
        extra = target - int(case.held[step])
        replayed, shares = _replay(case, step, running, target, float(leads[step]))
        busiest = max(busiest, shares)
        moves, before, running = moves + abs(extra - before), extra, target
        done = np.cumsum(replayed)
        if done[-1] >= left * (1 - 1e-12):
            at = int(np.searchsorted(done, left * (1 - 1e-12)))
            share = (at + (left - (done[at - 1] if at else 0.0)) / max(replayed[at], 1e-12)) / PARTS
            finish, paid = (step + share) * case.step_s, paid + extra * share * case.step_s
            break
        left, paid = left - float(done[-1]), paid + extra * case.step_s
        learned.learn(done[-1] > 0)
    place = float(np.mean(told.seconds < finish) + np.mean(told.seconds <= finish)) / 2
    kept = bool(finish <= case.by_s * (1 + 1e-9))
    return FollowedBackfill(finish, paid / 3600.0, kept, place, changes, moves, busiest)


def _with_cost(plan: BackfillPlan, learned: MeasuredSoFar) -> BackfillPlan:
    return replace(plan, work=learned.work(plan.work.records))


def _replay(case: DrawnBackfill, step: int, before: int, target: int, lead_s: float) -> tuple[Floats, float]:
    """(PARTS,) records replayed in a step's parts, and the largest share of the capacity taken."""
    job, worth = case.job, case.job.fleet.worth
    live = case.live_rps[step]
    late = np.clip(lead_s / case.part_s - np.arange(PARTS), 0.0, 1.0) if target > before else np.zeros(PARTS)
    slots = worth[target] - (worth[target] - worth[before]) * late if target > before else np.full(PARTS, worth[target])
    room = np.maximum(slots * job.slot_rps * (1 - job.idle) - live, 0.0)
    taken = np.where(room > 0, (live + room) / (slots * job.slot_rps), 0.0)
    return room / case.true_cost * case.part_s, float(taken.max())


def all_at_once(case: DrawnBackfill, plan: BackfillPlan) -> FollowedBackfill:
    """Follow the schedule that takes all executors from the beginning on."""
    every = np.full(len(plan.extra), case.job.fleet.most - case.job.fleet.least)
    return follow(case, replace(plan, schedule=plan.schedule._replace(extra=every)), None)


def own_executors_hours(case: DrawnBackfill) -> float:
    """Return executor-hours of a backfill on the fewest executors of its own that are done in time, begun at once.

    As backfills are run that may not come near the live job: nothing of what that leaves free is used, and nothing is
    kept idle for live records, as it has none. The number is chosen in hindsight, the executors take the median lead
    time, and no driver is counted. Infinite where no known number suffices.
    """
    job, lead_s = case.job, float(np.median(case.job.lead_s))
    worth = job.fleet.worth[1:]
    took = lead_s + case.work.records * case.true_cost / (worth * job.slot_rps)
    enough = np.flatnonzero(took <= case.by_s)
    return float((enough[0] + 1) * took[enough[0]] / 3600.0) if len(enough) else math.inf


def clairvoyant_hours(case: DrawnBackfill) -> float:
    """Return executor-hours below which no schedule is done in time, the whole truth known (`least_hours`)."""
    steps = case.steps * PARTS
    held: Integers = np.repeat(case.held[: case.steps], PARTS)[None]
    true = Futures(
        case.live_rps[: case.steps].reshape(1, steps), held, np.array([case.job.slot_rps * (1 - case.job.idle)]),
        np.array([case.true_cost]), np.zeros(1), case.part_s, case.job.fleet, int(case.held[0]),
    )  # fmt: skip
    return float(least_hours(true, steps, case.work.records)[0])
