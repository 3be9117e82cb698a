"""The backfill that corrects a live day, before it is sent: when it is ordered and due, its range, and its plan."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import NamedTuple

from configs.contract import load_contract
from configs.settings import Settings
from models.backfill.given import BackfillPlanError
from models.backfill.live.known import PUBLISHED_S, start_growth
from models.backfill.live.ordered import JobNow
from models.backfill.plan import SURE
from models.backfill.replan import unplanned_extra
from pipelines.backfill.asked import TimeRange
from pipelines.backfill.ordering import plan_due
from pipelines.backfill.ranges import find_offsets
from pipelines.report.recorded.backfill import RecordedBackfill
from tidecast.control import Clock
from tidecast.messages import decode, encode
from tidecast.orders import ReplayOrder

LEAST_S = 90.0
"""Wall seconds that a backfill is given at least, its publication among them."""
SPARE_STEPS = 2
"""Steps of the served forecast that are not counted on: the newest one is up to a step old, and issued with delay."""
TASK_SHARE = 0.2
"""Share of the job's latency target that the records of a replay's task may take from live ones."""


class CorrectionPlan(NamedTuple):
    """A backfill as it is sent.

    Attributes:
        order: with its schedule.
        sentence: the plan; "" where there is none.
        done_at: when it is planned to be done and published, epoch seconds; the deadline, where there is no plan.
        why: there is no plan; "" where there is one.
    """

    order: ReplayOrder
    sentence: str
    done_at: float
    why: str = ""


def length_s(settings: Settings) -> float:
    """Return the wall seconds of the live load."""
    return settings.replay.live_hours * 3600 / settings.replay.speed


def deadline(settings: Settings, clock: Clock, came_at: float) -> float:
    """Return when a backfill has to be done whose records have come at a wall time, epoch seconds.

    That is half a minute after all is to be read, with the live load's last record or `replay.backfill_after_s` later;
    where that leaves less than `LEAST_S` (90 s), so long after they have come.
    """
    read_at = clock.wall_start + length_s(settings) + settings.replay.backfill_after_s
    return max(read_at + PUBLISHED_S, came_at + LEAST_S)


def order_at(settings: Settings, came_at: float, due_at: float) -> float:
    """Return when a backfill is ordered: all of it has come, and the served forecast reaches its deadline.

    Args:
        settings: with the steps of the forecast.
        came_at: epoch seconds at which the last record of the range had come.
        due_at: as of `deadline`.
    """
    training = settings.training
    reach_s = (training.horizon - SPARE_STEPS) * training.step_s / settings.replay.speed
    return max(came_at, due_at - PUBLISHED_S - reach_s)


def order_range(
    settings: Settings, clock: Clock, told: RecordedBackfill, came_at: float
) -> ReplayOrder:  # fmt: skip
    """Make the order to read a range again: all records of the topic since its begin, until all of it had come.

    The replay leaves out what is not of the range's event time, so that a record is believed to cost as much of a live
    one's work as the range is of what is read.

    Args:
        settings: with broker, job and its contract.
        clock: of the job.
        told: with name, range and deadline.
        came_at: epoch seconds at which the last record of the range had come; not in the future.

    Raises:
        RangeError: the topic does not hold the range.
        SettingsError: the job has no contract, or a wrong one.
        BrokerError, ValueError, kafka.errors.KafkaError: as `find_offsets`.
    """
    begin, end, now = clock.wall_at(told.begin), clock.wall_at(told.end), time.time()
    asked = TimeRange(begin, end, came_at - end, now, clock)
    found = find_offsets(settings.kafka, settings.kafka.topic("events"), asked)
    contract = load_contract(settings.job.name, settings.contracts_dir)
    order = ReplayOrder(
        told.id, settings.job.name, now, "run", found.starts, found.ends, begin_ms=round(told.begin * 1000),
        end_ms=round(told.end * 1000), task_s=TASK_SHARE * contract.latency_target_s,
        by=round(clock.at(told.due_at), 3), sure=SURE, cost=round((end - begin) / (came_at - begin), 3),
    )  # fmt: skip
    return decode(ReplayOrder, encode(order))


def plan_correction(order: ReplayOrder, zone: str, due_at: float, moment: JobNow) -> CorrectionPlan:
    """Plan an order from what is known of its job; where it cannot be, `unplanned_extra` executors are added.

    Args:
        order: of `order_range`.
        zone: IANA name, for the sentence.
        due_at: as of `deadline`.
        moment: of the job.
    """
    try:
        planned = plan_due(order, zone, moment)
    except BackfillPlanError as error:
        bounds = moment.known.contract.executors
        extra = unplanned_extra(bounds.max - bounds.min, start_growth(moment.known))
        schedule = [[round(moment.clock.at(moment.now_s), 3), extra]]
        return CorrectionPlan(replace(order, schedule=schedule, wall_time=moment.now_s), "", due_at, str(error))
    done_at = moment.now_s + planned.plan.finish.quantile(SURE)
    return CorrectionPlan(planned.order, planned.sentence, min(done_at, due_at))
