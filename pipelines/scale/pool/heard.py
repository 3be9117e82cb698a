"""What the jobs of pools want, as they say it on the topic `wants`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from configs.pool import ClusterPool
from configs.sections import Kafka
from models.pool.wants import Want
from pipelines.kafka.broker import Follower, Record
from pipelines.kafka.signing import Signer
from pipelines.scale.once import SaidOnce
from tidecast.messages import MessageError, PoolWant, decode_keyed

AHEAD_S = 5.0
"""Seconds by which a want may be ahead of the clock; one that is more so was said before the clock was set back."""
POLLS = 20
"""Reads of the topic before a division, at most."""
FORGOTTEN_S = 600.0
"""Seconds after which a job that says nothing counts no more: its executors are gone with its driver."""

K = TypeVar("K")


class HeardWants:
    """The newest want of each job, when it was heard, and since when a job of a pool is waited for."""

    def __init__(self, kafka: Kafka, every_s: float, said: SaidOnce) -> None:
        """Take the broker's settings; connects at the first `read`.

        Args:
            kafka: the broker.
            every_s: seconds back that the first `read` begins at.
            said: what was said of wants that are not taken.
        """
        self._kafka, self._every_s, self._said = kafka, every_s, said
        self._signer = Signer.of(kafka)
        self._follower: Follower | None = None
        self._wants: dict[str, Want] = {}
        self._heard: dict[str, float] = {}
        self._joined: dict[tuple[str, str], float] = {}  # by pool and job

    def forget_times_ahead(self, now: float) -> None:
        """Where the clock was set back, what was noted later than now was noted now."""
        self._heard, self._joined = not_after(self._heard, now), not_after(self._joined, now)
        self._wants = {job: want for job, want in self._wants.items() if want.at <= now + AHEAD_S}

    def forget_moved(self, members: Mapping[str, str]) -> None:
        """Forget since when jobs were waited for in pools that they are not in now; `members` are pools by job."""
        self._joined = {one: at for one, at in self._joined.items() if members.get(one[1]) == one[0]}

    def read(self, members: Mapping[str, str], now: float) -> set[str]:
        """Take the newest want of each job; return the pools of which a job has said something.

        Raises:
            BrokerError, SettingsError: the topic cannot be read.
        """
        if self._follower is None:
            # From now on, should the broker fail before it is sought: old words would count as heard now.
            self._follower = Follower(self._kafka, ["wants"], "latest")
            self._follower.seek_to_time(max(now - self._every_s, 0.0))
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

    def of(self, pool: ClusterPool) -> dict[str, Want]:
        """Return what those jobs of a pool want that have said so and are not forgotten."""
        return {job: self._wants[job] for job in pool.jobs if job in self._wants}

    def waits_for_any(self, pool: ClusterPool) -> bool:
        """Return whether `joined` was asked of a pool before, and one of its jobs then is still in it."""
        return any((pool.name, job) in self._joined for job in pool.jobs)

    def joined(self, pool: ClusterPool, now: float) -> dict[str, float]:
        """Return since when each job of a pool is waited for, epoch seconds: from now on where it was not before."""
        return {job: self._joined.setdefault((pool.name, job), now) for job in pool.jobs}

    def silent(self, joined: Mapping[str, float], now: float) -> set[str]:
        """Return which jobs have said nothing for so long that they count no more; `joined` as returned."""
        return {job for job, at in joined.items() if now - self._heard.get(job, at) >= FORGOTTEN_S}

    def _want(self, record: Record, members: Mapping[str, str], now: float) -> Want | None:
        """What a record says; None of what is none, an old one that is sent again, or of a job not in the pool."""
        if record.key not in members:
            return None
        try:
            said = decode_keyed(PoolWant, record.key, record.value, now)
            self._signer.check_record(record, said.job)
        except MessageError as error:
            for line in self._said.say(f"wants of {record.key}", f"not taken: {error}"):
                print(f"autoscaler: {line}", flush=True)
            return None
        if members.get(said.job) != said.pool or now - said.wall_time >= FORGOTTEN_S:
            return None
        ahead = tuple(zip(said.until, said.ahead, strict=True))
        return Want(
            said.job, said.wall_time, said.executors, said.running, said.cores, said.least, tuple(said.late_s),
            said.budget_left, ahead, said.replay, said.needed, said.seen_at,
        )  # fmt: skip


def not_after(times: Mapping[K, float], now: float) -> dict[K, float]:
    """Return times by what they are of, none of them later than now."""
    return {about: min(at, now) for about, at in times.items()}
