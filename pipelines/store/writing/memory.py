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


def steady() -> Clock:
    """A clock that starts at wall time and then only rises (seed section 5), ns: a step of the wall clock is not seen.

    Where the system suspends the process between the two looks, the clock would lag by that for good: the best of some.
    """
    ahead = max(time.time_ns() - time.monotonic_ns() for _ in range(5))
    return lambda: time.monotonic_ns() + ahead


@dataclass(slots=True, eq=False)
class KeyState:
    """The writer's view of one key: where it lives, its newest version, how many versions it has."""

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
    """One environment and what the writer knows of it by heart."""

    env: LmdbEnvironment
    head: Head
    next_key: int
    next_entry: int
    sent: list[int] = field(default_factory=list)
    """Outbox entries that were sent; the next commit deletes them."""


@dataclass
class WriterMemory:
    """The writer's memory; `ts` is the newest commit on either side, `flushed` the newest that is on the disk (ns)."""

    hot: Side
    durable: Side
    synced: SyncedSnapshot
    keep: Sequence[Keep]
    clock: Clock
    epoch: int
    ts: int
    flushed: int
    unsure: bool = False
    """An interrupt fell into a commit, so that this memory may be behind the file."""
    keys: dict[str, KeyState] = field(default_factory=dict)
    sets: dict[str, frozenset[str]] = field(default_factory=dict)

    def side(self, persistent: bool) -> Side:
        """The durable side for persistent objects, else the hot one."""
        return self.durable if persistent else self.hot

    def affinity_of(self, key: str) -> str | None:
        """The declared set that the key is a member of."""
        return next((name for name, members in self.sets.items() if key in members), None)

    def blank(self, key: str, persistent: bool) -> KeyState:
        """The state of a key that was never put."""
        return KeyState(key, persistent, rule_for(self.keep, key), self.affinity_of(key))

    def state_of(self, key: str, persistent: bool) -> KeyState:
        """The state of a key; BadKey for what is no key, or lives on the other side."""
        state = self.keys.get(key)
        if state is None:
            check_key(key)
            return self.blank(key, persistent)
        if state.persistent != persistent:
            kinds = ("persistent", "volatile") if state.persistent else ("volatile", "persistent")
            raise BadKey(f"{key} was put as {kinds[0]} before and cannot be put as {kinds[1]}; use another key")
        return state

    def now(self) -> int:
        """The time against which event times are held (ns): the store's, or the wall's where it was set forward."""
        return max(self.clock(), time.time_ns())
