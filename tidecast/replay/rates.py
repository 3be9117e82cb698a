"""How fast replays may read: beside live records as was decided, in an application of their own as fast as they can."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Mapping, Sequence

from tidecast.job import OrderedJob
from tidecast.orders import ReplayOrder
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


def decided_rates(
    job: OrderedJob, orders: Sequence[ReplayOrder], begun: Mapping[str, float], reading: Collection[str]
) -> dict[str, float]:
    """Return the records per wall second of each order beside live records.

    Of the rate that was decided each has a part by its weight; what one may not use is the others'. One that has no
    query and may not begin has none: the rate was decided for the others. Where nobody decides, it is what was ordered.

    Args:
        job: that the orders are of.
        orders: that are to be read.
        begun: since when each has been met, seconds of a steady clock; none of those not met yet.
        reading: ids of those that have a query.
    """
    share = [one for one in orders if job.may_begin is None or one.id in job.may_begin or one.id in reading]
    most = [math.inf if order.most_rps is None else order.most_rps for order in share]
    weights = [max(order.weight, LEAST_WEIGHT) for order in share]
    rps = dict(zip((one.id for one in share), water_fill(job.replay_rps or 0.0, most, weights), strict=True))
    return {order.id: _rate(job, order, rps.get(order.id, 0.0), begun) for order in orders}


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


def _rate(job: OrderedJob, order: ReplayOrder, share_rps: float, begun: Mapping[str, float]) -> float:
    if job.replay_rps is None:
        now = time.monotonic()
        waits = job.heard and now - begun.get(order.id, now) < CHANCE_S
        return 0.0 if waits or order.most_rps is None else order.most_rps
    return share_rps if job.heard else 0.0  # whoever decided and is silent does not see what live records need
