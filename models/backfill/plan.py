"""The plan of a backfill: the cheapest schedule that is done by its deadline, or why there is none."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from models.backfill.climb import AT_ONCE, Climb
from models.backfill.finish import FinishTimes, finish_steps, finishing, replayed, taken_by, weigh
from models.backfill.futures import COUNT, Futures, draw_futures
from models.backfill.given import BackfillPlanError, Fleet, LiveOutlook, LivePromise, ReplayWork, SlotRate
from models.backfill.joint import JointErrors
from models.backfill.search import WeighedSchedule, cheapest_schedule, with_tail
from models.policy.core.capacity import Floats, Integers

SURE = 0.9
"""Probability with which a deadline is to be met where none is stated."""


class DeadlineError(BackfillPlanError):
    """A deadline that cannot be met so surely; says which can, and what it would take.

    Attributes:
        earliest_s: seconds within which the work is done with the probability asked for, all executors at once;
            infinite: not within the steps that the forecast reaches.
        executors: the fewest, as upper bound of the fleet, that meet the deadline; None: not even all in its table.
        by_s, sure, most: as asked for, and the upper bound of the fleet.
    """

    def __init__(self, by_s: float, sure: float, earliest_s: float, executors: int | None, most: int) -> None:
        self.earliest_s, self.executors = earliest_s, executors
        self.by_s, self.sure, self.most = by_s, sure, most
        when = f"{earliest_s / 3600:.2f} h from now" if math.isfinite(earliest_s) else "later than the forecast reaches"
        takes = f"allow {executors} executors" if executors else "no number of executors that is known of suffices"
        super().__init__(
            f"done within {by_s / 3600:.2f} h: with {most} executors not with a probability of {sure:g}. The earliest "
            f"is {when}; for this deadline {takes}, or state a lower --sure"
        )


class OtherBackfill(NamedTuple):
    """A backfill that goes first.

    Attributes:
        records: that are left.
        extra: (K,) executors of its schedule.
        most_rps: replayed records/s that it was ordered to have at most.
        reading_s: since its first batch was begun; None: it has had none.
        reached: share of the rate that it is admitted with that it comes to.
    """

    records: float
    extra: Integers
    most_rps: float = math.inf
    reading_s: float | None = 0.0
    reached: float = 1.0


@dataclass(frozen=True, eq=False)
class Surroundings:
    """All that a backfill is planned from, beside its work and its deadline.

    Attributes:
        outlook: live load, over the steps to the deadline and some more, in which latecomers are followed.
        joint: how its errors hang together.
        promise: of the live records.
        slot: what a slot serves.
        fleet: executors.
        running, extra_now: executors that run now, and how many of them are a backfill's.
        seed, count: of the futures.
        others: backfills that go first.
        most_rps, reading_s, reached: as of `Futures`, of this backfill.
        high_rps, climb: likewise, of all.
        slot_most_rps: likewise of each slot of the most executors: the box of a contract that states none.
        published_s: seconds after all is read until it is published, and done.
    """

    outlook: LiveOutlook
    joint: JointErrors
    promise: LivePromise
    slot: SlotRate
    fleet: Fleet
    running: int
    extra_now: int = 0
    seed: int = 0
    count: int = COUNT
    others: tuple[OtherBackfill, ...] = ()
    most_rps: float = math.inf
    slot_most_rps: float = math.inf
    high_rps: Floats | float = 0.0
    climb: Climb = AT_ONCE
    reading_s: float | None = 0.0
    reached: float = 1.0
    published_s: float = 0.0

    def futures(self, work: ReplayWork) -> Futures:
        """Draw what may come; backfills that go first are to this one what live records are."""
        futures = draw_futures(
            self.outlook, self.joint, self.promise, self.slot, work, self.fleet, self.running, self.seed, self.count
        )
        box_rps = self.slot_most_rps * float(self.fleet.worth[self.fleet.most])
        futures = replace(futures, high_rps=self.high_rps, climb=self.climb)
        for other in self.others:
            most_rps = min(other.most_rps, box_rps)
            its = replace(futures, most_rps=most_rps, reading_s=other.reading_s, reached=other.reached)
            futures = taken_by(its, other.extra, other.records)
        most_rps = min(self.most_rps, box_rps)
        return replace(futures, most_rps=most_rps, reading_s=self.reading_s, reached=self.reached)

    def steps_to(self, by_s: float) -> int:
        """Return the whole steps until all is to be read for a deadline, seconds from now.

        Raises:
            BackfillPlanError: none, or more than the outlook has.
        """
        steps = math.floor((by_s - self.published_s) / self.outlook.step_s + 1e-9)
        if not 1 <= steps <= len(self.outlook.quantiles):
            raise BackfillPlanError(
                f"by_s={by_s:g}: {steps} steps of {self.outlook.step_s:g} s, the outlook has "
                f"{len(self.outlook.quantiles)}. State a deadline in its reach, or forecast further"
            )
        return steps


@dataclass(frozen=True, eq=False)
class BackfillPlan:
    """A schedule of extra executors, and what is to be expected of it. Times are seconds from its beginning.

    Attributes:
        work: to do.
        by_s, sure: deadline and probability asked for.
        schedule: the extra executors per step, of the outlook's length.
        finish: when it is done, its publication among it.
        replay_rps: (K,) replayed records/s, mean over the futures of those that are not yet done.
        live_rps: (K,) median live records/s.
        held: (K,) executors of the live promise, mean.
        step_s: seconds per step.
        at_once_hours: executor-hours of all executors from now on until it is done, mean.
        price: of an executor-hour.
        live_risk: share of the futures in which live records alone are at some time more than all executors serve.
        published_s: as of `Surroundings`.
    """

    work: ReplayWork
    by_s: float
    sure: float
    schedule: WeighedSchedule
    finish: FinishTimes
    replay_rps: Floats
    live_rps: Floats
    held: Floats
    step_s: float
    at_once_hours: float
    price: float = 1.0
    live_risk: float = 0.0
    published_s: float = 0.0

    @property
    def extra(self) -> Integers:
        """(K,) extra executors."""
        return self.schedule.extra

    @property
    def cost(self) -> float:
        """What the extra executors are expected to cost, in the price's currency."""
        return self.schedule.hours * self.price


