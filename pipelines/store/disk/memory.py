"""What the writer keeps in memory, so that a put needs no read."""

from __future__ import annotations

from dataclasses import dataclass, field

from pipelines.store.disk.environment import LmdbEnvironment
from pipelines.store.disk.layout import Head
from pipelines.store.disk.retention import Keep
from pipelines.store.disk.synced import SyncedSnapshot


class KeyState:
    """The writer's view of one key: where it lives, its newest version, how many versions it has."""

    __slots__ = ("affinity", "count", "keep", "key", "persistent", "prefix", "puts", "version")

    def __init__(self, key: str, persistent: bool, keep: Keep | None, affinity: str | None) -> None:
        self.key = key
        self.persistent = persistent
        self.keep = keep
        self.affinity = affinity
        self.prefix = b""
        """The key's id, empty until its first commit."""
        self.version = -1
        self.count = 0
        self.puts = 0


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
    """The writer's memory; `ts` is the newest commit on either side, the frontier."""

    hot: Side
    durable: Side
    synced: SyncedSnapshot
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
