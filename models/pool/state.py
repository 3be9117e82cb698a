"""What the autoscaler says of a pool on the topic `pools`, for those who look: no agent reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from tidecast.fields import (
    LATEST_S,
    MOST,
    Bounds,
    Count,
    Executors,
    JobName,
    MessageError,
    OneOf,
    Seconds,
    Time,
    short_repr,
)
from tidecast.wire import SCHEMA, read_fields

MOST_POOLS = 500
"""Pools that are kept; what is said of a further one is refused."""
POOL_STATES = ("divided", "waits", "asked", "vetoed", "wrong", "gone")


@dataclass(frozen=True)
class PoolShare:
    """What one job has of its pool; None for what is not known.

    `weight` and `floor` are those of the pool's file, `cores` and `memory_gb` of an executor. `frozen` says why it
    keeps what it has by that file ("frozen", "blackout"; "" where it need not). At `heard_at` it asked for `wanted`
    executors for live records and `wanted_replay` for replays, had `running`, and `budget_left` of its promise.
    `granted` and `granted_replay` are what it may have; `reason`, in words, and `codes` say why it is less than it
    asked for. `late` is 1 where its promise is not kept with these, by what is expected.
    """

    job: JobName
    weight: Annotated[float, Bounds(0, MOST, above=True)] = 1.0
    floor: Executors = 1
    cores: Count | None = None
    memory_gb: Annotated[float, Bounds(0, MOST)] | None = None
    frozen: Annotated[str, OneOf(("", "frozen", "blackout"))] = ""
    heard_at: Time | None = None
    wanted: Executors | None = None
    wanted_replay: Count = 0
    running: Count | None = None
    budget_left: float | None = None
    granted: Executors | None = None
    granted_replay: Count = 0
    reason: str = ""
    codes: list[str] = field(default_factory=list)
    late: Annotated[int, Bounds(0, 1)] = 0


@dataclass(frozen=True)
class PoolState:
    """A pool as it was divided, said by the autoscaler when that changes, and every few seconds.

    `state`: divided, waits (no job has spoken, or not all since a start), asked (its hook has not answered yet whether
    this may be), vetoed (it has said last that it may not), wrong (its file cannot be read), or gone; `problem` says
    why. It has `cores`, of which its quotas leave `usable`, and `memory_gb` (None: not limited).
    `hour_core_s` and `day_core_s` are taken of `hourly_core_hours` and `daily_core_hours`. `blackouts` are [begin, end,
    [jobs]], those that are not over. It is too small from `short_from` until `short_until` (None: no end is forecast)
    for what its jobs ask for by their forecasts; `enough_cores` would do, and `short_jobs` have less. `shares` are
    `PoolShare` as JSON objects.
    """

    pool: JobName
    wall_time: Time
    state: Annotated[str, OneOf(POOL_STATES)]
    problem: str = ""
    cores: Count = 0
    usable: Annotated[float, Bounds(0, MOST)] = 0.0
    memory_gb: Annotated[float, Bounds(0, MOST)] | None = None
    price_per_core_hour: Annotated[float, Bounds(0, MOST)] | None = None
    hourly_core_hours: Annotated[float, Bounds(0, MOST)] | None = None
    daily_core_hours: Annotated[float, Bounds(0, MOST)] | None = None
    hour_core_s: Seconds = 0.0
    day_core_s: Seconds = 0.0
    blackouts: list[Any] = field(default_factory=list)
    enough_cores: Count | None = None
    short_from: Time | None = None
    short_until: Time | None = None
    short_jobs: list[str] = field(default_factory=list)
    shares: list[Any] = field(default_factory=list)
    schema: int = SCHEMA

    KEY: ClassVar = "pool"

    @property
    def jobs(self) -> Sequence[PoolShare]:
        """The shares of its jobs.

        Raises:
            MessageError: one is none; never of a message that was decoded.
        """
        return [read_fields(PoolShare, share) for share in self.shares]

    def check(self) -> None:
        """Check shares, blackouts and that a shortage begins; MessageError if they are none."""
        if len({share.job for share in self.jobs}) != len(self.shares):
            raise MessageError("shares: a job is named twice")
        for one in self.blackouts:
            match one:
                case [int() | float() as begin, int() | float() as end, [*jobs]] if (
                    0 <= begin < end <= LATEST_S and all(isinstance(job, str) for job in jobs)
                ):
                    continue
            raise MessageError(f"blackouts: [begin, end, [jobs]] is expected, {short_repr(one)} was found")
        if (self.enough_cores is None) != (self.short_from is None):
            raise MessageError("enough_cores and short_from go together")


def with_pool(pools: Mapping[str, PoolState], said: PoolState) -> Mapping[str, PoolState]:
    """Return what is known of pools, by name, after a message: the last of each holds, one that is gone is forgotten.

    The last one by its place on the topic: the autoscaler's clock may have been set back.

    Raises:
        MessageError: MOST_POOLS others are known.
    """
    if said.state == "gone":
        return {name: state for name, state in pools.items() if name != said.pool}
    if said.pool not in pools and len(pools) >= MOST_POOLS:
        raise MessageError(f"pool {said.pool!r}: {MOST_POOLS} others are known")
    return {**pools, said.pool: said}
