"""Reading, the same for the writer and for reading processes: each call copies out and closes its transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from pipelines.store.disk.errors import BadKey, Pruned
from pipelines.store.disk.layout import PAIR
from pipelines.store.disk.limits import VERSION_MAX, check_key, check_time
from pipelines.store.disk.records import StoredRecord
from pipelines.store.disk.seek import as_of, places, records
from pipelines.store.reading.answer import answer, typed
from pipelines.store.reading.cuts import Cuts

T = TypeVar("T")


class _At(NamedTuple):
    """Where a key's records are: a cursor over the log, their prefix, and what was pruned of them."""

    cursor: Any
    prefix: bytes
    floor: bytes | None


class Reads(Cuts):
    """What can be asked of a store; every call answers from one snapshot and pins no page after it."""

    @typed
    def get(self, key: str, version: int | None = None) -> StoredRecord | None:
        """The newest version, or exactly the one asked for; None if there is none."""
        with self._reading:
            self._look()
            found = self._locate(key)
            if found is None:
                return None
            env, prefix = found
            with env.read() as txn, txn.cursor(db=env.log) as cursor:
                if version is None:
                    return as_of(cursor, prefix)
                return next(records(cursor, prefix, version, version), None)

    @typed
    def get_at_time(self, key: str, t: int) -> StoredRecord | None:
        """The version that was the newest at time t (ns), None if there was none.

        Raises:
            NotStable: t is above the frontier.
            Pruned: t is below what is kept.
        """
        check_time(key, t)
        with self._reading:
            self._look()
            found = self._locate(key)
            if found is not None:
                env, prefix = found
                with env.read() as txn:
                    head = env.head(txn)
                    if t <= head.ts:  # every later commit here has a greater ts: stable without the other
                        return answer(txn, env, head, key, prefix, t)
            return self._cut([key], t)[key]

    @typed
    def snapshot(self, keys: Sequence[str] | str, t: int | None = None) -> dict[str, StoredRecord | None]:
        """All keys (or the members of the affinity set so named) as of one time, by default the newest commit.

        Raises:
            NotStable, Pruned: as `get_at_time`.
            BadKey: no such affinity set.
        """
        if t is not None:
            check_time("snapshot", t)
        with self._reading:
            self._look()
            names = self.members(keys) if isinstance(keys, str) else list(keys)
            found = [self._locate(key) for key in names]
            homes = {place[0] for place in found if place}
            if len(homes) == 1 and None not in found:
                (env,) = homes
                with env.read() as txn:
                    head = env.head(txn)
                    if t is None or t <= head.ts:
                        at = head.ts if t is None else t
                        return {k: answer(txn, env, head, k, p[1], at) for k, p in zip(names, found, strict=True) if p}
            return self._cut(names, t)

    @typed
    def list_versions(self, key: str, lo: int = 0, hi: int = VERSION_MAX) -> list[tuple[int, int]]:
        """(version, ts) of the kept versions of lo to hi, ascending in both."""
        return self._of(key, lambda at: [(version, ts) for _, version, ts in places(at.cursor, at.prefix, lo, hi)])

    @typed
    def history(self, key: str, lo: int = 0, hi: int = VERSION_MAX, most: int = 10_000) -> list[StoredRecord]:
        """The kept records of versions lo to hi in one snapshot, ascending, at most `most` of them."""
        return self._of(key, lambda at: list(islice(records(at.cursor, at.prefix, lo, hi), most)))

    @typed
    def replay(self, key: str, after: int, most: int) -> list[StoredRecord]:
        """The next records above version `after`, ascending, at most `most`; none was skipped.

        Raises:
            Pruned: a version above `after` is no longer kept.
        """

        def next_ones(at: _At) -> list[StoredRecord]:
            if at.floor is not None and (gone := PAIR.unpack(at.floor)[0]) > after:
                raise Pruned(f"{key}: versions above {after} up to {gone} are no longer kept; begin above {gone}")
            return list(islice(records(at.cursor, at.prefix, after + 1, VERSION_MAX), most))

        return self._of(key, next_ones)

    def _of(self, key: str, take: Callable[[_At], list[T]]) -> list[T]:
        """What is taken from a key's records in one snapshot; nothing for a key never put."""
        with self._reading:
            self._look()
            found = self._locate(key)
            if found is None:
                return []
            env, prefix = found
            with env.read() as txn, txn.cursor(db=env.log) as cursor:
                return take(_At(cursor, prefix, txn.get(prefix, db=env.floors)))

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
