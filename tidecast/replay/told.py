"""What is said of a job's replays: how far each is, on the topic `replays`, and on `control` that it is over."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tidecast.job import OrderedJob
from tidecast.orders import ReplayOrder, ReplayProgress, order_key, standing_order
from tidecast.replay.query import ReplayQuery
from tidecast.replay.replayable import Replayable

log = logging.getLogger("tidecast")

SAY_S = 5.0  # seconds after which an unchanged progress is said again
UNHEARD_S = 30.0
"""Seconds in which an order may come from somebody who had not heard of an end: orders are read, and one is sent."""


class ToldProgress:
    """What was said last of each replay."""

    def __init__(self, job: OrderedJob) -> None:
        """Say it of a job's replays."""
        self._job = job
        self._said: dict[str, tuple[ReplayProgress, float]] = {}

    def states(self) -> dict[str, str]:
        """Return what was last said of each replay, by its id: a state (`tidecast.orders.STATES`)."""
        return {name: said.state for name, (said, _) in self._said.items()}

    def say(
        self, order: ReplayOrder, query: ReplayQuery | None, state: str, rps: float | None, reason: str, warm: bool,
        again: bool,
    ) -> None:  # fmt: skip
        """Say how far a replay is, where that is new or was said SAY_S ago.

        Args:
            order: of it.
            query: that reads it; None: none does.
            state: as in `ReplayProgress`.
            rps: that it is admitted with.
            reason: of the state, or "".
            warm: whether a dry run has made its first batch quick.
            again: whether it is met again by itself, though it has failed.
        """
        job, now = self._job, time.time()
        measured = {} if query is None else _measured(query)
        if state == "done":
            measured["done"] = order.records
        if order.schedule and (state in ("waiting", "running") or (state == "read" and not reason)):  # it is published
            measured["executors"] = order.executors_at(job.time.at(now))
            measured["executors_soon"] = order.executors_between(job.time.at(now), job.time.at(now + order.keep_s))
        before, said_at = self._said.get(order.id, (None, 0.0))
        known = before.done if before is not None and before.ordered_at == order.wall_time else 0
        progress = ReplayProgress(
            id=order.id, job=order.job, time=round(job.time.at(now), 3), wall_time=round(now, 3),
            time_scale=job.time.scale, state=state, records=order.records, admitted_rps=rps, reason=reason,
            warm=warm, apart=order.apart, ordered_at=order.wall_time, tried_again=again,
            **{"done": known, "cost": order.cost, **measured},
        )  # fmt: skip
        told = {name: value for name, value in vars(progress).items() if name not in ("time", "wall_time")}
        same = before is not None and all(getattr(before, n) == value for n, value in told.items())
        if not same or time.monotonic() - said_at > SAY_S:
            self._said[order.id] = progress, time.monotonic()
            job.outbox.enqueue("replays", job.name, progress)


def place_orders(job: OrderedJob, orders: Sequence[ReplayOrder]) -> None:
    """Place a job's own orders, once control is read; what was ordered of them since stands, but what is over.

    Args:
        job: that places them.
        orders: those that are to stand.
    """
    for own in orders:
        known = job.orders.get(own.id)
        if not known or standing_order(known, own) is own or (own.wanted == "cancel" and known.wanted != "done"):
            job.orders[own.id] = own
            job.outbox.enqueue("control", order_key(own.job, own.id), own)


class EndedOrders:
    """Which replays of a job are over: an order of before that, which somebody sends again, is met no more."""

    def __init__(self, job: OrderedJob, replayable: Replayable | None) -> None:
        """Know what the replayable has kept; None: nothing."""
        self._job, self._replayable = job, replayable or Replayable(lambda order: None)
        self._at: dict[str, float] = {}
        self._done: dict[str, tuple[ReplayOrder, float]] = {}

    def tell(self, order: ReplayOrder, at: float, done: bool = False) -> None:
        """Keep and say that a replay is over since a wall time, later than the order's, and whether it was `done`."""
        if done and not self.is_done(order):
            self._done[order.id] = order, time.monotonic()
        over = replace(order, wanted="done", wall_time=at)
        try:
            self._replayable.ended(over)
        except Exception as error:  # what was published is published
            log.warning("%s: the end of replay %s is not kept: %s", order.job, order.id, error)
        self._at[order.id] = at
        self._job.orders[order.id] = over
        self._job.outbox.enqueue("control", order_key(order.job, order.id), over)

    def covers(self, order: ReplayOrder) -> bool:
        """Return whether an order is none of later than its replay's end; that end is then said again.

        While the agent observes it is not looked for.
        """
        if self._job.mode == "observe":
            return False
        if order.id not in self._at:
            self._at[order.id] = self._replayable.ended_at(order.id)
        if self._at[order.id] < order.wall_time:
            return False
        log.warning("%s: replay %s is over: an order of before its end came again", order.job, order.id)
        self.tell(order, self._at[order.id])
        return True

    def is_done(self, order: ReplayOrder) -> bool:
        """Return whether an order is of a replay that was said to be done, and whoever gave it had not heard so yet.

        A pause and a cancellation always are, unless the replay was ordered anew; to run on only where it comes soon.
        """
        done, at = self._done.get(order.id, (None, 0.0))
        if done is None:
            return False
        same = _read(done) == _read(order)
        late = order.then == done.then and time.monotonic() - at < UNHEARD_S
        if same and (order.wanted != "run" or late):
            return True
        del self._done[order.id]
        return False


def _measured(query: ReplayQuery) -> dict[str, Any]:
    """What a query tells of itself; nothing where it cannot: that it has failed is said all the same."""
    try:
        return query.measured()
    except Exception:
        log.debug("a replay's progress cannot be measured", exc_info=True)
        return {}


def _read(order: ReplayOrder) -> tuple[Any, ...]:
    return order.starts, order.ends, order.begin_ms, order.end_ms, order.table
