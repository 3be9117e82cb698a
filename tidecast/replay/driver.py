"""The replays of one job: each order is met by a query of its own, beside the live one or in another application."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from tidecast.job import Job, OrderedJob
from tidecast.orders import ReplayOrder, later_than
from tidecast.replay.aside import Aside, MetReplay, enter_pool
from tidecast.replay.dry_run import DryRun
from tidecast.replay.pace import rows_per_task
from tidecast.replay.pauses import LivePauses
from tidecast.replay.query import ReplayQuery
from tidecast.replay.rates import rates_of, why_none
from tidecast.replay.replayable import HeldElsewhereError, Replayable, check_order
from tidecast.replay.told import EndedOrders, ToldProgress, place_orders
from tidecast.spark.locality import StateWait

log = logging.getLogger("tidecast")

POLL_S = 0.25  # seconds between two polls
AGAIN_S = 20.0
"""Seconds between two publications of a replay of whose range live may still tell windows, between two looks at whether
another one has let go of it, and before a gap that failed is tried again for the first time."""
_TOO_LATE = "it was published before it could be cancelled"


class Replays:
    """Meets the orders of one job; call `poll` every POLL_S, always in the same thread."""

    def __init__(self, job: OrderedJob, replayable: Replayable | None, live: Any = None) -> None:
        """Meet the orders of a job.

        Args:
            job: its state. Where it is not that of an agent (`Job`), this is an application of the replays' own, which
                meets the orders that are to have one; else all others are met.
            replayable: how ranges of it are read again; None: orders are refused.
            live: its query, between whose batches those of replays begin; None: at any time.
        """
        self._job, self._replayable, self._apart = job, replayable, not isinstance(job, Job)
        self._pauses = LivePauses(live)
        self._met: defaultdict[str, MetReplay] = defaultdict(MetReplay)
        self._ended = EndedOrders(job, replayable)
        self._told = ToldProgress(job)
        self._own = () if replayable is None else replayable.orders
        self._free = True
        self._wait = StateWait()
        dry_run = None if replayable is None else replayable.dry_run
        self._dry_run = DryRun(job, dry_run, enter_pool) if dry_run is not None and isinstance(job, Job) else None

    def poll(self) -> None:
        """Start, pace, pause, publish and cancel as ordered; what fails ends that replay alone, and is said.

        Raises:
            py4j.protocol.Py4JError: Spark's JVM does not answer.
        """
        if self._own and self._job.mode != "observe":  # only then control is read
            place_orders(self._job, self._own)
            self._own = ()
        live = self._standing()
        if self._dry_run is not None and self._dry_run.going_on(bool(live), self._pauses.may_begin):
            return
        self._free = not self._reading() or self._pauses.may_begin()
        wanted = [one for one in live if one.wanted == "run" and self._job.mode != "observe"]
        running = [one for one in wanted if not (self._met[one.id].needs_no_rate or self._met[one.id].waits(one))]
        rates = rates_of(self._job, running, self._met)
        for order in live:
            met = self._met[order.id]
            if met.waits(order):
                self._say(order, None, met.state("waiting"), None, met.held[1])
                continue
            try:
                if not self._ended.covers(order):
                    self._meet(order, met, rates.get(order.id, 0.0))
            except HeldElsewhereError as error:
                met.hold(order, AGAIN_S, f"{error}")
            except Exception as error:
                self._fail(order, met, f"{error}"[:500])
        self._wait.hold(any(m.closing for m in self._met.values()) or any(self._met[one.id].query for one in running))

    def waiting(self) -> list[str]:
        """Return the orders that stand and are waited for: not those that are paused, or compared and not published."""
        told, kept = self.states(), ("compare", "compared")
        return [one.id for one in self._standing() if one.wanted != "pause" and (one.then, told.get(one.id)) != kept]

    def states(self) -> dict[str, str]:
        """Return what was last said of each replay, by its id: a state (`tidecast.orders.STATES`)."""
        return self._told.states()

    def close(self) -> None:
        """Stop the replays' queries, all of them though one fails; orders are gone on with by the job's next agent."""
        with ExitStack() as ends:  # the last one first
            if self._replayable is not None:
                ends.callback(self._replayable.turn.leave, self._replayable.close, self)
            for starting in [met.starting for met in self._met.values() if met.starting]:
                ends.callback(starting.end)
            ends.callback(self._wait.hold, False)
            for closing in [met.closing for met in self._met.values() if met.closing]:
                ends.callback(closing.wait)
            for query in self._reading().values():
                ends.callback(query.stop)

    def _standing(self) -> list[ReplayOrder]:
        """The orders that this application is to meet, and that are not over."""
        mine = [order for order in list(self._job.orders.values()) if (order.apart is not None) == self._apart]
        return [one for one in mine if one.wanted != "done" and self._met[one.id].over < one.wall_time]

    def _reading(self) -> dict[str, ReplayQuery]:
        """The queries, by replay."""
        return {name: met.query for name, met in self._met.items() if met.query is not None}

    def _meet(self, order: ReplayOrder, met: MetReplay, rps: float) -> None:
        query = met.query
        if met.closing is not None:
            self._await(order, met, met.closing)
        elif met.starting is not None:
            self._await_start(order, met, met.starting)
        elif query is None and self._ended.is_done(order):
            self._end(order, "done", _TOO_LATE if order.wanted == "cancel" else "")
        elif order.wanted == "cancel":
            self._cancel(order, met)
        elif self._replayable is None:
            self._end(order, "failed", "the job was attached without replay=; give attach a Replayable and restart it")
        elif self._job.mode == "observe":
            if query is not None:
                query.admit(0.0)
            self._say(order, query, "waiting", None, "the agent observes: a replay changes what the application does")
        elif query is None and order.wanted == "run":
            self._begin(order, met, rps, self._replayable)
        elif query is None:
            self._say(order, None, "paused", 0.0, "as ordered, before its first batch")
        elif query.poll():
            query.stop()
            if order.wanted == "pause":
                self._say(order, query, "paused", 0.0, "as ordered; all of it is read")
            else:
                self._close(order, met, self._replayable)
        elif order.wanted == "pause":
            query.admit(0.0)
            self._say(order, query, "paused", 0.0, "as ordered")
        else:
            query.admit(rps, self._free, self._job.batch_s)
            state = "running" if rps > 0 and query.newest is not None else "waiting"
            self._say(order, query, state, rps, why_none(self._job, rps))

    def _cancel(self, order: ReplayOrder, met: MetReplay) -> None:
        """Remove what a replay wrote, in whatever mode; until control is read a later order of it may come."""
        if self._job.mode == "observe" and not self._job.orders_read:
            return
        if met.query is not None:
            met.query.stop()
        met.compared = None
        left: object = "nothing that an earlier run of it wrote is removed: the job was attached without replay="
        if self._replayable is not None:
            self._replayable.turn.take(self)
            left = self._replayable.cancel(order)  # anything, where a user's own returns what it came upon
        self._end(order, "cancelled", f"as ordered; {left}" if left and isinstance(left, str) else "as ordered")

    def _close(self, order: ReplayOrder, met: MetReplay, replayable: Replayable) -> None:
        """All of it is read: begin what follows; one that was compared waits for an order to publish it."""
        why, rests = met.unsettled[1], met.rests(order)
        if order.then == "publish":
            met.compared = None
        state = met.state("read") if rests else "read"
        self._say(order, met.query, state if met.compared is None else "compared", None, met.compared or why)
        act = replayable.publish if order.then == "publish" else replayable.compare
        if act is not None and met.compared is None and not rests:
            met.closing = Aside(order, act, order.then)

    def _await(self, order: ReplayOrder, met: MetReplay, closing: Aside) -> None:
        """Go on with a replay whose publication or comparison has ended; one cancelled meanwhile waits for that."""
        if closing.going_on:
            self._say(order, met.query, "read", None, met.unsettled[1])
            return
        if order.wanted == "cancel" and (closing.failed or closing.order.then == "compare"):
            met.closing = None
            return  # the next poll cancels it
        text = closing.result() or ""
        met.closing, met.unsettled, met.failures = None, (0.0, "", 0.0), 0
        if closing.order.then == "compare":
            met.compared = text
        elif text:
            met.unsettled = time.monotonic() + AGAIN_S, text, order.wall_time
        else:
            self._end(order, "done", _TOO_LATE if order.wanted == "cancel" else "")

    def _begin(self, order: ReplayOrder, met: MetReplay, rps: float, replayable: Replayable) -> None:
        """Start an order's query once it has a rate and live's first batch is over: those are the dearest of both."""
        check_order(order, replayable, self._job.topics)
        met.begun_s = met.begun_s or time.monotonic()
        if rps <= 0 or not self._pauses.is_first_over():
            self._say(order, None, "waiting", rps, why_none(self._job, rps))
            return
        check_order(order, replayable, self._job.topics or self._pauses.topics())  # a pattern says none before that
        replayable.turn.take(self)
        if order.table:
            met.starting = Aside(order, replayable.start, "start")  # its range is copied first
            return
        enter_pool()
        if not self._apart:
            order = replace(order, task_rows=rows_per_task(order.task_s, self._job.record_s))
            for query in [one.query for one in self._met.values() if one.query and not one.needs_no_rate]:
                query.pause()  # nobody paces it until this one is started
            self._free = False  # nobody looks meanwhile whether live batches leave the executors free
        self._take(order, met, replayable.start(order))

    def _await_start(self, order: ReplayOrder, met: MetReplay, starting: Aside) -> None:
        """Take a query that has been started; one that is cancelled meanwhile is cancelled once that has ended."""
        if starting.going_on:
            if order.wanted == "cancel":
                starting.cancel_jobs()
            self._say(order, None, "waiting", None, "its range is copied")
            return
        met.starting = None
        if order.wanted != "cancel" or not starting.failed:  # else the next poll cancels it
            self._take(starting.order, met, starting.result())

    def _take(self, order: ReplayOrder, met: MetReplay, query: Any) -> None:
        log.info("%s: replay %s of %d records begins", self._job.name, order.id, order.records)
        try:
            met.take(ReplayQuery(order, query, self._dry_run is not None and self._dry_run.done))
        except BaseException:
            query.stop()  # nobody would pace it
            raise

    def _fail(self, order: ReplayOrder, met: MetReplay, error: str) -> None:
        """End it; a gap, which nobody has ordered and nobody would resume, is tried again."""
        log.exception("%s: replay %s failed", self._job.name, order.id)
        if order.holds is None:
            self._end(order, "failed", error)
        else:
            met.try_again(order, error, AGAIN_S)

    def _end(self, order: ReplayOrder, state: str, reason: str) -> None:
        """Say how it ended; an order of a later time is met again, from the query's checkpoint."""
        met = self._met[order.id]
        query, met.over = met.end_query(), order.wall_time
        self._say(order, query, state, None, reason)
        if state in ("done", "cancelled"):
            self._ended.tell(order, later_than(order, time.time()), state == "done")  # its clock may be another
        log.info("%s: replay %s is %s%s", self._job.name, order.id, state, f": {reason}" if reason else "")

    def _say(self, order: ReplayOrder, query: ReplayQuery | None, state: str, rps: float | None, reason: str) -> None:
        warm, stands = self._dry_run is not None and self._dry_run.done, self._met[order.id].over < order.wall_time
        self._told.say(order, query, state, rps, reason, warm, state == "failed" and stands)
