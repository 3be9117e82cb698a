"""A pool after its division, as it is told to whoever looks: pure, of what the division knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime

from configs.pool import ClusterPool
from models.pool.ahead import PoolShortage
from models.pool.state import PoolShare, PoolState
from models.pool.stock import take_stock
from models.pool.wants import Grant, PoolMemory, Want


def tell_pool(
    pool: ClusterPool, memory: PoolMemory, wants: Mapping[str, Want], granted: Mapping[str, Grant],
    expected: PoolShortage | None, now: float, *, state: str = "divided", problem: str = "",
) -> PoolState:  # fmt: skip
    """Return the message that says how a pool stands.

    Args:
        pool: as its file states it.
        memory: after its last division.
        wants: of the jobs that have spoken lately, by job.
        granted: by job; of one that is not named nothing was granted anew, and what it holds stands.
        expected: what it will be short of.
        now: epoch seconds.
        state: as in `PoolState`.
        problem: why it is not divided, or why that changes nothing.
    """
    quota, usable = pool.quota, take_stock(pool, memory, wants, now).whole.cores
    shares = [_share(job, pool, memory, wants.get(job), granted.get(job), now) for job in pool.jobs]
    return PoolState(
        pool.name, now, state, problem, pool.cores, usable, pool.memory_gb,
        pool.price_per_core_hour, quota.hourly_core_hours, quota.daily_core_hours, memory.hour_s, memory.day_s,
        [
            [one.begin.timestamp(), one.end.timestamp(), list(one.jobs)]
            for one in pool.blackouts if one.end.timestamp() > now
        ],
        None if expected is None else expected.cores, None if expected is None else expected.begin,
        None if expected is None else expected.until, [] if expected is None else list(expected.jobs),
        [asdict(share) for share in shares],
    )  # fmt: skip


def _share(
    job: str, pool: ClusterPool, memory: PoolMemory, want: Want | None, granted: Grant | None, now: float
) -> PoolShare:  # fmt: skip
    stated, held = pool.jobs[job], memory.held.get(job)
    frozen = ""
    if pool.is_frozen(job, datetime.fromtimestamp(now, UTC)):
        frozen = "frozen" if pool.frozen or stated.frozen else "blackout"
    share = PoolShare(
        job, stated.weight, stated.floor, held and held.cores, stated.memory_gb, frozen,
        granted=held and held.executors,
    )  # fmt: skip
    asked = {} if want is None else {
        "heard_at": want.at, "wanted": want.wanted, "wanted_replay": want.replay, "running": want.running,
        "budget_left": want.budget_left, "cores": want.cores,
    }  # fmt: skip
    given = {} if granted is None else {
        "granted": granted.executors, "granted_replay": granted.replay, "reason": granted.reason,
        "codes": list(granted.codes), "late": int(granted.late),
    }  # fmt: skip
    return PoolShare(**asdict(share) | asked | given)
