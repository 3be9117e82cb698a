"""Why a job has less than it asks for, in words: to whom it yields, until when, and what that one has ahead of it."""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from itertools import islice

from configs.pool import ClusterPool
from models.pool.ahead import PoolShortage
from models.pool.shares import JobClaim
from models.pool.wants import Want, late_price

NAMED = 3
"""Jobs that are told by name, at most."""
UNLIKE = 0.1
"""Shares of budgets left that differ by more are told as the reason."""


def rank_rivals(claims: Mapping[str, JobClaim], given: Mapping[str, int]) -> list[str]:
    """Return the two jobs that others yield to: of those above their floor, whose last executor saves most per core."""
    above = [job for job, claim in claims.items() if given[job] > min(claim.floor, claim.wanted)]
    return heapq.nlargest(2, above, key=lambda job: (_last_saves(claims[job], given[job]), job))


def describe_yield(
    job: str, rival: str, missing: int, weights: Mapping[str, float], wants: Mapping[str, Want],
    lates: Mapping[str, tuple[float, float]], until: float | None,
) -> str:  # fmt: skip
    """Say to whom a job yields and why.

    Such as "yields 2 to payments until 18:20: its budget lasts (93 % left), payments' does not (12 %)".

    Args:
        job: that has less than it asks for.
        rival: that has it.
        missing: executors.
        weights: of late seconds, by job.
        wants: by job.
        lates: late seconds that each has to expect with what it has, and with one executor less.
        until: when there is room for both, epoch seconds; None: nobody knows.
    """
    time = "" if until is None else f" until {_clock(until)}"
    told = f"yields {missing} to {rival}{time}"
    own, other = wants[job].budget_left, wants[rival].budget_left
    if weights[rival] > weights[job]:
        return f"{told}: a late second of {rival} costs {weights[rival] / weights[job]:.3g} times as much"
    if own > other + UNLIKE and late_price(weights[rival], other) > late_price(weights[job], own):
        return f"{told}: its budget lasts ({_share(own)} left), that of {rival} does not ({_share(other)})"
    saved = lates[rival][1] - lates[rival][0]
    return f"{told}: without its last executor {rival} would be late {_seconds(saved)} more"


def describe_wait(job: str, missing: int, leaving: Collection[str]) -> str:
    """Say that executors are still with others, such as "3 more once orders has given them up".

    Args:
        job: that waits.
        missing: executors.
        leaving: the jobs that have more than they are granted; the first `NAMED` of the others are told by name.
    """
    others = [one for one in islice(leaving, NAMED + 1) if one != job][:NAMED]
    has = "has" if len(others) == 1 else "have"
    if further := len(leaving) - (job in leaving) - len(others):
        others.append(f"{further} {'other' if further == 1 else 'others'}")
    return f"{missing} more once {', '.join(others) or 'others'} {has} given them up"


def describe_shortage(pool: ClusterPool, found: PoolShortage | None) -> str:
    """Say when a pool will be too small, which size would be enough, and who will have less; "" where it is not."""
    if found is None:
        return ""
    until = "" if found.until is None else f" until {_clock(found.until)}"
    late = f"; {', '.join(found.jobs)} will have less than asked for" if found.jobs else ""
    enough, there = f"{found.cores} cores", f"{pool.cores}"
    if found.left < pool.cores:
        there += f", of which its quota leaves {math.floor(found.left)}"
    if pool.memory_gb is not None:
        enough, there = f"{enough} and {found.memory_gb:g} GB", f"{there}, and {pool.memory_gb:g} GB"
    return f"too small from {_clock(found.begin)}{until}: {enough} would be enough, it has {there}{late}"


def _last_saves(claim: JobClaim, has: int) -> float:
    return (claim.cost(has - 1) - claim.cost(has)) / claim.size.cores if has > 0 else 0.0


def _share(left: float) -> str:
    return f"{math.floor(100 * max(left, 0.0))} %"


def _seconds(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds >= 1 else "under a second"


def _clock(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%H:%M} UTC"
