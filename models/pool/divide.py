"""One division of a pool: from what its jobs ask for to what each is granted, and why. Nothing is read or written."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from configs.pool import ClusterPool
from models.pool.ahead import PoolShortage, find_shortage, room_from
from models.pool.quota import add_use, cores_left
from models.pool.reasons import describe_yield, rank_rivals
from models.pool.shares import JobClaim, PoolSize, divide
from models.pool.wants import Grant, HeldGrant, PoolMemory, Want, late_price

CHANGES, WITHIN_S = 2, 60.0
"""Changes of a job's grant within so many seconds, at most: executors that come and go are of use to nobody."""
SILENT_S = 30.0
"""Seconds after which a job that says nothing is taken to need what it has."""
KEPT = {
    "frozen": "as it is frozen", "silent": f"as nothing was heard of it for {SILENT_S:g} s",
    "paced": "after two changes within a minute",
}  # fmt: skip


def grant(
    pool: ClusterPool, memory: PoolMemory, wants: Mapping[str, Want], now: float
) -> tuple[PoolMemory, dict[str, Grant]]:
    """Divide a pool between the jobs that ask for executors of it.

    What nobody's live records need goes to replays, in the order of the jobs' weights. Who is frozen, or has not been
    heard for `SILENT_S`, keeps what it has; so does who has had two changes within a minute, unless another one's floor
    needs it. What was granted to a job that is not among them stays its own.

    Args:
        pool: as its file states it.
        memory: of the last division.
        wants: of the pool's jobs, by job.
        now: epoch seconds.

    Returns:
        The memory afterwards, and what each of these jobs is granted.
    """
    memory = add_use(memory, sum(want.running * want.cores for want in wants.values()), now)
    cores = cores_left(pool.cores, pool.quota, memory, now)
    unheard = {job: one for job, one in memory.held.items() if job not in wants and job in pool.jobs}
    whole = PoolSize(cores, pool.memory_gb or 0.0)
    for job, one in unheard.items():  # whatever they do now, what they were granted is theirs
        whole = whole.minus(PoolSize(one.cores, pool.jobs[job].memory_gb if pool.memory_gb else 0.0), one.executors)
    whole = PoolSize(*(max(there, 0.0) for there in whole))
    held = {job: _lately(memory.held.get(job), want, now) for job, want in wants.items()}
    claims = {job: _claim(pool, want, held[job].executors) for job, want in wants.items()}
    keeps = {job: why for job in wants if job in memory.held and (why := _keeps(pool, wants[job], held[job], now))}
    given = _divided(whole, claims, keeps)
    if any(given[job] < min(one.floor, one.wanted) for job, one in claims.items() if job not in keeps):
        keeps = {job: why for job, why in keeps.items() if why != "paced"}
        given = _divided(whole, claims, keeps)
    room, until, rivals = whole, room_from(cores, wants, now), rank_rivals(claims, given)
    for job, has in given.items():
        room = room.minus(claims[job].size, has)
    granted = {}
    for job in sorted(wants, key=lambda job: (-pool.jobs[job].weight, job)):
        extra = room.holds(claims[job].size, wants[job].replay) if wants[job].replay else 0
        room = room.minus(claims[job].size, extra)
        reason, code = _why(job, pool, claims, given, wants, keeps, rivals, until)
        codes: tuple[str, ...] = (code,)
        if cores < pool.cores and reason:
            reason, codes = f"{reason}; the quota leaves {math.floor(cores)} of {pool.cores} cores", (code, "quota")
        late = claims[job].late_s[min(given[job], len(claims[job].late_s) - 1)] >= 1
        granted[job] = Grant(given[job], extra, wants[job].wanted, reason, codes, late)
    after = {job: _changed(held[job], given[job], job in memory.held, wants[job], now) for job in wants}
    return replace(memory, held=unheard | after), granted


def expected_shortage(
    pool: ClusterPool, memory: PoolMemory, wants: Mapping[str, Want], now: float
) -> PoolShortage | None:  # fmt: skip
    """Return when the pool will be too small for what the jobs' forecasts ask for; None if it will not.

    Args:
        pool: as its file states it.
        memory: after its last division.
        wants: of the pool's jobs, by job.
        now: epoch seconds.
    """
    claims = {job: _claim(pool, want, memory.held[job].executors) for job, want in wants.items()}
    whole = PoolSize(cores_left(pool.cores, pool.quota, memory, now), pool.memory_gb or 0.0)
    return find_shortage(whole, claims, wants, now)


def _divided(whole: PoolSize, claims: Mapping[str, JobClaim], keeps: Mapping[str, str]) -> dict[str, int]:
    """Executors by job; those that keep what they have come before all others."""
    asked = [replace(one, floor=one.kept, wanted=one.kept) if job in keeps else one for job, one in claims.items()]
    return dict(zip(claims, divide(whole, asked), strict=True))


def _keeps(pool: ClusterPool, want: Want, held: HeldGrant, now: float) -> str:
    """Why a job keeps what it has, as a code; empty: it need not."""
    if pool.is_frozen(want.job, datetime.fromtimestamp(now, UTC)):
        return "frozen"
    if now - want.at > SILENT_S:
        return "silent"
    return "paced" if len(held.changed) >= CHANGES else ""


def _claim(pool: ClusterPool, want: Want, kept: int) -> JobClaim:
    stated = pool.jobs[want.job]
    price = late_price(stated.weight, want.budget_left)
    size = PoolSize(want.cores, stated.memory_gb if pool.memory_gb is not None else 0.0)
    return JobClaim(size, max(stated.floor, want.least), want.wanted, price, want.late_s, kept)


def _lately(held: HeldGrant | None, want: Want, now: float) -> HeldGrant:
    if held is None:
        return HeldGrant(want.running, (), want.cores)
    return HeldGrant(
        held.executors, tuple(at for at in held.changed if now - WITHIN_S < at <= now), want.cores, held.taken
    )


def _changed(held: HeldGrant, given: int, known: bool, want: Want, now: float) -> HeldGrant:
    """What was granted; of what a job needs and does not ask for yet, no change is one that it would notice."""
    before = held.executors if held.taken is None else held.taken
    taken = min(given, max(want.executors, before))
    changed = (*held.changed, now) if known and taken != before else held.changed
    return HeldGrant(given, changed, held.cores, None if taken == given else taken)


def _why(
    job: str, pool: ClusterPool, claims: Mapping[str, JobClaim], given: Mapping[str, int], wants: Mapping[str, Want],
    keeps: Mapping[str, str], rivals: Sequence[str], until: float | None,
) -> tuple[str, str]:  # fmt: skip
    """The reason of a job's grant, "" where it has what it asked for, and its code."""
    missing, has = wants[job].wanted - given[job], given[job]
    if job in keeps and missing:
        return f"pool {pool.name}: {has} kept, {KEPT[keeps[job]]}", keeps[job]
    if missing <= 0:
        return "", "granted"
    rival = next((other for other in rivals if other != job), None)
    if rival is None:
        return f"pool {pool.name}: {missing} more have no room", "yields"
    lates = {other: _with_and_without(claims[other], given[other]) for other in (job, rival)}
    weights = {other: pool.jobs[other].weight for other in (job, rival)}
    return f"pool {pool.name}: {describe_yield(job, rival, missing, weights, wants, lates, until)}", "yields"


def _with_and_without(claim: JobClaim, has: int) -> tuple[float, float]:
    """Late seconds with what a job has, and with one executor less."""
    last = len(claim.late_s) - 1
    return claim.late_s[min(has, last)], claim.late_s[min(max(has - 1, 0), last)]
