"""A backfill's plan as its order carries it: planned when it is ordered, looked at again while it runs.

The order holds all that a plan needs to go on: deadline, probability, and the schedule in the job's own time. So
whoever follows an order, a command or a task, looks at it in the same way, also after another one had to stop.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from models.backfill.given import BackfillPlanError, ReplayWork
from models.backfill.live.issued import JobClock
from models.backfill.live.known import (
    PUBLISHED_S,
    KnownJob,
    StepGrid,
    grid_until,
    lead_times,
    refuse_standstill,
    surroundings,
)
from models.backfill.live.said import LEFT_NOTHING
from models.backfill.plan import BackfillPlan, OtherBackfill, plan_backfill, shortest_s
from models.backfill.replan import STARTS, Replanned, reconsider
from models.policy.core.capacity import Integers
from models.policy.replays.record_cost import replay_cost
from tidecast.orders import ReplayOrder, ReplayProgress, later_than
from tidecast.replay.pace import SLOW_START_S

LEAST_REACHED = 0.05
"""Share of its rate that a replay is taken to come to at least, however little its newest batches read."""
COST_DEVIATION = 0.1
"""Standard deviation of the logarithm of what a replayed record costs, in units of a live one."""
LEAST_WEIGHT = 1e-3
FINISH_LEVELS = (0.1, 0.5, 0.9, 0.99)
"""Probabilities whose finishing times go out with an order, where the plan reaches so far."""
READS_NO_MORE = ("read", "compared", "done", "cancelled", "failed")
"""States in which a replay needs no rate any more; after `read` and `compared` it is not over yet."""


class JobNow(NamedTuple):
    """A moment of a job whose backfills are planned.

    Attributes:
        known: of it.
        clock: its own time.
        now_s: epoch seconds.
        orders: newest order of each replay.
        progress: what was last said of each.
    """

    known: KnownJob
    clock: JobClock
    now_s: float
    orders: Mapping[str, ReplayOrder] = {}
    progress: Mapping[str, ReplayProgress] = {}

    def said(self, order: ReplayOrder) -> ReplayProgress | None:
        """Return what was last said of an order's replay; None: nothing, or of one of its name that was over before."""
        said = self.progress.get(order.id)
        over = said is not None and said.state in LEFT_NOTHING and not said.answers(order)
        return None if over else said

    def left(self, order: ReplayOrder) -> float:
        """Return the records of an order that are still to be replayed."""
        said = self.said(order)
        return float(max(order.records - (0 if said is None else said.done), 0))

    def work(self, order: ReplayOrder) -> ReplayWork:
        """Return what is left of an order, at what its records cost by what its replay told, else as it believes.

        Where something is believed, batches of its slow start tell nothing: executors load what they run.
        """
        said, reading_s = self.said(order), self.reading_s(order)
        slow = order.cost is not None and (reading_s is None or reading_s < SLOW_START_S)
        told = {"cost": order.cost} | ({} if said is None or slow else {"rows": said.rows, "work_s": said.work_s})
        cost = replay_cost([told], self.known.memory.model.per_record_s)
        return ReplayWork(self.left(order), 1.0 if cost is None else cost, COST_DEVIATION)

    def reading_s(self, order: ReplayOrder) -> float | None:
        """Return the seconds since the first batch of an order's replay was begun; None: it has had none."""
        said = self.said(order)
        if said is None or said.reading_since is None:
            return None
        return max(self.now_s - said.reading_since, 0.0)

    def reached(self, order: ReplayOrder) -> float:
        """Return the share of the rate that it is admitted with that an order's replay comes to, as its batches told.

        Those of its slow start tell nothing.
        """
        said, reading_s = self.said(order), self.reading_s(order)
        if said is None or said.reached is None or reading_s is None or reading_s < SLOW_START_S:
            return 1.0
        return max(said.reached, LEAST_REACHED)

    def by_s(self, order: ReplayOrder) -> float:
        """Return the seconds until an order's deadline; negative where it has passed."""
        assert order.by is not None
        return self.clock.wall_at(order.by) - self.now_s

    def read_s(self, order: ReplayOrder) -> float:
        """Return the seconds until all of an order is to be read, so that it is published by its deadline."""
        return self.by_s(order) - PUBLISHED_S

    def runs(self, order: ReplayOrder) -> bool:
        """Return whether an order's replay is to go on reading."""
        said = self.said(order)
        return order.wanted == "run" and (said is None or said.state not in READS_NO_MORE or not said.answers(order))


def plan_order(order: ReplayOrder, moment: JobNow) -> BackfillPlan:
    """Plan an order that has a deadline and no schedule yet; backfills of an earlier deadline go first.

    Raises:
        DeadlineError: it cannot be met so surely.
        BackfillPlanError: the deadline has passed or lies beyond the forecast, too little is known of the job, or
            nobody decides a rate for its replays.
    """
    by_s = moment.by_s(order)
    if by_s <= 0:
        raise BackfillPlanError(f"the deadline of backfill {order.id} passed {-by_s:.0f} s ago: state a later one")
    if moment.read_s(order) <= 0:
        raise BackfillPlanError(
            f"the deadline of backfill {order.id} is {by_s:.0f} s from now, and {PUBLISHED_S:.0f} s are left for its "
            "publication: state a later one"
        )
    grid = grid_until(moment.known, moment.read_s(order))
    around = surroundings(
        moment.known, moment.now_s, grid, bound_rps=order.most_rps, others=_first(order, moment, grid)
    )
    refuse_standstill(moment.known)
    return plan_backfill(moment.work(order), by_s, around, order.sure or 0.0)


