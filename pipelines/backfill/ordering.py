"""Backfills as they are ordered: a range found, a deadline planned, and what cannot be ordered refused by name."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo

from configs.errors import SettingsError
from configs.settings import Settings
from models.backfill.deadline import name_moment, read_deadline, read_moment
from models.backfill.given import BackfillPlanError
from models.backfill.live.apart import plan_order_apart, why_not_apart, with_apart
from models.backfill.live.ordered import JobNow, earliest_s, overlapping, plan_order, with_plan
from models.backfill.live.task_target import task_target_s
from models.backfill.plan import BackfillPlan, DeadlineError
from models.backfill.text import apart_sentence, plan_sentence, refusal_sentence
from pipelines.backfill.asked import NotHeldError
from pipelines.backfill.further import reaching
from pipelines.backfill.lateness import read_lateness
from pipelines.backfill.orders import OrderError, change_order, read_orders
from pipelines.backfill.stated import read_stated, tables_of, zone_of
from pipelines.backfill.tables import find_range, table_for
from pipelines.backfill.watch import read_now
from pipelines.kafka.clocks import read_clock
from tidecast.control import WALL
from tidecast.messages import MessageError, decode, encode
from tidecast.orders import ReplayOrder, later_than

UNCOUNTED = "the copy of its range that is made first is not counted: give a --by that is so much earlier"
"""What the plan of a range of a table says."""


class AskedRange(NamedTuple):
    """A range of a job's own time that is to be read again.

    Attributes:
        job: a running job whose agent was attached with replay=.
        begin, end: first moment and the one after it, ISO 8601; without an offset in the job's time zone.
        topics: all that the job reads, as the broker has them, one by one or with commas; none: `events` of the shipped
            jobs, with the prefix.
        late_s: how late a record may have been produced, wall seconds; None: as late as the job takes it.
        rps: records per wall second at most; None: as live records leave it.
        name: of the replay; None: after the range, and `mark`, by which whoever orders it knows it again; "": none.
        compare: whether it is compared and then waits, in place of being published.
        table: a table of the topics' records, to read them from; None: the topics themselves.
        weight: of its part of what is left over, among replays that run at once; None: 1, or what its deadline needs.
    """

    job: str
    begin: str
    end: str
    topics: tuple[str, ...] = ()
    late_s: float | None = None
    rps: float | None = None
    name: str | None = None
    compare: bool = False
    table: Path | None = None
    weight: float | None = None
    mark: str = ""


class PlannedOrder(NamedTuple):
    """An order with a deadline, as it is to be sent.

    Attributes:
        order: with its schedule.
        plan: that the schedule is of.
        sentence: it in words.
    """

    order: ReplayOrder
    plan: BackfillPlan
    sentence: str


class CheapestOrder(NamedTuple):
    """An order with a deadline where it is the cheapest: beside live records, or in an application of its own.

    Attributes:
        order: with its schedule, or with the executors that it has `apart`.
        sentence: its plan in words.
        hours: executor-hours that it is expected to cost.
    """

    order: ReplayOrder
    sentence: str
    hours: float


def make_order(settings: Settings, asked: AskedRange) -> ReplayOrder:
    """Find what a range comes to, and return its order; nothing is sent (`orders.send_order`).

    Raises:
        SettingsError: no moment can be read; the job's contract is wrong.
        RangeError: the range is empty, in the future, not final, too short for late records, or not to be had.
        JavaError, JarsError: a table is named, and Spark cannot be started.
        OrderError: a replay of this name stands, or one of a part of this range; a name or a bound is none.
        BrokerError, ValueError: the broker cannot be reached; an unknown security option.
    """
    contract, clock = read_stated(settings, asked.job), read_clock(settings.kafka, asked.job) or WALL
    zone = ZoneInfo(zone_of(contract, settings))
    moments = [_moment(option, text, zone) for option, text in (("--from", asked.begin), ("--to", asked.end))]
    since, until = [clock.wall_at(moment) for moment in moments]
    table = asked.table.resolve() if asked.table else None
    span = read_lateness(settings.kafka, asked.job, clock).range_of(since, until, asked.late_s, time.time())
    topics = list(dict.fromkeys(" ".join(asked.topics or [settings.kafka.topic("events")]).replace(",", " ").split()))
    try:
        found = find_range(settings.kafka, topics, span, table)
    except NotHeldError as error:
        orders = read_orders(settings.kafka, asked.job)
        raise NotHeldError(f"{error}{table_for(orders, topics, moments[0], tables_of(contract))}") from None
    name = asked.name or "-".join(filter(None, [*(name_moment(moment, zone) for moment in moments), asked.mark]))
    known = read_orders(settings.kafka, asked.job)
    order = ReplayOrder(
        name, asked.job, later_than(known.get(name), time.time()), "run", found.starts, found.ends, most_rps=asked.rps,
        begin_ms=int(moments[0] * 1000), end_ms=int(moments[1] * 1000),
        then="compare" if asked.compare else "publish", table=str(table) if table else "",
        task_s=task_target_s(contract), weight=1.0 if asked.weight is None else asked.weight,
        weighted=asked.weight is not None,
    )  # fmt: skip
    try:
        order = decode(ReplayOrder, encode(order))
    except MessageError as error:
        raise OrderError(f"{error}") from None
    refuse_second(order, known)
    return order


def refuse_second(order: ReplayOrder, known: dict[str, ReplayOrder]) -> None:
    """Refuse an order whose name stands, or one of a range of which another one that stands has a part.

    Raises:
        OrderError: as said.
    """
    job = order.job
    if order.id in known and known[order.id].wanted != "done":
        raise OrderError(
            f"replay {order.id!r} of job {job!r} is ordered already: see `tidecast backfill {job}`, or end it first "
            f"(`tidecast backfill {job} --cancel {order.id}`), also where it has failed."
        )
    if (other := overlapping(order, known.values())) is not None:
        raise OrderError(
            f"replay {other.id!r} of job {job!r} has a part of the range of {order.id!r}, and two may not correct one "
            f"result: wait until it is over, or end it (`tidecast backfill {job} --cancel {other.id}`)."
        )


def plan_by(settings: Settings, order: ReplayOrder, by: str, sure: float) -> CheapestOrder:
    """Plan an order so that it is done and published by a time, where that is the cheapest; nothing is sent.

    Args:
        settings: of the job's stack.
        order: of `make_order`.
        by: "07:00" or a date, in the job's own time zone and time.
        sure: probability of being done by then, between 0 and 1.

    Raises:
        BackfillPlanError: the probability is none; the deadline is past, before the range's end, or beyond what can be
            forecast; there is no forecast; nobody decides a rate for replays; or it cannot be met, with what can.
        SettingsError: the job has no contract.
        BrokerError, ValueError: a topic cannot be read; an unknown security option.
    """
    moment = read_now(settings, order.job)
    return plan_cheapest(order, by, sure, zone_of(moment.known.contract, settings), moment)


def plan_cheapest(order: ReplayOrder, by: str, sure: float, zone: str, moment: JobNow) -> CheapestOrder:
    """Plan an order beside live records, and in an application of its own where its contract has one; take the cheaper.

    Raises:
        BackfillPlanError: as `plan_by`.
    """
    job_now, speed = moment.clock.at(moment.now_s), moment.clock.scale
    due, remark = read_due(order, by, sure, zone, job_now)
    moment = reaching(moment, moment.read_s(due))
    apart = plan_order_apart(due, moment)
    try:
        beside = plan_due(due, zone, moment)
    except BackfillPlanError as error:
        if apart is None:
            why = why_not_apart(due, moment, zone)
            raise BackfillPlanError(". ".join(filter(None, [f"{error}", why, remark]))) from None
        planned, hours = with_apart(due, apart, moment), apart.hours
        sentence = apart_sentence(apart, sure, job_now, zone, speed)
    else:
        planned, hours = beside.order, beside.plan.schedule.hours
        sentence = plan_sentence(beside.plan, job_now, zone, speed, apart)
        if apart is not None and apart.hours < hours:
            planned, hours = with_apart(due, apart, moment), apart.hours
            sentence = apart_sentence(apart, sure, job_now, zone, speed, beside.plan)
    copied = UNCOUNTED if order.table else ""
    return CheapestOrder(planned, "; ".join(filter(None, [sentence, copied, remark])), hours)


def read_due(order: ReplayOrder, by: str, sure: float, zone: str, job_now: float) -> tuple[ReplayOrder, str]:
    """Read the deadline of an order; `job_now` is the job's own time, epoch seconds.

    Returns:
        The order with its deadline in that time; and why it is this one, where the clock skips or repeats it, else "".

    Raises:
        BackfillPlanError: the probability or the deadline is none.
    """
    if not 0 < sure < 1:
        raise BackfillPlanError(f"--sure {sure:g}: a probability between 0 and 1 is expected, such as 0.9")
    due = read_deadline(by, job_now, zone)
    if order.end_ms is not None and due.epoch_s * 1000 < order.end_ms:
        end = datetime.fromtimestamp(order.end_ms / 1000, ZoneInfo(zone))
        raise BackfillPlanError(
            f"--by {due.local.isoformat()} is before --to {end.isoformat()}: what happens until then cannot be done by "
            "then; state a later deadline"
        )
    return replace(order, by=due.epoch_s, sure=sure), due.remark


def plan_due(due: ReplayOrder, zone: str, moment: JobNow) -> PlannedOrder:
    """Plan an order that holds its deadline, from what is known of its job at a moment; `zone` is for the sentence.

    Raises:
        BackfillPlanError: as `plan_by`.
    """
    job_now, speed = moment.clock.at(moment.now_s), moment.clock.scale
    moment = reaching(moment, moment.read_s(due))
    try:
        plan = plan_order(due, moment)
    except DeadlineError as error:
        told = refusal_sentence(error, earliest_s(due, moment), job_now, zone, speed)
        raise BackfillPlanError(told) from None
    return PlannedOrder(with_plan(due, plan, moment), plan, plan_sentence(plan, job_now, zone, speed))


def publish_order(settings: Settings, job: str, name: str) -> ReplayOrder:
    """Order that a compared replay is to be published, and return the order.

    Raises:
        OrderError: the job has no such replay, or it is over.
        BrokerError, ValueError: the broker cannot be reached; an unknown security option.
    """
    return change_order(settings.kafka, job, name, "run", then="publish")


def _moment(option: str, text: str, zone: ZoneInfo) -> float:
    try:
        return read_moment(text, zone)
    except BackfillPlanError as error:
        raise SettingsError(f"{option} {text!r}: {error}") from None
