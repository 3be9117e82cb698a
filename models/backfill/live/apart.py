"""A backfill of a running job in an application of its own: planned, and as its order carries it."""

from __future__ import annotations

import math
from dataclasses import replace

from configs.backpressure import ApartTerms
from models.backfill.apart import ApartPlan, plan_apart
from models.backfill.live.known import grid_until, surroundings
from models.backfill.live.ordered import FINISH_LEVELS, JobNow
from tidecast.orders import ReplayOrder, later_than
from tidecast.replay.pace import rows_per_task

TASK_S = 4.0
"""How long a task's records should take where no live record waits for its core: longer ones cost less to start, and
of batches of ten seconds each core still has two or three."""


def apart_terms(moment: JobNow) -> ApartTerms | None:
    """Return what the job's contract says of applications of a backfill's own; None: there are none."""
    stated = moment.known.contract.backpressure
    return None if stated is None else stated.apart


def plan_order_apart(order: ReplayOrder, moment: JobNow) -> ApartPlan | None:
    """Plan an order with a deadline in an application of its own; None where its contract has none, or none is in time.

    Raises:
        BackfillPlanError: too little is known of the job, or the deadline lies beyond the forecast.
    """
    terms, by_s = apart_terms(moment), moment.by_s(order)
    if terms is None or by_s <= 0:
        return None
    around = surroundings(moment.known, moment.now_s, grid_until(moment.known, by_s))
    work = moment.work(order)
    return plan_apart(work, by_s, around, order.sure or 0.0, terms.executors, terms.start_s, order.most_rps)


def with_apart(order: ReplayOrder, plan: ApartPlan, moment: JobNow) -> ReplayOrder:
    """Return an order that is read in an application of its own, with its executors and finishing times."""
    job_now, scale = moment.clock.at(moment.now_s), moment.clock.scale
    done = [(level, plan.finish.quantile(level)) for level in FINISH_LEVELS]
    finish = [[level, round(job_now + s * scale, 3)] for level, s in done if math.isfinite(s)]
    record_s = moment.known.memory.model.per_record_s * plan.work.cost
    return replace(
        order, apart=plan.executors, schedule=[], finish=finish, task_s=TASK_S,
        task_rows=rows_per_task(TASK_S, record_s), wall_time=later_than(order, moment.now_s),
    )  # fmt: skip
