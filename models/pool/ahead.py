"""What a pool has to expect: until when a job goes short, and the smallest size that would be enough."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from models.pool.shares import JobClaim, PoolSize, divide, room_left
from models.pool.wants import Want


class PoolShortage(NamedTuple):
    """A pool that will be too small.

    Attributes:
        cores: the fewest that would be enough.
        begin: from when on, epoch seconds.
        until: to when, as far as is forecast; None: nobody forecasts an end.
        jobs: that would have less than they ask for when it is smallest.
        memory_gb: the least that would be enough; 0 where memory does not count.
        left: cores that there are, less than the pool's where its quota leaves no more.
    """

    cores: int
    begin: float
    until: float | None
    jobs: tuple[str, ...]
    memory_gb: float = 0.0
    left: float = 0.0


def needed(want: Want, at: float) -> int:
    """Return the executors that a job asks for at a time; those of now before the first step of its forecast ends.

    After its forecast, and without one, what it asks for now.
    """
    for until, executors in want.ahead:
        if at < until:
            return executors
    return want.wanted


def find_shortage(
    whole: PoolSize, claims: Mapping[str, JobClaim], wants: Mapping[str, Want], now: float
) -> PoolShortage | None:  # fmt: skip
    """Find when a pool will be too small for what its jobs' forecasts ask for, and for whom; None if it will not.

    Args:
        whole: of the pool.
        claims: of its jobs, by name.
        wants: likewise.
        now: epoch seconds.
    """
    begin, until, worst, enough = None, None, (0.0, now), PoolSize(0.0)
    for moment in _forecast(wants, now):
        room = _room(whole, claims, wants, moment)
        if min(room) < -1e-9:
            there = PoolSize(whole.cores - room.cores, whole.memory_gb - room.memory_gb)
            enough = PoolSize(max(enough.cores, there.cores), max(enough.memory_gb, there.memory_gb))
            begin, until, worst = (
                begin or moment,
                None,
                max(worst, (there.share_of(whole), moment), key=lambda at: at[0]),
            )
        elif begin is not None and until is None:
            until = moment
    if begin is None:
        return None
    asked = {job: needed(want, worst[1]) for job, want in wants.items()}
    given = divide(whole, [replace(claims[job], wanted=many) for job, many in asked.items()])
    short = tuple(job for (job, many), has in zip(asked.items(), given, strict=True) if has < many)
    return PoolShortage(int(enough.cores), begin, until, short, enough.memory_gb, whole.cores)


def room_from(
    whole: PoolSize, claims: Mapping[str, JobClaim], wants: Mapping[str, Want], now: float
) -> float | None:  # fmt: skip
    """Return the first time after now at which all jobs' forecasts together have room; None where none is forecast.

    Args:
        whole: of the pool.
        claims: of its jobs, by name.
        wants: likewise.
        now: epoch seconds.
    """
    later = _forecast(wants, now)[1:]
    return next((moment for moment in later if min(_room(whole, claims, wants, moment)) >= -1e-9), None)


def _room(whole: PoolSize, claims: Mapping[str, JobClaim], wants: Mapping[str, Want], at: float) -> PoolSize:
    """What is left beside what all jobs ask for at a time; below 0 where that is more than there is."""
    return room_left(whole, list(claims.values()), [needed(wants[job], at) for job in claims])


def _forecast(wants: Mapping[str, Want], now: float) -> list[float]:
    """Times at which what is forecast changes, now first, as far as the forecast of every job that has one reaches.

    One that has ended is none: its job has stopped, or nobody forecasts it any more.
    """
    last = [want.ahead[-1][0] for want in wants.values() if want.ahead]
    reach = min((until for until in last if until > now), default=now)
    ends = {until for want in wants.values() for until, _ in want.ahead if now < until < reach}
    return [now, *sorted(ends)]
