"""The driver's part of pools: reads what jobs want, divides each pool, and writes what is granted for the workers."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from configs.contract import Contract
from configs.pool import ClusterPool, read_pools
from configs.settings import Settings
from models.pool.ahead import PoolShortage
from models.pool.divide import expected_shortage, grant
from models.pool.state import PoolState
from models.pool.told import tell_pool
from models.pool.wants import Grant, PoolMemory, Want
from pipelines.kafka.broker import Follower, Record
from pipelines.kafka.signing import Signer
from pipelines.scale.contracts import state_of
from pipelines.scale.grants import Grants, JobGrant, KeptGrants
from pipelines.scale.telling import PoolTelling
from pipelines.scale.veto import STALE_S, Hooks
from tidecast.messages import MessageError, PoolWant, decode_keyed

EVERY_S = 5.0
"""Seconds after which a pool is divided again although nobody has said anything: somebody may have fallen silent."""
FIRST_S = 10.0
"""Seconds after a start within which every job of a pool should have spoken: before, nothing is given away."""
POLLS = 20
"""Reads of the topic before a division, at most."""
FORGOTTEN_S = 600.0
"""Seconds after which a job that says nothing counts no more: its executors are gone with its driver."""
AGAIN_S = 600.0
"""Seconds after which it is said again that a pool is too small."""
OVER_S = 60.0
"""Seconds without a shortage after which it is over."""


class PoolDivision:
    """Divides the pools of a folder between the jobs that the autoscaler decides for.

    Attributes:
        hooks: that are asked before something changes.
    """

    def __init__(self, settings: Settings, contracts: Callable[[], Mapping[str, Contract]], grants: Grants) -> None:
        self._settings, self._contracts, self._grants = settings, contracts, grants
        self.hooks = Hooks()
        self._signer = Signer.of(settings.kafka)
        self._follower: Follower | None = None
        self._seen: object = None
        self._pools: dict[str, ClusterPool] = {}
        self._wrong: dict[str, str] = {}
        self._wants: dict[str, Want] = {}
        self._heard: dict[str, float] = {}
        self._began: float | None = None
        self._divided: dict[str, float] = {}
        self._short: dict[str, tuple[float, float]] = {}  # when it was said, and seen, last
        self._told: dict[str, str] = {}
        self._telling = PoolTelling(settings.kafka, EVERY_S)

    def tick(self, now: float | None = None) -> list[str]:
        """Read the pools' folder if a file has changed, and divide each pool of which a job has said something.

        Args:
            now: epoch seconds; default: those of the clock.

        How each pool stands is told on the topic `pools`; where the broker does not take it, that is said.

        Returns:
            One line per change or problem, each said once.

        Raises:
            BrokerError, SettingsError: the topic of wants cannot be read; what was granted stands.
            OSError: the grants cannot be written.
        """
        now = time.time() if now is None else now
        lines = self._read_pools()
        kept = self._grants.all()
        members = {job: name for name, pool in self._pools.items() for job in pool.jobs}
        jobs = {job: JobGrant(name) for job, name in members.items()}
        jobs |= {job: one for job, one in kept.jobs.items() if members.get(job) == one.pool}
        memories = {name: kept.memories.get(name, PoolMemory()) for name in self._pools}
        # Of a pool whose file is wrong since before this start nothing is known but what was granted: that stands.
        unread = {*self._wrong} - {*self._pools}
        jobs |= {job: one for job, one in kept.jobs.items() if one.pool in unread and job not in members}
        memories |= {name: memory for name, memory in kept.memories.items() if name in unread}
        said = self._read_wants(members, now) if self._pools else set[str]()
        states = {name: PoolState(name, now, "wrong", self._wrong[name]) for name in unread}
        for name, pool in self._pools.items():
            if name in said or self.hooks.answered(name) or now - self._divided.get(name, -EVERY_S) >= EVERY_S:
                self._divided[name] = now
                states[name], told = self._divide(pool, jobs, memories, now)
                lines += told
        if (jobs, memories) != (dict(kept.jobs), dict(kept.memories)):
            self._grants.write(KeptGrants(jobs, memories))
        there = {*self._pools, *unread}
        return lines + [line for line in [self._once("topic pools", self._telling.tell(states, there, now))] if line]

    def _read_pools(self) -> list[str]:
        folder, contracts = self._settings.pools_dir, self._contracts()
        seen = {file.name: state_of(file) for file in folder.glob("*.yaml")}, contracts
        if seen == self._seen:
            return []
        read, self._wrong = read_pools(folder, contracts)
        stays = {name: pool for name, pool in self._pools.items() if name in self._wrong}
        told = {name: f"{pool.cores} cores for {', '.join(pool.jobs)}" for name, pool in read.items()}
        for name in {*self._pools} - {*read, *stays}:
            told[name] = "its file is gone; its jobs have what their contracts allow"
        for name, problem in self._wrong.items():
            told[name] = f"{problem} Until then {'the last one counts' if name in stays else 'what was granted stays'}."
        self._pools, self._seen = read | stays, seen
        return [line for name, words in told.items() if (line := self._once(f"pool {name}", words))]

    def _read_wants(self, members: Mapping[str, str], now: float) -> set[str]:
        """Take the newest want of each job; return the pools of which a job has said something."""
        if self._follower is None:
            self._follower = Follower(self._settings.kafka, ["wants"])
            self._follower.seek_to_time(max(now - EVERY_S, 0.0))
        pools = set()
        for _ in range(POLLS):  # however fast they come, the pool is divided
            if not (records := self._follower.poll(0.05)):
                break
            for record in records:
                want = self._want(record, members, now)
                if want is not None and want.at >= self._wants.get(want.job, want).at:
                    self._wants[want.job] = want
                    self._heard[want.job] = now
                    pools.add(members[want.job])
        self._wants = {job: want for job, want in self._wants.items() if now - want.at < FORGOTTEN_S}
        return pools

    def _want(self, record: Record, members: Mapping[str, str], now: float) -> Want | None:
        """What a record says; None where it is none, or not of its job, or of a job in another pool."""
        try:
            said = decode_keyed(PoolWant, record.key or "", record.value, now)
            self._signer.check_record(record, said.job)
        except MessageError as error:
            if line := self._once(f"wants of {record.key}", f"not taken: {error}"):
                print(f"autoscaler: {line}", flush=True)
            return None
        if members.get(said.job) != said.pool:
            return None
        ahead = tuple(zip(said.until, said.ahead, strict=True))
        return Want(
            said.job, said.wall_time, said.executors, said.running, said.cores, said.least, tuple(said.late_s),
            said.budget_left, ahead, said.replay,
        )  # fmt: skip

    def _divide(
        self, pool: ClusterPool, jobs: dict[str, JobGrant], memories: dict[str, PoolMemory], now: float
    ) -> tuple[PoolState, list[str]]:
        wants = {job: self._wants[job] for job in pool.jobs if job in self._wants}
        before, problem = memories[pool.name], self._wrong.get(pool.name, "")
        if not wants:
            return tell_pool(pool, before, {}, {}, None, now, state="waits", problem=problem), []
        self._began = now if self._began is None else self._began
        last = {job: self._heard.get(job, self._began) for job in pool.jobs}
        if now - self._began < FIRST_S and not all(job in wants or job in before.held for job in pool.jobs):
            return tell_pool(pool, before, wants, {}, None, now, state="waits", problem=problem), []
        kept = {job: one for job, one in before.held.items() if job in pool.jobs and now - last[job] < FORGOTTEN_S}
        before = replace(before, held=kept)
        before, lines = self._take_answer(pool, before, jobs, now)
        after, granted = grant(pool, before, wants, now)
        has = {job: want.running if (one := jobs[job].executors) is None else one for job, want in wants.items()}
        if pool.veto is not None and any(has[job] != one.executors for job, one in granted.items()):
            self.hooks.ask(pool, granted, after.held, has, now)
            memories[pool.name] = held = replace(after, held=before.held)
            waits = self._told.get(f"veto of {pool.name}") or "its hook is asked before executors change hands"
            return tell_pool(pool, held, wants, {}, None, now, state="vetoed", problem=waits), lines
        memories[pool.name] = after
        jobs |= _as_grants(pool, granted)
        short = expected_shortage(pool, after, wants, now)
        stands = tell_pool(pool, after, wants, granted, short, now, problem=problem)
        return stands, lines + self._tell_size(pool, short, now)

    def _take_answer(
        self, pool: ClusterPool, before: PoolMemory, jobs: dict[str, JobGrant], now: float
    ) -> tuple[PoolMemory, list[str]]:
        """What the pool remembers once its hook has answered, and what there is to say; grants go to `jobs`."""
        if not self.hooks.answered(pool.name):
            return before, []
        asked, refused = self.hooks.take(pool.name, now)
        if refused:
            return before, [line for line in [self._once(f"veto of {pool.name}", refused)] if line]
        if asked.pool != pool or now - asked.at > STALE_S:  # its file may have changed: who is in it, how much there is
            return before, []
        jobs |= _as_grants(pool, asked.granted)
        return replace(before, held={**before.held, **asked.held}), []

    def _tell_size(self, pool: ClusterPool, found: PoolShortage | None, now: float) -> list[str]:
        """Say that a pool is too small when that begins, once in a while as long as it lasts, and when it is over."""
        about, words = f"size of {pool.name}", describe_shortage(pool, found)
        said_at, seen_at = self._short.get(pool.name, (-math.inf, -math.inf))
        seen_at = now if words else seen_at
        soon = now - said_at < AGAIN_S if words else now - seen_at < OVER_S
        if soon and self._told.get(about):
            self._short[pool.name] = said_at, seen_at
            return []
        self._short[pool.name] = now, seen_at
        return [line for line in [self._once(about, words)] if line]

    def _once(self, about: str, words: str) -> str:
        if self._told.get(about, "") == words:
            return ""
        self._told[about] = words
        return f"{about}: {words}" if words else f"{about}: over"


def _as_grants(pool: ClusterPool, granted: Mapping[str, Grant]) -> dict[str, JobGrant]:
    return {job: JobGrant(pool.name, one.executors, one.replay, one.reason) for job, one in granted.items()}


def describe_shortage(pool: ClusterPool, found: PoolShortage | None) -> str:
    """Say when a pool will be too small, which size would be enough, and who will have less; "" where it is not."""
    if found is None:
        return ""
    until = "" if found.until is None else f" until {_clock(found.until)}"
    late = f"; {', '.join(found.jobs)} will have less than asked for" if found.jobs else ""
    return (
        f"too small from {_clock(found.begin)}{until}: {found.cores} cores would be enough, it has {pool.cores}{late}"
    )


def _clock(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%H:%M} UTC"
