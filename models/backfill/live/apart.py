"""A backfill of a running job in an application of its own: planned, and as its order carries it."""

from __future__ import annotations

import math
from dataclasses import replace

from configs.backpressure import ApartTerms
from models.backfill.apart import ApartPlan, plan_apart, soonest_apart
from models.backfill.given import ReplayWork
from models.backfill.live.known import grid_until, surroundings
from models.backfill.live.ordered import FINISH_LEVELS, JobNow
from models.backfill.plan import Surroundings
from models.backfill.text import apart_refusal
from models.policy.core.capacity import Floats, speed_table
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
    terms = apart_terms(moment)
    if terms is None or moment.read_s(order) <= 0:
        return None
    work, around, worth = _given(order, moment, terms)
    return plan_apart(work, moment.by_s(order), around, order.sure or 0.0, worth, terms.start_s, order.most_rps)


def why_not_apart(order: ReplayOrder, moment: JobNow, zone: str) -> str:
    """Return why an order that is in time nowhere is not in an application of its own; "" where its contract has none.

    Args:
        order: with a deadline.
        moment: of its job.
        zone: IANA name, of the job.

    Raises:
        BackfillPlanError: as `plan_order_apart`.
    """
    terms = apart_terms(moment)
    if terms is None or moment.read_s(order) <= 0:
        return ""
    work, around, worth = _given(order, moment, terms)
    finish = soonest_apart(work, around, worth, terms.start_s, order.most_rps)
    clock = moment.clock
    return apart_refusal(terms.executors, finish, order.sure or 0.0, clock.at(moment.now_s), zone, clock.scale)


def _given(order: ReplayOrder, moment: JobNow, terms: ApartTerms) -> tuple[ReplayWork, Surroundings, Floats]:
    """The work, the job's surroundings, and what the application's executors are worth, as many as have a task."""
    contract, tasks = moment.known.contract, moment.known.memory.ceiling(moment.known.contract)
    around = surroundings(moment.known, moment.now_s, grid_until(moment.known, moment.read_s(order)))
    cores = contract.executors.cores
    worth = speed_table(min(terms.executors, math.ceil(tasks / cores)), cores, tasks, contract.planning.scaling)
    return moment.work(order), around, worth


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
