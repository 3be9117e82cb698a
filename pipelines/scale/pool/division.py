"""The driver's part of pools: reads what jobs want, divides each pool, and writes what is granted for the workers."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from configs.bounds import DAY_S
from configs.contract import Contract
from configs.pool import ClusterPool, floor_cores
from configs.settings import Settings
from models.pool.ahead import PoolShortage
from models.pool.divide import expected_shortage, grant
from models.pool.reasons import describe_shortage
from models.pool.state import PoolState
from models.pool.told import tell_pool
from models.pool.wants import Grant, PoolMemory
from pipelines.scale.once import SaidOnce
from pipelines.scale.pool.files import PoolFiles
from pipelines.scale.pool.grants import Grants, JobGrant, KeptGrants
from pipelines.scale.pool.heard import HeardWants, not_after
from pipelines.scale.pool.telling import PoolTelling
from pipelines.scale.pool.veto import STALE_S, Hooks
from tidecast.fields import JOB_NAME

EVERY_S = 5.0
"""Seconds after which a pool is divided again although nobody has said anything: somebody may have fallen silent."""
FIRST_S = 10.0
"""Seconds after a pool's first job has spoken, or one was added, in which it should speak: nothing is given away."""
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
        self._files = PoolFiles(settings.pools_dir)
        self.hooks = Hooks()
        self._said = SaidOnce()
        self._heard = HeardWants(settings.kafka, EVERY_S, self._said)
        self._divided: dict[str, float] = {}
        self._short: dict[str, tuple[float, float]] = {}  # when it was said, and seen, last
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
        self._forget_times_ahead(now)
        kept = self._grants.all()
        about = self._files.look(self._contracts(), {one.pool for one in kept.jobs.values()}, now)
        lines, pools = [line for one in about.items() for line in self._said.say(*one)], self._files.pools
        members = {job: name for name, pool in pools.items() for job in pool.jobs}
        self._heard.forget_moved(members)
        jobs = {job: JobGrant(name) for job, name in members.items()}
        jobs |= {job: one for job, one in kept.jobs.items() if members.get(job) == one.pool}
        memories = {name: kept.memories.get(name, PoolMemory()) for name in pools}
        # Of a pool that could not be read since before this start nothing is known but what was granted: that stands.
        unread = self._files.unread
        jobs |= {job: one for job, one in kept.jobs.items() if one.pool in unread and job not in members}
        memories |= {name: memory for name, memory in kept.memories.items() if name in unread}
        for name, memory in kept.memories.items():  # if its file comes back, its quota is what it was
            if name not in memories and memory.at is not None and now - memory.at < DAY_S:
                memories[name] = replace(memory, held={})
        tellable = filter(JOB_NAME.pattern.fullmatch, unread)  # of a file with another name no message can tell
        states = {name: PoolState(name, now, "wrong", self._files.wrong.get(name, "")) for name in tellable}
        said = self._heard.read(members, now) if pools else set[str]()
        for name, pool in pools.items():
            if name in said or self.hooks.answered(name) or now - self._divided.get(name, -EVERY_S) >= EVERY_S:
                self._divided[name] = now
                try:
                    granted, memories[name], states[name], told = self._divide(pool, jobs, memories[name], now)
                except Exception as error:  # the others are divided
                    words = f"{type(error).__name__}: {error}; what was granted stands"
                    granted, told = {}, self._said.say(f"division of {name}", words)
                else:
                    told += self._said.say(f"division of {name}", "")
                jobs |= granted
                lines += told
        if _says_more(new := KeptGrants(jobs, memories), kept, now):
            self._grants.write(new)
        return lines + self._said.say("topic pools", self._telling.tell(states, {*pools, *unread}, now))

    def _forget_times_ahead(self, now: float) -> None:
        """Where the clock was set back, what was noted later than now was noted now."""
        self._heard.forget_times_ahead(now)
        self._divided = not_after(self._divided, now)
        self._short = {name: (min(said, now), min(seen, now)) for name, (said, seen) in self._short.items()}

    def _divide(
        self, pool: ClusterPool, jobs: Mapping[str, JobGrant], before: PoolMemory, now: float
    ) -> tuple[dict[str, JobGrant], PoolMemory, PoolState, list[str]]:
        """What is granted anew, what the pool remembers, how it stands, and what there is to say."""
        problem = self._files.wrong.get(pool.name, "")
        wants = self._heard.of(pool)
        if not wants and not self._heard.waits_for_any(pool):
            return {}, before, tell_pool(pool, before, {}, {}, None, now, state="waits", problem=problem), []
        joined = self._heard.joined(pool, now)
        late = self._heard.silent(joined, now)
        held = {job: one for job, one in before.held.items() if job in pool.jobs and job not in late}
        # What a job is granted that was forgotten is what it will have if it comes back, until the pool is divided.
        granted = {job: JobGrant(pool.name) for job in late}
        if any(job not in wants and job not in held and now - at < FIRST_S for job, at in joined.items()):
            stands = tell_pool(pool, before, wants, {}, None, now, state="waits", problem=problem)
            return granted, before, stands, []
        before = replace(before, held=held, floors=floor_cores(pool, self._contracts()))
        before, may, lines = self._take_answer(pool, before, now)
        granted |= may
        after, divided = grant(pool, before, wants, now)
        stood = {**jobs, **granted}
        has = {job: want.live if (one := stood[job].executors) is None else one for job, want in wants.items()}
        if pool.veto is not None and any(has[job] != one.executors for job, one in divided.items()):
            self.hooks.ask(pool, divided, after.held, has, now)
            seen = {job: one._replace(running=after.held[job].running) for job, one in before.held.items()}
            refused, kept = self._said.of(f"veto of {pool.name}"), replace(after, held=seen, cut_at=before.cut_at)
            state = "vetoed" if refused else "asked"
            stands = tell_pool(pool, kept, wants, {}, None, now, state=state, problem=refused or problem)
            return granted, kept, stands, lines
        short = expected_shortage(pool, after, wants, now)
        stands = tell_pool(pool, after, wants, divided, short, now, problem=problem)
        return granted | _as_grants(pool, divided), after, stands, lines + self._tell_size(pool, short, now)

    def _take_answer(
        self, pool: ClusterPool, before: PoolMemory, now: float
    ) -> tuple[PoolMemory, dict[str, JobGrant], list[str]]:
        """What the pool remembers once its hook has answered, what is granted by that, and what there is to say."""
        if not self.hooks.answered(pool.name):
            return before, {}, []
        asked, refused = self.hooks.take(pool.name, now)
        lines = self._said.say(f"veto of {pool.name}", refused)
        # Its file may have changed since: who is in it, how much there is.
        if refused or asked.pool != pool or now - asked.at > STALE_S:
            return before, {}, lines
        held, cut_at = {**before.held, **asked.held}, {**before.cut_at, **dict.fromkeys(asked.held, now)}
        return replace(before, held=held, cut_at=cut_at), _as_grants(pool, asked.granted), lines

    def _tell_size(self, pool: ClusterPool, found: PoolShortage | None, now: float) -> list[str]:
        """Say that a pool is too small when that begins, once in a while as long as it lasts, and when it is over."""
        about, words = f"size of {pool.name}", describe_shortage(pool, found)
        said_at, seen_at = self._short.get(pool.name, (-math.inf, -math.inf))
        seen_at = now if words else seen_at
        soon = now - said_at < AGAIN_S if words else now - seen_at < OVER_S
        if soon and self._said.of(about):
            self._short[pool.name] = said_at, seen_at
            return []
        self._short[pool.name] = now, seen_at
        return self._said.say(about, words)


def _says_more(new: KeptGrants, kept: KeptGrants, now: float) -> bool:
    """Whether anything has changed but for how long what is held has been used, which is written every EVERY_S.

    Each write is a flush to the disk, and is read by all who decide.
    """
    if dict(new.jobs) != dict(kept.jobs) or new.memories.keys() != kept.memories.keys():
        return True
    for name, one in new.memories.items():
        old = kept.memories[name]
        lately = old.at is not None and abs(now - old.at) < EVERY_S
        if one.held != old.held or (one != old and not lately):
            return True
    return False


def _as_grants(pool: ClusterPool, granted: Mapping[str, Grant]) -> dict[str, JobGrant]:
    return {job: JobGrant(pool.name, one.executors, one.replay, one.reason) for job, one in granted.items()}
