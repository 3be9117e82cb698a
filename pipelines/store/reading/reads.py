"""Reading, the same for the writer and for reading processes: each call copies out and closes its transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, TypeVar

from pipelines.store.disk.environment import LmdbEnvironment
from pipelines.store.disk.errors import BadKey
from pipelines.store.disk.limits import VERSION_MAX, check_key, check_time
from pipelines.store.disk.records import StoredRecord
from pipelines.store.disk.seek import as_of, places, records
from pipelines.store.reading.cuts import Cuts, typed

T = TypeVar("T")


class Reads(Cuts):
    """What can be asked of a store; every call answers from one snapshot and pins no page after it."""

    def _locate(self, key: str) -> tuple[LmdbEnvironment, bytes] | None:
        """Where the key lives and its id, None for a key never put."""
        raise NotImplementedError

    @typed
    def get(self, key: str, version: int | None = None) -> StoredRecord | None:
        """The newest version, or exactly the one asked for; None if there is none."""
        if version is None:
            return self._of(key, as_of, None)
        return self._of(key, lambda log, prefix: next(records(log, prefix, version, version), None), None)

    @typed
    def get_at_time(self, key: str, t: int) -> StoredRecord | None:
        """The version that was the newest at time t (ns), None if there was none.

        Raises:
            NotStable: t is above the frontier.
            Pruned: t is below what is kept.
        """
        check_time(key, t)
        return self._cut([key], t)[key]

    @typed
    def snapshot(self, keys: Sequence[str] | str, t: int | None = None) -> dict[str, StoredRecord | None]:
        """All keys (or the members of the affinity set so named) as of one time (ns), by default the newest commit.

        Raises:
            NotStable, Pruned: as `get_at_time`.
            BadKey: no such affinity set.
        """
        if t is not None:
            check_time("snapshot", t)
        return self._cut(self.members(keys) if isinstance(keys, str) else keys, t)

    @typed
    def list_versions(self, key: str, lo: int = 0, hi: int = VERSION_MAX) -> list[tuple[int, int]]:
        """(version, ts in ns) of the kept versions of lo to hi, ascending in both."""
        return self._of(key, lambda log, prefix: [(version, ts) for _, version, ts in places(log, prefix, lo, hi)], [])

    @typed
    def history(self, key: str, lo: int = 0, hi: int = VERSION_MAX, most: int = 10_000) -> list[StoredRecord]:
        """The kept records of versions lo to hi in one snapshot, ascending, at most `most` of them."""
        return self._of(key, lambda log, prefix: list(islice(records(log, prefix, lo, hi), most)), [])

    def _of(self, key: str, take: Callable[[Any, bytes], T], otherwise: T) -> T:
        """What is taken of a key's records in one snapshot, by a cursor over the log and their prefix."""
        with self._reading:
            self._look()
            found = self._locate(key)
            if found is None:
                return otherwise
            env, prefix = found
            with env.read() as txn, txn.cursor(db=env.log) as cursor:
                return take(cursor, prefix)

    def clear_dead_readers(self) -> int:
        """Free the slots of readers that died inside a transaction; how many there were."""
        with self._reading:
            return int(self.hot.lmdb.reader_check()) + int(self.durable.lmdb.reader_check())

    @typed
    def members(self, affinity: str) -> list[str]:
        """The keys of a declared affinity set.

        Raises:
            BadKey: it was never declared.
        """
        with self._reading, self.durable.read() as txn:
            raw = txn.get(check_key(affinity), db=self.durable.sets)
        if raw is None:
            raise BadKey(f"affinity set {affinity!r:.120} was never declared. Declare its members first.")
        return str(raw, "ascii").split("\n")

    @typed
    def get_meta(self, name: str, kind: str = "volatile") -> bytes | None:
        """What `set_meta` stored under the name, in the environment of the kind."""
        with self._reading:
            self._look()
            env = self.durable if kind == "persistent" else self.hot
            with env.read() as txn:
                found: bytes | None = txn.get(name.encode(), db=env.meta)
                return found