def earliest_s(order: ReplayOrder, moment: JobNow) -> float:
    """Return the seconds within which an order is done as surely as asked for, all executors at once, and a step more.

    Another deadline is cut into other steps, hence the one more. Infinite where the forecast does not reach so far.

    Raises:
        BackfillPlanError: too little is known of the job.
    """
    issued = moment.known.issued
    reach_s = 0.0 if issued is None else issued.reaches_s - moment.now_s
    grid = grid_until(moment.known, max(reach_s, 1.0))
    around = surroundings(
        moment.known, moment.now_s, grid, bound_rps=order.most_rps, others=_first(order, moment, grid)
    )
    found = shortest_s(moment.work(order), around, order.sure or 0.0) + grid.step_s
    return found if found <= reach_s + PUBLISHED_S else math.inf


def look_again(order: ReplayOrder, moment: JobNow) -> Replanned | None:
    """Look again at an order that stands; None where no time is left to read, it does not run, or runs apart.

    Raises:
        BackfillPlanError: the deadline lies beyond the forecast, too little is known of the job now, or nobody decides
            a rate for its replays.
    """
    apart = order.apart is not None  # nothing of it is the live job's, and nothing is left to be planned
    if apart or order.by is None or not order.sure or not moment.runs(order) or moment.read_s(order) <= 0:
        return None
    by_s = moment.by_s(order)
    grid = grid_until(moment.known, moment.read_s(order))
    job_now = moment.clock.at(moment.now_s)
    work, said = moment.work(order), moment.said(order)
    admitted_rps = None if said is None or said.admitted_rps is None else said.admitted_rps * work.cost
    around = surroundings(
        moment.known, moment.now_s, grid, order.executors_at(job_now), order.most_rps, _first(order, moment, grid),
        moment.reading_s(order), admitted_rps,
    )  # fmt: skip
    refuse_standstill(moment.known)
    around = replace(around, reached=moment.reached(order))
    return reconsider(_extra(order, moment, grid)[: grid.steps], work, by_s, order.sure, around)


def with_plan(order: ReplayOrder, plan: BackfillPlan, moment: JobNow) -> ReplayOrder:
    """Return an order with a plan's schedule and finishing times, and with the weight that its work needs.

    A weight that a person gave stays.
    """
    job_now, step = moment.clock.at(moment.now_s), plan.step_s * moment.clock.scale
    extra = plan.extra.tolist()
    changes = [k for k in range(len(extra)) if k == 0 or extra[k] != extra[k - 1]]
    schedule = [[round(job_now + k * step, 3), int(extra[k])] for k in changes]
    needed = max(round(plan.work.records / max(plan.by_s - plan.published_s, 1.0), 3), LEAST_WEIGHT)
    weight = order.weight if order.weighted else needed
    keep_s = round(STARTS * float(np.median(lead_times(moment.known))), 3)
    done = [(level, plan.finish.quantile(level)) for level in FINISH_LEVELS]
    finish = [[level, round(job_now + s * moment.clock.scale, 3)] for level, s in done if math.isfinite(s)]
    return replace(
        order, schedule=schedule, weight=weight, keep_s=keep_s, finish=finish,
        wall_time=later_than(order, moment.now_s),
    )  # fmt: skip


def overlapping(order: ReplayOrder, others: Iterable[ReplayOrder]) -> ReplayOrder | None:
    """Return another order that stands and has a part of the same range of job time; None where there is none."""
    if order.begin_ms is None or order.end_ms is None:
        return None
    for other in others:
        if other.id == order.id or other.wanted == "done" or other.begin_ms is None or other.end_ms is None:
            continue
        if other.begin_ms < order.end_ms and order.begin_ms < other.end_ms:
            return other
    return None


def _first(order: ReplayOrder, moment: JobNow, grid: StepGrid) -> tuple[OtherBackfill, ...]:
    """The backfills with an earlier deadline, by deadline, as their schedules stand."""
    rank = (order.by or 0.0, order.id)
    dated = [one for one in moment.orders.values() if one.by is not None and one.apart is None and moment.runs(one)]
    earlier = sorted(
        (one.by or 0.0, one.id) for one in dated if ((one.by or 0.0), one.id) < rank and one.id != order.id
    )
    found = (moment.orders[name] for _, name in earlier)
    return tuple(
        OtherBackfill(
            moment.left(one),
            _extra(one, moment, grid),
            one.most_rps or math.inf,
            moment.reading_s(one),
            moment.reached(one),
        )
        for one in found
    )


def _extra(order: ReplayOrder, moment: JobNow, grid: StepGrid) -> Integers:
    """(K,) the executors that an order's schedule asks for in the steps of a grid, at their middles."""
    middles = moment.now_s + (np.arange(grid.looked_at) + 0.5) * grid.step_s
    return np.array([order.executors_at(moment.clock.at(float(at))) for at in middles], np.int64)
