"""What there is to divide, and who has a right to which part of it before anything is: stock is taken of a pool."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

from configs.pool import ClusterPool
from models.pool.quota import cores_left
from models.pool.shares import JobClaim, PoolSize
from models.pool.wants import HeldGrant, PoolMemory, Want, late_price

WITHIN_S = 60.0
"""Seconds within which changes of a job's grant are counted."""
SILENT_S = 30.0
"""Seconds after which a job that says nothing is taken to need what it has."""


class PoolStock(NamedTuple):
    """A pool before it is divided.

    Attributes:
        whole: that there is.
        wants: of its jobs, by job; those that keep what they have need that, now and later, and ask for nothing else.
        claims: likewise.
        held: what each was granted, and has.
        keeps: which jobs keep what they have, with the code of the reason.
    """

    whole: PoolSize
    wants: Mapping[str, Want]
    claims: Mapping[str, JobClaim]
    held: Mapping[str, HeldGrant]
    keeps: Mapping[str, str]


def take_stock(pool: ClusterPool, memory: PoolMemory, wants: Mapping[str, Want], now: float) -> PoolStock:
    """Return what there is to divide, and who claims how much of it.

    Who is frozen, or has not been heard for `SILENT_S`, keeps what it has, however small the pool has become; a job
    that has not spoken at all is known by what it was granted.

    Args:
        pool: as its file states it.
        memory: of the last division, with the use until now.
        wants: of those of the pool's jobs that have spoken.
        now: epoch seconds.
    """
    held = {job: _lately(memory, want, now) for job, want in wants.items()}
    unheard = {job: one for job, one in memory.held.items() if job not in wants and job in pool.jobs}
    wants, held = {**wants, **{job: _unheard(job, one) for job, one in unheard.items()}}, {**held, **unheard}
    keeps = {job: why for job, want in wants.items() if (why := _keeps(pool, want, now))}
    for job in keeps:
        occupied = held[job].occupied
        wants[job] = replace(wants[job], executors=occupied, needed=0, least=occupied, ahead=(), replay=0)
    claims = {job: _claim(pool, want, held[job]) for job, want in wants.items()}
    absent = (memory.floors.get(job, 0) for job in pool.jobs if job not in claims)  # they may start at any time
    kept_back = sum(claim.floor * claim.size.cores for claim in claims.values()) + sum(absent)
    whole = PoolSize(cores_left(pool.cores, pool.quota, memory, kept_back, now), pool.memory_gb or 0.0)
    return PoolStock(whole, wants, claims, held, keeps)


def _lately(memory: PoolMemory, want: Want, now: float) -> HeldGrant:
    if (held := memory.held.get(want.job)) is None:
        return HeldGrant(want.live, (), want.cores, want.running - want.live, want.running)
    changed = tuple(at for at in held.changed if now - WITHIN_S < at <= now)
    seen_at = want.at if want.seen_at is None else want.seen_at
    # What was seen before it was told to give up some does not tell that it has.
    running = want.running if seen_at > memory.cut_at.get(want.job, -math.inf) else max(want.running, held.running)
    return held._replace(changed=changed, cores=want.cores, running=running)


def _unheard(job: str, held: HeldGrant) -> Want:
    return Want(job, -math.inf, held.occupied, held.running, held.cores, 0, (0.0,), 1.0)


def _keeps(pool: ClusterPool, want: Want, now: float) -> str:
    if pool.is_frozen(want.job, datetime.fromtimestamp(now, UTC)):
        return "frozen"
    return "silent" if now - want.at > SILENT_S else ""


def _claim(pool: ClusterPool, want: Want, held: HeldGrant) -> JobClaim:
    stated = pool.jobs[want.job]
    price = late_price(stated.weight, want.budget_left)
    size = PoolSize(want.cores, stated.memory_gb if pool.memory_gb is not None else 0.0)
    floor, least = max(stated.floor, want.least), min(want.least, want.executors)
    return JobClaim(size, floor, want.wanted, price, want.late_s, held.executors, least)
