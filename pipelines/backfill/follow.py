"""An order followed to its end: its progress, when it will be done, and its schedule planned anew as things come."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from configs.settings import Settings
from models.backfill.given import BackfillPlanError
from models.backfill.live.known import grid_until
from models.backfill.live.ordered import JobNow, look_again, with_plan
from models.backfill.replan import Replanned
from models.backfill.text import finish_words
from pipelines.backfill.application import ENDED, refuse_ended, runs_here
from pipelines.backfill.further import reaching
from pipelines.backfill.orders import SILENT_S, ended_before, follow_progress, is_over, send_order
from pipelines.backfill.stated import zone_of
from pipelines.backfill.watch import JobWatch
from pipelines.html.numbers import number_of
from tidecast.orders import ReplayOrder, ReplayProgress, later_than, standing_order

POLL_S = 0.5
GONE_S = 600.0
"""Seconds without a word after which an application that was never seen on this computer is looked for: until then it
may start elsewhere."""
LEAST_LOOK_S, MOST_LOOK_S = 2.0, 300.0
"""Bounds of the seconds between two looks at a plan, which are a step of it."""


class FollowedOrder(NamedTuple):
    """What is new of an order.

    Attributes:
        said: by the job's agent; None where nothing has been heard for 30 s, or something else is new.
        finish: when it is done, in words, by the newest look; "" without a deadline.
        note: what has changed in the plan, or why it could not be looked at; "" for nothing.
        silent: whether nothing has been heard of the job's agent, or of the application that reads it `apart`.
        apart: whether that is one of its own.
    """

    said: ReplayProgress | None
    finish: str = ""
    note: str = ""
    silent: bool = False
    apart: bool = False


def follow_order(settings: Settings, order: ReplayOrder) -> Iterator[FollowedOrder]:
    """Return what is new of an order until it is over; where it has a deadline its plan is looked at again and again.

    A schedule that is about as sure as was asked for stays; else a new one is sent as a newer order, which yields to
    what anybody has ordered meanwhile. Several who follow one order do no harm: they look at the same things.

    Args:
        settings: of the job's stack.
        order: as it was sent.

    Raises:
        SettingsError: an order with a deadline of a job without a contract.
        ApplicationEndedError: what reads it apart has ended without a last word.
        BrokerError, ValueError: a topic cannot be followed; an unknown security option.
    """
    if order.apart is not None:  # nothing of its plan can be changed
        return _follow_apart(settings, order)
    return _follow_unplanned(settings, order) if order.by is None else _follow_planned(settings, order)


def _follow_unplanned(settings: Settings, order: ReplayOrder) -> Iterator[FollowedOrder]:
    for said in follow_progress(settings.kafka, order):
        yield FollowedOrder(said, silent=said is None)


def _follow_apart(settings: Settings, order: ReplayOrder) -> Iterator[FollowedOrder]:
    heard, seen, rests = time.monotonic(), runs_here(settings, order), False
    for said in follow_progress(settings.kafka, order):
        if said is not None:
            heard, seen = time.monotonic(), seen and said.state not in ENDED  # then the next one may be elsewhere
        else:
            silent_s = time.monotonic() - heard
            rests = refuse_ended(settings, order, silent_s, starts=not seen and silent_s <= GONE_S)
            if rests:  # once it is resumed, that may be elsewhere, and it has as long to start as at first
                heard, seen = time.monotonic(), False
            else:
                seen = seen or runs_here(settings, order)
        if said is not None or not rests:  # its application has ended by that
            yield FollowedOrder(said, silent=said is None, apart=True)


def _follow_planned(settings: Settings, order: ReplayOrder) -> Iterator[FollowedOrder]:
    heard, looks = time.monotonic(), PlanLooks(settings, order)
    with JobWatch(settings, order.job) as watch:
        before = watch.progress.get(order.id)
        if before is not None and before.answers(order):
            yield FollowedOrder(before)
            if is_over(before, order):
                return
        while True:
            for said in watch.poll(POLL_S):
                if said.id != order.id or not said.answers(order):
                    continue
                heard = time.monotonic()
                yield FollowedOrder(said, looks.finish)
                if is_over(said, watch.orders.get(order.id, order)):
                    return
            if (note := looks.look(watch)) is not None:
                yield FollowedOrder(None, looks.finish, note)
            if time.monotonic() - heard > SILENT_S:
                heard, last = time.monotonic(), watch.progress.get(order.id)
                if ended_before(last, watch.orders.get(order.id)):
                    yield FollowedOrder(last, looks.finish)
                    return
                yield FollowedOrder(None, looks.finish, silent=True)


class PlanLooks:
    """Looks at one order's plan whenever it is due.

    Attributes:
        finish: when it is done, in words, by the newest look; "" before one, and where that planned nothing.
    """

    def __init__(self, settings: Settings, order: ReplayOrder) -> None:
        self._settings, self._order = settings, order
        self.finish = ""
        self._due, self._trouble, self._lost = 0.0, "", ""

    def look(self, watch: JobWatch) -> str | None:
        """Look if it is time, and send a new schedule if there is one; returns what there is to say, or None."""
        if time.monotonic() < self._due:
            return None
        moment = watch.now()
        self._order = standing_order(moment.orders.get(self._order.id, self._order), self._order)
        self._due = time.monotonic() + LEAST_LOOK_S
        try:
            found = self._looked(moment)
        except BackfillPlanError as error:
            told, self._trouble, self.finish = self._trouble, str(error), ""
            return None if told == self._trouble else f"the schedule stays as it is: {error}"
        self._trouble = ""
        if found is None:
            self.finish = ""
            return None
        plan, clock = found.plan, moment.clock
        by_s, job_now = moment.by_s(self._order), clock.at(moment.now_s)
        zone = zone_of(moment.known.contract, self._settings)
        self.finish = finish_words(plan.finish, by_s, job_now, zone, clock.scale)
        step_s = grid_until(moment.known, moment.read_s(self._order)).step_s
        self._due = time.monotonic() + min(max(step_s, LEAST_LOOK_S), MOST_LOOK_S)
        lost = "" if found.attainable else "the probability asked for cannot be had any more"
        told, self._lost = self._lost, lost
        if not found.changed:
            return f"the schedule stays as it is: {lost}" if lost and not told else None
        # Just later than the order that was looked at: whatever was ordered meanwhile is later, and holds.
        at = later_than(self._order, self._order.wall_time)
        self._order = replace(with_plan(self._order, plan, moment), wall_time=at)
        send_order(self._settings.kafka, self._order)
        less = "" if found.kept_chance < plan.sure else " with less"
        kept = f"planned anew{less}, as its deadline would be kept with {100 * found.kept_chance:.0f} %"
        now = f"{number_of(int(plan.extra[0]), 'executor')} more from now on"
        return f"{kept}: {now}" + (f"; {lost}" if lost else "")

    def _looked(self, moment: JobNow) -> Replanned | None:
        runs = moment.runs(self._order)
        if runs and moment.by_s(self._order) <= 0:
            raise BackfillPlanError("its deadline has passed")
        if not runs or moment.read_s(self._order) <= 0:
            return None
        moment = moment._replace(orders={**moment.orders, self._order.id: self._order})
        return look_again(self._order, reaching(moment, moment.read_s(self._order)))
