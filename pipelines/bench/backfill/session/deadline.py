"""A session's replay with a deadline: planned as a user's, by what is heard of the job; followed as it was told."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from configs.settings import Settings
from models.backfill.given import BackfillPlanError
from models.backfill.live.known import PUBLISHED_S
from models.backfill.live.ordered import JobNow
from models.backfill.plan import SURE
from pipelines.backfill.ordering import plan_due
from pipelines.backfill.watch import read_now
from tidecast.orders import ReplayOrder

HEARD_S, LOOK_S = 30.0, 1.0
"""Seconds within which the load's first forecast is heard, and between two looks."""


class OrderedBy(NamedTuple):
    """An order with its plan's schedule, None where it is refused, and what is to be kept of the plan.

    `told` holds `planned` (predicted seconds since the load's begin, rising), `futures` (how many there are), `hours`
    and `chance`; or `refused`, why there is no plan.
    """

    order: ReplayOrder | None
    told: dict[str, Any]


def plan_session(settings: Settings, order: ReplayOrder, by_s: float) -> OrderedBy:
    """Plan a session's replay that is to have read all so many seconds after its order, as surely as is usual.

    Raises:
        SettingsError: the job has no contract, or a wrong one.
        BrokerError, ValueError: a topic cannot be read; an unknown security option.
    """
    moment = _moment(settings, order.job)
    due = replace(order, by=round(moment.clock.at(order.wall_time + by_s + PUBLISHED_S), 3), sure=SURE)
    try:
        planned = plan_due(due, settings.replay.timezone, moment)
    except BackfillPlanError as error:
        return OrderedBy(None, {"refused": str(error)})
    read_s = planned.plan.finish.seconds - planned.plan.published_s
    schedule, seconds = planned.plan.schedule, read_s + moment.now_s - order.wall_time
    told = {
        "planned": seconds[np.isfinite(seconds)].round(3).tolist(), "futures": len(seconds),
        "hours": schedule.hours, "chance": schedule.chance, "schedule": planned.order.schedule,
    }  # fmt: skip
    return OrderedBy(planned.order, told)


def _moment(settings: Settings, job: str) -> JobNow:
    """What is known of the job, a forecast among it where one comes."""
    until = time.monotonic() + HEARD_S
    while True:
        moment = read_now(settings, job)
        if moment.known.issued is not None or time.monotonic() > until:
            return moment
        time.sleep(LOOK_S)
