"""Division of a pool between jobs: floors first, then what saves most late seconds, then weighted max-min.

Executors are indivisible, so that max-min gives the next one to whoever has least of its weight. Late seconds fall with
each further executor, but not always by less and less: a job that is far behind gains from several at once and nothing
from one. Steps are therefore taken along the lower convex hull of each job's cost as far as there is room, which is the
greedy rule of marginal allocation (Fox 1966), and where each further executor saves less the optimum. Where memory
counts too, an executor is as large as its dominant share of the pool (Ghodsi et al., NSDI 2011).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

STICKY = 1.25
"""Times what an executor saves that the job has already: for little gain nobody's executors are exchanged."""
NOTHING = 1e-6
"""Late seconds, of weight 1, that are none."""


class PoolSize(NamedTuple):
    """Cores and memory, of an executor or of what there is; memory of 0 does not count."""

    cores: float
    memory_gb: float = 0.0

    def minus(self, other: PoolSize, times: int) -> PoolSize:
        """Return what is left when so many of another size are taken."""
        return PoolSize(self.cores - times * other.cores, self.memory_gb - times * other.memory_gb)

    def holds(self, other: PoolSize, at_most: int) -> int:
        """Return how many of another size have room, at most so many."""
        many = float(at_most)
        for there, one in zip(self, other, strict=True):
            if one > 0:
                many = min(many, math.floor(there / one + 1e-9))
        return max(int(many), 0)

    def share_of(self, whole: PoolSize) -> float:
        """Return the dominant share of a whole: the larger one of those of cores and memory."""
        return max((one / there for one, there in zip(self, whole, strict=True) if there > 0), default=math.inf)


@dataclass(frozen=True)
class JobClaim:
    """What one job asks of its pool.

    Attributes:
        size: of an executor.
        floor: executors that it is given whenever it asks for them.
        wanted: executors that its policy asks for.
        weight: what a late second of it costs, above 0.
        late_s: (N + 1,) late seconds to expect with 0 to N executors; beyond N as with N.
        kept: executors that it was given before; 0 for a new one.
        least: executors that are its own however small the pool is, at most those wanted.
    """

    size: PoolSize
    floor: int
    wanted: int
    weight: float
    late_s: Sequence[float] = (0.0,)
    kept: int = 0
    least: int = 0

    def cost(self, executors: int) -> float:
        """Return what its late seconds cost with so many executors."""
        return self.weight * self.late_s[min(executors, len(self.late_s) - 1)]


class SavingStep(NamedTuple):
    """Executors that a job may be given together.

    Attributes:
        cost: what they change it by, per share of the pool: below 0, the less the better.
        job: its place.
        upto: executors that it then has.
    """

    cost: float
    job: int
    upto: int


def divide(whole: PoolSize, claims: Sequence[JobClaim]) -> list[int]:
    """Return the executors of each job, at most those wanted, that have room in a pool together.

    Each has its least, room or not, and its floor, where it wants as much; a pool that is smaller than the floors is
    divided by weighted max-min up to these. The rest goes where it saves most, and what saves nothing by weighted
    max-min up to what is wanted.

    Args:
        whole: of the pool.
        claims: of its jobs.
    """
    if whole.memory_gb <= 0:
        claims = [replace(one, size=PoolSize(one.size.cores)) for one in claims]
    least, given = [one.least for one in claims], [max(min(one.floor, one.wanted), one.least) for one in claims]
    room = room_left(whole, claims, given)
    if min(room) < -1e-9:
        return _max_min(whole, room_left(whole, claims, least), claims, least, given)
    steps = [step for at, one in enumerate(claims) if (step := best_step(one, at, given[at], one.wanted, whole))]
    heapq.heapify(steps)
    while steps:
        _, at, upto = heapq.heappop(steps)
        one, has = claims[at], given[at]
        if room.holds(one.size, upto - has) == upto - has:
            given[at], room, most = upto, room.minus(one.size, upto - has), one.wanted
        else:
            most = has + room.holds(one.size, upto - has)
        if step := best_step(one, at, given[at], most, whole):
            heapq.heappush(steps, step)
    return _max_min(whole, room, claims, given, [one.wanted for one in claims])


def room_left(whole: PoolSize, claims: Sequence[JobClaim], executors: Sequence[int]) -> PoolSize:
    """Return what is left of a pool beside the executors of each job; below 0 where these are more than it has."""
    for one, has in zip(claims, executors, strict=True):
        whole = whole.minus(one.size, has)
    return whole


def best_step(claim: JobClaim, job: int, has: int, most: int, whole: PoolSize) -> SavingStep | None:
    """Return the further executors that save most each, by the lower convex hull of the cost; None if none save any.

    What a job has been given counts `STICKY` times, so that two jobs that are alike do not exchange executors.

    Args:
        claim: of the job.
        job: its place.
        has: executors that it has anyway.
        most: that it may have.
        whole: of the pool.
    """
    here, best, upto = _sticky_cost(claim, has), NOTHING * claim.weight, has
    for executors in range(has + 1, most + 1):
        saved = (here - _sticky_cost(claim, executors)) / (executors - has)
        if saved >= best:
            best, upto = saved, executors
    return None if upto == has else SavingStep(-best / claim.size.share_of(whole), job, upto)


def _sticky_cost(claim: JobClaim, executors: int) -> float:
    """The cost, with what the executors that it has already save counted more."""
    here = claim.cost(executors)
    return here + (STICKY - 1) * max(here - claim.cost(claim.kept), 0.0)


def _max_min(
    whole: PoolSize, room: PoolSize, claims: Sequence[JobClaim], given: list[int], most: Sequence[int]
) -> list[int]:
    """Give executors one by one to whoever has least of its weight, those first who had as many before."""
    given = list(given)
    shares = [one.size.share_of(whole) / one.weight for one in claims]

    def rank(at: int) -> tuple[bool, float, int]:
        return given[at] >= claims[at].kept, (given[at] + 1) * shares[at], at

    waiting = [rank(at) for at in range(len(claims)) if given[at] < most[at]]
    heapq.heapify(waiting)
    while waiting:
        *_, at = heapq.heappop(waiting)
        if not room.holds(claims[at].size, 1):
            continue  # another one's executors may be smaller
        given[at] += 1
        room = room.minus(claims[at].size, 1)
        if given[at] < most[at]:
            heapq.heappush(waiting, rank(at))
    return given
