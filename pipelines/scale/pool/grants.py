"""What jobs were granted of their pools: written by the driver, read by workers from one file beside the checkpoint."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from configs.contract import Contract
from configs.planning import Executors
from models.policy.copies import copy_with
from models.policy.live.evaluation import last_raise
from models.policy.live.memory import Memory
from models.policy.received.observation import Observation
from models.pool.wants import PoolMemory, Want
from pipelines.watched import read_changed
from pipelines.whole_file import write_json
from tidecast.messages import PoolWant


class JobGrant(NamedTuple):
    """What one job may have.

    Attributes:
        pool: that its executors come from.
        executors: for live records; None: nothing was granted yet, it keeps what it has.
        replay: for replays, beside them.
        reason: in words; "" where it is what it asked for.
    """

    pool: str
    executors: int | None = None
    replay: int = 0
    reason: str = ""


class KeptGrants(NamedTuple):
    """All that the file holds: grants by job, and what each pool remembers."""

    jobs: Mapping[str, JobGrant]
    memories: Mapping[str, PoolMemory]


def grants_file(checkpoint: Path) -> Path:
    """Return the path of the JSON file, beside the checkpoint, that holds the grants of a query's jobs."""
    return checkpoint.with_name(f"{checkpoint.name}.pools.json")


@dataclass(frozen=True)
class Grants:
    """The grants as last written to `file`; read anew when it changes.

    What was granted stands until it is granted otherwise: whatever fails meanwhile, the jobs of a pool never have more
    together than it has.
    """

    file: Path

    def of(self, job: str) -> JobGrant | None:
        """Return a job's grant; None if it is in no pool."""
        return self.all().jobs.get(job)

    def all(self) -> KeptGrants:
        """Return all there are; none before the first, or where the file cannot be parsed.

        While it cannot be read, those that this process read last.
        """
        return read_changed(self.file, _read, KeptGrants({}, {}))

    def write(self, kept: KeptGrants) -> None:
        """Write them, all or nothing.

        Raises:
            OSError: the file cannot be written.
        """
        jobs = {job: one._asdict() for job, one in kept.jobs.items()}
        write_json(self.file, {"jobs": jobs, "pools": {name: asdict(one) for name, one in kept.memories.items()}})


def pool_want(want: Want, pool: str, memory: Memory, now: float) -> PoolWant:
    """Return the message that says what a job wants of its pool; `now` is wall time, epoch seconds."""
    until, ahead = [at for at, _ in want.ahead], [executors for _, executors in want.ahead]
    return PoolWant(
        want.job, memory.job_s(now), now, memory.time_scale, pool, want.executors, want.running, want.cores, want.least,
        list(want.late_s), want.budget_left, until, ahead, want.replay, want.needed,
        want.seen_at,
    )  # fmt: skip


def kept_want(contract: Contract, pool: str, memory: Memory, now: float) -> PoolWant | None:
    """Return what a job wants of its pool for which nothing is decided: what is there; None where that is not known.

    A pool that hears nothing of it would give its executors to others after a while, as if its driver had ended.
    """
    if (there := memory.executors) is None:
        return None
    late_s, cores = (0.0,) * (min(there, contract.executors.max) + 1), contract.executors.cores
    want = Want(contract.job, now, there, there, cores, there, late_s, 1.0, seen_at=min(memory.metric_at or now, now))
    return pool_want(want, pool, memory, now)


def take_grant(
    before: Memory, memory: Memory, seen: Observation, granted: JobGrant, bounds: Executors, now: float
) -> tuple[Memory, dict[str, Any]]:
    """Return the memory with the target that a job was granted, and the grant for the log, within its bounds.

    Args:
        before: of the job, before its policy was asked.
        memory: after that.
        seen: the job as observed, with the target that its policy was shown; what is there is kept until something was
            granted.
        granted: of its pool.
        bounds: of its contract: these may have changed since, and an agent refuses what is beyond them.
        now: wall time, epoch seconds.
    """
    has, replay = granted.executors, granted.replay
    if has is None:
        has, replay = seen.executors, (memory.executors or seen.executors) - seen.executors  # which replays have
    # A grant is of what was asked for before it: what nobody asks for any more starts no executor.
    has = min(max(min(has, max(seen.target, memory.target or 0)), bounds.min), bounds.max)
    # What the policy asks for in vain is no change, after which it would wait.
    changed_at = before.changed_at if has == seen.target else memory.changed_at if has == memory.target else now
    raised_at = last_raise(before, seen.target, has, now)
    told = {**granted._asdict(), "executors": has, "replay": min(replay, bounds.max - has)}
    return copy_with(memory, target=has, changed_at=changed_at, raised_at=raised_at), told


def room_for_replays(granted: JobGrant, target: int, running: int) -> int:
    """Return how many executors a job may have for replays beside those for live records that it keeps unobserved."""
    if granted.executors is None:
        return max(running - target, 0)
    return max(min(granted.replay, granted.executors + granted.replay - target), 0)


def _read(file: Path) -> KeptGrants:
    try:
        data: dict[str, Any] = json.loads(file.read_text())
        jobs = {job: JobGrant(**one) for job, one in data["jobs"].items()}
        return KeptGrants(jobs, {name: PoolMemory.from_json_values(one) for name, one in data["pools"].items()})
    except (ValueError, TypeError, KeyError, AttributeError):  # another version's: granted anew
        return KeptGrants({}, {})