def plan_backfill(work: ReplayWork, by_s: float, around: Surroundings, sure: float = SURE) -> BackfillPlan:
    """Plan the cheapest schedule that is done by a deadline with a probability.

    Args:
        work: records, and their cost.
        by_s: seconds from now; cut to whole steps of the outlook.
        around: forecasts, capacity, executors.
        sure: probability, in (0, 1).

    Raises:
        DeadlineError: not even all executors at once are done in time so surely.
        BackfillPlanError: a value out of range.
    """
    if not 0 < sure < 1:
        raise BackfillPlanError(f"sure={sure}: a probability between 0 and 1 is expected, such as 0.9")
    steps, futures = around.steps_to(by_s), around.futures(work)
    found = cheapest_schedule(futures, work.records, steps, sure, around.extra_now)
    if found is None:
        raise _refusal(work, by_s, around, futures, sure)
    return describe_schedule(found, futures, work, by_s, sure, around.published_s)


def describe_schedule(
    found: WeighedSchedule, futures: Futures, work: ReplayWork, by_s: float, sure: float, published_s: float = 0.0
) -> BackfillPlan:
    """Return the plan that a schedule is, with what is to be expected of it under some futures."""
    done = replayed(futures, found.extra)
    ends = finish_steps(done, work.records)
    still = ends[:, None] > np.arange(futures.steps)
    rates = np.diff(done, axis=1) / futures.step_s
    mean = np.divide((rates * still).sum(axis=0), still.sum(axis=0), out=np.zeros(futures.steps), where=still.any(0))
    most_rps = futures.fleet.worth[futures.fleet.most] * futures.slot_rps
    _, at_once = weigh(futures, at_once_schedule(futures), work.records, futures.steps)
    return BackfillPlan(
        work, by_s, sure, found, FinishTimes(np.sort(ends * futures.step_s + published_s)), mean,
        np.median(futures.live, axis=0), futures.held.mean(axis=0), futures.step_s, float(at_once[0]),
        futures.fleet.price, float((futures.live > most_rps[:, None]).any(axis=1).mean()), published_s,
    )  # fmt: skip


def at_once_schedule(futures: Futures) -> Integers:
    """Return the (1, K) schedule that takes all executors from now on."""
    return np.full((1, futures.steps), futures.fleet.most - futures.fleet.least, np.int64)


def shortest_s(work: ReplayWork, around: Surroundings, sure: float = SURE) -> float:
    """Return the seconds within which all executors at once are done so surely; infinite: not within the outlook."""
    futures = around.futures(work)
    return finishing(futures, at_once_schedule(futures)[0], work.records).quantile(sure) + around.published_s


def _refusal(work: ReplayWork, by_s: float, around: Surroundings, futures: Futures, sure: float) -> DeadlineError:
    earliest = finishing(futures, at_once_schedule(futures)[0], work.records).quantile(sure) + around.published_s
    low, high = around.fleet.most, len(around.fleet.worth) - 1
    steps = around.steps_to(by_s)

    def meets(most: int) -> bool:
        wider = replace(around, fleet=around.fleet.with_most(most)).futures(work)
        every = with_tail(at_once_schedule(wider)[:, :steps], wider.steps)
        return bool(weigh(wider, every, work.records, steps)[0][0] >= sure)

    if high == low or not meets(high):
        return DeadlineError(by_s, sure, earliest, None, low)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if meets(middle) else (middle, high)
    return DeadlineError(by_s, sure, earliest, high, around.fleet.most)
