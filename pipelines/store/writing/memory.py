"""What the writer keeps in memory, so that a put needs no read; and the clock that it writes by."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pipelines.store.disk.environment import LmdbEnvironment
from pipelines.store.disk.errors import BadKey
from pipelines.store.disk.layout import Head
from pipelines.store.disk.limits import check_key
from pipelines.store.disk.retention import Keep, rule_for
from pipelines.store.disk.synced import SyncedSnapshot

Clock = Callable[[], int]
"""Nanoseconds since the epoch."""


def steady_clock() -> Clock:
    """Return a clock (ns since the epoch) that starts at wall time and never falls, whatever happens to the wall clock.

    The offset is the largest of five readings: one taken while the process was suspended would lag for good.
    """
    ahead = max(time.time_ns() - time.monotonic_ns() for _ in range(5))
    return lambda: time.monotonic_ns() + ahead


@dataclass(slots=True, eq=False)
class KeyState:
    """The writer's view of one key.

    Attributes:
        key: the path.
        persistent: whether it lives in the durable environment, else in the hot one.
        keep: its retention rule; None keeps all versions.
        affinity: the declared set it belongs to.
        version: its newest, -1 before any.
        count: versions stored, counted only for a key with a rule.
        puts: versions put since surplus ones were looked for last, or since any; that is at every `keep.slack`-th.
    """

    key: str
    persistent: bool
    keep: Keep | None
    affinity: str | None
    prefix: bytes = b""
    """The key's id, empty until its first commit."""
    version: int = -1
    count: int = 0
    puts: int = 0


@dataclass
class Side:
    """One environment and what the writer remembers of it: head, next key id, next outbox number."""

    env: LmdbEnvironment
    head: Head
    next_key: int
    next_outbox_number: int
    sent: list[int] = field(default_factory=list)
    """Outbox entries that were sent; the next commit deletes them."""


@dataclass
class WriterMemory:
    """What the writer remembers of both environments and of every key.

    Attributes:
        hot, durable: the two environments.
        synced: the hot environment's commit to go back to after a host crash.
        keep: retention rules.
        clock: gives ns since the epoch.
        epoch: which writer of the store this is, counted from 1.
        ts: newest commit on either side, ns.
        flushed: newest commit that is on the disk, ns.
        keys: state of every key ever put.
        sets: members of the declared affinity sets.
    """

    hot: Side
    durable: Side
    synced: SyncedSnapshot
    keep: Sequence[Keep]
    clock: Clock
    epoch: int
    ts: int
    flushed: int
    commit_unknown: bool = False
    """An interrupt fell into a commit, so that this memory may be behind the file."""
    keys: dict[str, KeyState] = field(default_factory=dict)
    sets: dict[str, frozenset[str]] = field(default_factory=dict)

    def side(self, persistent: bool) -> Side:
        """Return the durable side for persistent objects, else the hot one."""
        return self.durable if persistent else self.hot

    def affinity_of(self, key: str) -> str | None:
        """Return the declared affinity set that the key is a member of; None without one."""
        return next((name for name, members in self.sets.items() if key in members), None)

    def new_key_state(self, key: str, persistent: bool) -> KeyState:
        """Return the state of a key that was never put; it is not remembered."""
        return KeyState(key, persistent, rule_for(self.keep, key), self.affinity_of(key))

    def state_for_put(self, key: str, persistent: bool) -> KeyState:
        """Return what the writer knows of a key that is to be put; a new state, not yet in `keys`, for one never put.

        Args:
            key: a path.
            persistent: whether it is to be put into the durable environment, else into the hot one.

        Raises:
            BadKey: the key is no path, or was put to the other environment before.
        """
        state = self.keys.get(key)
        if state is None:
            check_key(key)
            return self.new_key_state(key, persistent)
        if state.persistent != persistent:
            kinds = ("persistent", "volatile") if state.persistent else ("volatile", "persistent")
            raise BadKey(f"{key} was put as {kinds[0]} before and cannot be put as {kinds[1]}; use another key")
        return state

    def now(self) -> int:
        """Return the time (ns) that event times are checked against: the later of store clock and wall clock."""
        return max(self.clock(), time.time_ns())
