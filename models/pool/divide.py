"""One division of a pool: from what its jobs ask for to what each is granted, and why. Nothing is read or written."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from configs.pool import ClusterPool
from models.pool.ahead import PoolShortage, find_shortage, room_from
from models.pool.quota import add_use, busy_cores
from models.pool.reasons import describe_wait, describe_yield, rank_rivals
from models.pool.shares import JobClaim, divide, room_left
from models.pool.stock import SILENT_S, WITHIN_S, PoolStock, take_stock
from models.pool.wants import Grant, HeldGrant, PoolMemory, Want

CHANGES = 2
"""Changes of a job's grant within `WITHIN_S`, at most: executors that come and go are of use to nobody."""
KEPT = {
    "frozen": "as it is frozen", "silent": f"as nothing was heard of it for {SILENT_S:g} s",
    "paced": f"after two changes within {WITHIN_S:g} s",
}  # fmt: skip


class DividedPool(NamedTuple):
    """What one division came to, by job where it is a mapping.

    Attributes:
        wants: as the jobs told them.
        claims: of the jobs.
        keeps: why jobs keep what they have.
        given: executors for live records that each is to have.
        live: those that it may have now.
        leaving: jobs with executors that they have to give up.
        rivals: jobs that others yield to.
        until: when all have room, epoch seconds; None: nobody knows.
    """

    wants: Mapping[str, Want]
    claims: Mapping[str, JobClaim]
    keeps: Mapping[str, str]
    given: Mapping[str, int]
    live: Mapping[str, int]
    leaving: Collection[str]
    rivals: Sequence[str]
    until: float | None


def grant(
    pool: ClusterPool, memory: PoolMemory, wants: Mapping[str, Want], now: float
) -> tuple[PoolMemory, dict[str, Grant]]:
    """Divide a pool between the jobs that ask for executors of it.

    What nobody's live records need goes to replays, in the order of the jobs' weights. Who is frozen, or has not been
    heard for `SILENT_S`, keeps what it has; so does who has had two changes within a minute, unless another one's floor
    needs it. What was granted to a job that is not among them stays its own. Nobody is given what another one still
    occupies, whatever that one was granted.

    Args:
        pool: as its file states it.
        memory: of the last division.
        wants: of the pool's jobs, by job.
        now: epoch seconds.

    Returns:
        The memory afterwards, and what each of these jobs is granted.
    """
    memory = add_use(memory, busy_cores(memory, wants), now)
    stock = take_stock(pool, memory, wants, now)
    held, claims = stock.held, stock.claims
    keeps = {job: "paced" for job, one in held.items() if len(one.changed) >= CHANGES} | {**stock.keeps}
    given = _divided(stock, keeps)
    if any(given[job] < min(one.floor, one.wanted) for job, one in claims.items() if job not in keeps):
        keeps = {**stock.keeps}
        given = _divided(stock, keeps)
    free = _freed(stock, given)
    extra = _extra(pool, stock, given, free)
    live = {job: held[job].executors if job in stock.keeps else free[job] for job in claims}
    leaving = dict.fromkeys(job for job, one in held.items() if one.occupied > live[job])
    until, rivals = room_from(stock.whole, claims, stock.wants, now), rank_rivals(claims, given)
    made, granted = DividedPool(wants, claims, keeps, given, live, leaving, rivals, until), {}
    for job in wants:
        reason, code = _why(job, pool, made)
        codes: tuple[str, ...] = (code,)
        if stock.whole.cores < pool.cores and reason:
            left = math.floor(stock.whole.cores)
            reason, codes = f"{reason}; the quota leaves {left} of {pool.cores} cores", (code, "quota")
        late = claims[job].late_s[min(live[job], len(claims[job].late_s) - 1)] >= 1
        granted[job] = Grant(live[job], extra[job], wants[job].wanted, reason, codes, late)
    after = {
        job: _changed(one, live[job], extra[job], job in memory.held, wants.get(job), now) for job, one in held.items()
    }
    return replace(memory, held=after, cut_at=_cut_at(memory.cut_at, held, after, now)), granted


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
    stock = take_stock(pool, memory, wants, now)
    return find_shortage(stock.whole, stock.claims, stock.wants, now)


