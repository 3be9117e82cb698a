"""How fast replays may read: beside live records as was decided, in an application of their own as fast as they can."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence

from tidecast.job import Job, OrderedJob
from tidecast.orders import ReplayOrder
from tidecast.replay.aside import MetReplay
from tidecast.spark.shares import water_fill

CHANCE_S = 20.0
"""Seconds that an autoscaler that is heard has for deciding a rate, before what was ordered counts."""
LEAST_WEIGHT = 1e-9
"""Of an order that may weigh nothing: it has what all others leave."""
AHEAD = 1.25
"""Rate of a replay in an application of its own, in units of what its newest batch came to: its batches grow, up to
those that take some ten seconds."""
FIRST_RPS = 1.0
"""Rate before its first batch, which reads as little as a batch is run for."""


def rates_of(job: OrderedJob, orders: Sequence[ReplayOrder], met: Mapping[str, MetReplay]) -> dict[str, float]:
    """Return the records per wall second of each order: as was decided, or of its own application's.

    Args:
        job: that the orders are of, an agent's or that of an application of the replays' own.
        orders: that are to be read.
        met: what is known of each, by id.
    """
    if isinstance(job, Job):
        return decided_rates(job, orders, met)
    queries = {one.id: met[one.id].query for one in orders}
    return own_rates(orders, {name: query.served_rps for name, query in queries.items() if query is not None})


def decided_rates(job: OrderedJob, orders: Sequence[ReplayOrder], met: Mapping[str, MetReplay]) -> dict[str, float]:
    """Return the records per wall second of each order beside live records.

    Of the rate that was decided each has a part by its weight; what one may not use is the others'. One that has no
    query and may not begin has none: the rate was decided for the others. Where nobody decides, it is what was ordered.

    Args:
        job: that the orders are of.
        orders: that are to be read.
        met: what is known of each, by id.
    """
    share = [one for one in orders if job.may_begin is None or one.id in job.may_begin or met[one.id].query]
    most = [math.inf if order.most_rps is None else order.most_rps for order in share]
    weights = [max(order.weight, LEAST_WEIGHT) for order in share]
    rps = dict(zip((one.id for one in share), water_fill(job.replay_rps or 0.0, most, weights), strict=True))
    return {order.id: _rate(job, order, rps.get(order.id, 0.0), met[order.id].begun_s) for order in orders}


def own_rates(orders: Sequence[ReplayOrder], served_rps: Mapping[str, float | None]) -> dict[str, float]:
    """Return the records per wall second of each order in an application that has nothing else to do.

    Args:
        orders: that are to be read.
        served_rps: what the newest batch of each came to; None before one.
    """
    reached = {order.id: served_rps.get(order.id) for order in orders}
    ahead = {name: FIRST_RPS if rps is None else AHEAD * rps for name, rps in reached.items()}
    return {one.id: ahead[one.id] if one.most_rps is None else min(ahead[one.id], one.most_rps) for one in orders}


def why_none(job: OrderedJob, rps: float) -> str:
    """Return why a replay beside live records has no rate, as far as its agent knows; "" where it has one."""
    if rps > 0:
        return ""
    if job.mode == "freeze":
        return "the agent is frozen: nobody decides a rate"
    unknown = job.replay_rps is None and job.heard
    return "the autoscaler decides no rate: it only observes, or has not decided yet" if unknown else ""


def _rate(job: OrderedJob, order: ReplayOrder, share_rps: float, begun_s: float | None) -> float:
    if job.replay_rps is None:
        waits = job.heard and (begun_s is None or time.monotonic() - begun_s < CHANCE_S)
        return 0.0 if waits or order.most_rps is None else order.most_rps
    return share_rps if job.heard else 0.0  # whoever decided and is silent does not see what live records need
