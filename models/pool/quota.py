"""What a quota leaves of a pool: the cores with which the hour and the day end within it."""

from __future__ import annotations

from configs.pool import Quota
from models.pool.wants import PoolMemory

HOUR_S, DAY_S = 3600.0, 86_400.0


def add_use(memory: PoolMemory, busy_cores: float, now: float) -> PoolMemory:
    """Return the memory with the core-seconds since the last division; an hour and a day begin with nothing.

    Args:
        memory: of the pool.
        busy_cores: that its jobs' executors have.
        now: epoch seconds.
    """
    if memory.at is None:
        return PoolMemory(memory.held, now)
    used = busy_cores * max(now - memory.at, 0.0)
    hour_s, day_s = (
        (0.0 if now // span > memory.at // span else so_far) + min(used, busy_cores * (now % span))
        for span, so_far in ((HOUR_S, memory.hour_s), (DAY_S, memory.day_s))
    )
    return PoolMemory(memory.held, now, hour_s, day_s)


def cores_left(cores: int, quota: Quota, memory: PoolMemory, now: float) -> float:
    """Return the cores that may run until the end of the hour and the day, at most those of the pool.

    Args:
        cores: of the pool.
        quota: of it.
        memory: with what the hour and the day have taken.
        now: epoch seconds.
    """
    left = float(cores)
    spans = (HOUR_S, quota.hourly_core_hours, memory.hour_s), (DAY_S, quota.daily_core_hours, memory.day_s)
    for span, stated, used in spans:
        if stated is not None:
            left = min(left, max(stated * HOUR_S - used, 0.0) / (span - now % span))
    return left