def _divided(stock: PoolStock, keeps: Mapping[str, str]) -> dict[str, int]:
    """Executors that each job is to have; those that keep what they have come before all others."""
    asked = []
    for job, one in stock.claims.items():
        kept = max(one.kept, one.least)
        asked.append(replace(one, floor=kept, wanted=kept) if keeps.get(job) == "paced" else one)
    return dict(zip(stock.claims, divide(stock.whole, asked), strict=True))


def _freed(stock: PoolStock, given: Mapping[str, int]) -> dict[str, int]:
    """Executors that each job may have of those that it is to have, while others still have, or may start, some."""
    asked = []
    for job, one in stock.claims.items():
        least = max(stock.held[job].occupied, one.least)
        asked.append(replace(one, wanted=max(given[job], least), least=least))
    has = divide(stock.whole, asked)
    return {job: min(given[job], many) for job, many in zip(given, has, strict=True)}


def _extra(
    pool: ClusterPool, stock: PoolStock, given: Mapping[str, int], free: Mapping[str, int]
) -> dict[str, int]:  # fmt: skip
    """Executors for each job's replays: what has room beside all that is to be live, and is there now."""
    jobs, claims = list(given), list(stock.claims.values())
    plan = room_left(stock.whole, claims, [given[job] for job in jobs])
    now = room_left(stock.whole, claims, [max(free[job], stock.held[job].occupied) for job in jobs])
    extra = {job: stock.held[job].replay for job in stock.keeps}
    for job in sorted({*jobs} - {*stock.keeps}, key=lambda job: (-pool.jobs[job].weight, job)):
        size, want = stock.claims[job].size, stock.wants[job]
        own = max(stock.held[job].occupied - free[job], 0)  # they are its own already
        many = min(plan.holds(size, want.replay), own + now.holds(size, want.replay))
        plan, now, extra[job] = plan.minus(size, many), now.minus(size, max(many - own, 0)), many
    return extra


def _changed(
    held: HeldGrant, live: int, extra: int, known: bool, want: Want | None, now: float
) -> HeldGrant:  # fmt: skip
    """The grant as it is held now; a change counts only up to the executors that the job has asked for."""
    before = held.executors if held.taken is None else held.taken
    taken = live if want is None else min(live, max(want.executors, before))
    return held._replace(
        executors=live, changed=(*held.changed, now) if known and taken != before else held.changed, replay=extra,
        running=held.occupied, taken=None if taken == live else taken,
    )  # fmt: skip


def _cut_at(
    before: Mapping[str, float], held: Mapping[str, HeldGrant], after: Mapping[str, HeldGrant], now: float
) -> dict[str, float]:  # fmt: skip
    """When each job was last granted fewer, not later than now: the clock may have been set back."""
    fewer = {job for job, one in after.items() if one.executors + one.replay < held[job].executors + held[job].replay}
    kept = {job: min(at, now) for job, at in before.items() if job in after}
    return kept | dict.fromkeys(fewer, now)


def _why(job: str, pool: ClusterPool, made: DividedPool) -> tuple[str, str]:
    """The reason of a job's grant, "" where it has what it asked for, and its code."""
    wants, has = made.wants, made.live[job]
    missing = wants[job].wanted - has
    if job in made.keeps and missing:
        return f"pool {pool.name}: {has} kept, {KEPT[made.keeps[job]]}", made.keeps[job]
    if missing <= 0:
        return "", "granted"
    if has < made.given[job]:
        return f"pool {pool.name}: {describe_wait(job, missing, made.leaving)}", "waits"
    rival = next((other for other in made.rivals if other != job), None)
    if rival is None:
        return f"pool {pool.name}: {missing} more have no room", "yields"
    lates = {other: _with_and_without(made.claims[other], made.given[other]) for other in (job, rival)}
    weights = {other: pool.jobs[other].weight for other in (job, rival)}
    return f"pool {pool.name}: {describe_yield(job, rival, missing, weights, wants, lates, made.until)}", "yields"


def _with_and_without(claim: JobClaim, has: int) -> tuple[float, float]:
    """Late seconds with what a job has, and with one executor less."""
    last = len(claim.late_s) - 1
    return claim.late_s[min(has, last)], claim.late_s[min(max(has - 1, 0), last)]
