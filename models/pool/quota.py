"""A quota: core-hours that a pool may take in an hour and in a day, used as they are needed, the floors' kept back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from configs.bounds import DAY_S, HOUR_S
from configs.pool import Quota
from models.pool.wants import PoolMemory, Want

SPENT_S = 300.0
"""Seconds in which what is left beyond the floors may be spent, at the rate of now: so the end comes step by step."""


def busy_cores(memory: PoolMemory, wants: Mapping[str, Want]) -> float:
    """Return the cores of a pool that are in use, those of replays among them, by what its jobs said last.

    Args:
        memory: of the pool.
        wants: of its jobs that have spoken.
    """
    unheard = (one.running * one.cores for job, one in memory.held.items() if job not in wants)
    return sum(want.running * want.cores for want in wants.values()) + sum(unheard)


def add_use(memory: PoolMemory, busy_cores: float, now: float) -> PoolMemory:
    """Return the memory with the core-seconds since the last division; an hour and a day begin with nothing.

    Args:
        memory: of the pool.
        busy_cores: that its jobs' executors have.
        now: epoch seconds.
    """
    if memory.at is None:
        return replace(memory, at=now)
    used = busy_cores * max(now - memory.at, 0.0)
    hour_s, day_s = (
        (0.0 if now // span > memory.at // span else so_far) + min(used, busy_cores * (now % span))
        for span, so_far in ((HOUR_S, memory.hour_s), (DAY_S, memory.day_s))
    )
    return replace(memory, at=now, hour_s=hour_s, day_s=day_s)


def cores_left(cores: int, quota: Quota, memory: PoolMemory, kept_back: float, now: float) -> float:
    """Return the cores that may run now, at most those of the pool.

    All while more is left than what is kept back until the end of the hour and the day; then that alone.

    Args:
        cores: of the pool.
        quota: of it.
        memory: with what the hour and the day have taken.
        kept_back: cores to which the jobs have a right at all times; they are left in any case.
        now: epoch seconds.
    """
    left = float(cores)
    spans = (HOUR_S, quota.hourly_core_hours, memory.hour_s), (DAY_S, quota.daily_core_hours, memory.day_s)
    for span, stated, used in spans:
        if stated is not None:
            spare = stated * HOUR_S - used - kept_back * (span - now % span)
            left = min(left, kept_back + max(spare, 0.0) / SPENT_S)
    return left
