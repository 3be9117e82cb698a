"""What a pool has to expect: until when a job goes short, and the smallest size that would be enough."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from models.pool.shares import JobClaim, PoolSize, divide
from models.pool.wants import Want


class PoolShortage(NamedTuple):
    """A pool that will be too small.

    Attributes:
        cores: the fewest that would be enough.
        begin: from when on, epoch seconds.
        until: to when, as far as is forecast; None: nobody forecasts an end.
        jobs: that would have less than they ask for when it is smallest.
    """

    cores: int
    begin: float
    until: float | None
    jobs: tuple[str, ...]


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
    worst, begin, until = (0.0, now), None, None
    for moment in _forecast(wants, now):
        total = sum(needed(want, moment) * want.cores for want in wants.values())
        if total > whole.cores:
            begin, until, worst = begin or moment, None, max(worst, (total, moment), key=lambda one: one[0])
        elif begin is not None and until is None:
            until = moment
    if begin is None:
        return None
    asked = {job: needed(want, worst[1]) for job, want in wants.items()}
    given = divide(whole, [replace(claims[job], wanted=many) for job, many in asked.items()])
    short = tuple(job for (job, many), has in zip(asked.items(), given, strict=True) if has < many)
    return PoolShortage(int(worst[0]), begin, until, short)


def room_from(cores: float, wants: Mapping[str, Want], now: float) -> float | None:
    """Return the first time after now at which all jobs' forecasts together have room; None where none is forecast.

    Args:
        cores: of the pool.
        wants: of its jobs, by name.
        now: epoch seconds.
    """
    for moment in _forecast(wants, now)[1:]:
        if sum(needed(want, moment) * want.cores for want in wants.values()) <= cores:
            return moment
    return None


def _forecast(wants: Mapping[str, Want], now: float) -> list[float]:
    """Times at which what is forecast changes, now first, as far as the forecast of every job that has one reaches."""
    reach = min((want.ahead[-1][0] for want in wants.values() if want.ahead), default=now)
    ends = {until for want in wants.values() for until, _ in want.ahead if now < until < reach}
    return [now, *sorted(ends)]
