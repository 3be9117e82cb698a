"""Pools as JSON values for their page: what each job has of its pool and why, and what the pool will be short of."""

from __future__ import annotations

from typing import Any

from models.pool.state import PoolShare, PoolState
from pipelines.console.read.fold import ReadModel
from pipelines.scale.shown import SILENT_S

Values = dict[str, Any]


def pool_rows(model: ReadModel, now: float) -> list[Values]:
    """Return what the page shows of each pool, those in trouble first; `now` is wall time, epoch seconds."""
    rows = [pool_row(state, now) for state in model.pools.values()]
    return sorted(rows, key=lambda row: (not row["trouble"], not row["short"], row["pool"]))


def pool_row(state: PoolState, now: float) -> Values:
    """Return what is shown of a pool; None for what is not known.

    Returns:
        Among others "used", the cores of what its jobs were granted; "price" of these for an hour, and "most_price";
        "short", when and by how much it is too small (None: it is not); "trouble", why it needs a person ("" where it
        does not), and its "jobs", dearest first.
    """
    shares = sorted(state.jobs, key=lambda share: (-share.weight, share.job))
    used = sum(_granted(share) * (share.cores or 0) for share in shares)
    used_gb = sum(_granted(share) * (share.memory_gb or 0.0) for share in shares)
    price, short = state.price_per_core_hour, None
    if state.enough_cores is not None:
        short = {
            "begin": state.short_from, "until": state.short_until, "enough": state.enough_cores,
            "jobs": state.short_jobs,
        }  # fmt: skip
    return {
        "pool": state.pool, "state": state.state, "age_s": round(max(now - state.wall_time, 0.0), 1),
        "trouble": _trouble(state, now), "cores": state.cores, "usable": round(state.usable, 1), "used": used,
        "memory_gb": state.memory_gb, "used_gb": None if state.memory_gb is None else round(used_gb, 1),
        "price": None if price is None else used * price, "most_price": None if price is None else state.cores * price,
        "quotas": _quotas(state), "blackouts": state.blackouts, "short": short,
        "jobs": [_share(one, state.pool) for one in shares],
    }  # fmt: skip


def pool_of(model: ReadModel, job: str, now: float) -> Values | None:
    """Return a job's pool and its share of it, as `pool_row` has both; None where it is in no pool that is known."""
    for state in model.pools.values():
        for share in state.jobs:
            if share.job == job:
                row = pool_row(state, now)
                return {name: row[name] for name in ("pool", "trouble", "short", "age_s")} | {
                    "share": _share(share, state.pool)
                }
    return None


def _granted(share: PoolShare) -> int:
    return (share.granted or 0) + share.granted_replay


def _share(share: PoolShare, pool: str) -> Values:
    return {
        "job": share.job, "weight": share.weight, "floor": share.floor, "cores": share.cores, "frozen": share.frozen,
        "wanted": share.wanted, "running": share.running, "granted": share.granted,
        "wanted_replay": share.wanted_replay, "granted_replay": share.granted_replay,
        "budget_left": share.budget_left, "reason": share.reason.removeprefix(f"pool {pool}: "),
        "late": bool(share.late), "heard_at": share.heard_at,
    }  # fmt: skip


def _quotas(state: PoolState) -> list[Values]:
    stated = (("hour", state.hourly_core_hours, state.hour_core_s), ("day", state.daily_core_hours, state.day_core_s))
    return [{"of": of, "most": most, "taken": round(used / 3600, 2)} for of, most, used in stated if most is not None]


def _trouble(state: PoolState, now: float) -> str:
    if now - state.wall_time > SILENT_S:
        return "no autoscaler divides it: what was granted stands"
    if state.problem:
        return state.problem
    return "no job of it has spoken yet: nothing is given away" if state.state == "waits" else ""
