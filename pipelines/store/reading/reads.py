"""Reading, the same for the writer and for reading processes: each call copies out and closes its transaction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, TypeVar

from pipelines.store.disk.environment import LmdbEnvironment
from pipelines.store.disk.errors import BadKey
from pipelines.store.disk.limits import VERSION_MAX, check_key, check_time
from pipelines.store.disk.records import StoredRecord
from pipelines.store.disk.seek import find_as_of, iterate_records, iterate_versions
from pipelines.store.reading.cuts import Cuts, raising_store_errors

T = TypeVar("T")


class Reads(Cuts, ABC):
    """The reading calls that `Store` and `Reader` share; each answers from one snapshot and pins no page after it.

    Every call but `clear_dead_readers` may raise `Closed`, `Corrupt` (a damaged record) and other errors of
    `StoreError`.
    """

    @abstractmethod
    def _locate(self, key: str) -> tuple[LmdbEnvironment, bytes] | None:
        """Where the key lives and its id, None for a key never put."""

    @raising_store_errors
    def get(self, key: str, version: int | None = None) -> StoredRecord | None:
        """Return the key's newest record, or the one with exactly this version; None if there is none.

        Raises:
            BadKey: the key is no path; only a `Reader` looks, a `Store` answers None.
            Corrupt: the record's checksum does not match.
            Closed: the store or reader was closed.
        """
        if version is None:
            return self._of(key, find_as_of, None)
        return self._of(key, lambda log, prefix: next(iterate_records(log, prefix, version, version), None), None)

    @raising_store_errors
    def get_at_time(self, key: str, t: int) -> StoredRecord | None:
        """Return the record that was the key's newest at commit time t (ns since the epoch); None if there was none.

        Raises:
            NotStable: t is above the frontier.
            Pruned: t is below what is kept.
            BadTime, BadKey: no such time or key can be.
            Corrupt: the record's checksum does not match.
        """
        check_time(key, t)
        return self._cut([key], t)[key]

    @raising_store_errors
    def snapshot(self, keys: Sequence[str] | str, t: int | None = None) -> dict[str, StoredRecord | None]:
        """Return the records of several keys as of one commit time, by default that of the newest commit.

        Args:
            keys: the keys, or the name of a declared affinity set for its members.
            t: ns since the epoch.

        Returns:
            Record by key, in the order of the keys; None where the key had none then.

        Raises:
            NotStable: t is above the frontier.
            Pruned: t is below what is kept of one of the keys.
            BadKey: a key is no path, or the affinity set was never declared.
            BadTime: t is no time.
        """
        if t is not None:
            check_time("snapshot", t)
        return self._cut(self.members(keys) if isinstance(keys, str) else keys, t)

    @raising_store_errors
    def list_versions(self, key: str, lo: int = 0, hi: int = VERSION_MAX) -> list[tuple[int, int]]:
        """Return (version, ts in ns) of the key's kept versions from lo to hi, both included; ascending in both.

        Empty for a key never put. Values are not read.
        """

        def read(log: Any, prefix: bytes) -> list[tuple[int, int]]:
            return [(version, ts) for _, version, ts in iterate_versions(log, prefix, lo, hi)]

        return self._of(key, read, [])

    @raising_store_errors
    def history(self, key: str, lo: int = 0, hi: int = VERSION_MAX, most: int = 10_000) -> list[StoredRecord]:
        """Return the key's kept records of versions lo to hi, both included, ascending; at most the oldest `most`.

        Empty for a key never put.

        Raises:
            Corrupt: a record's checksum does not match.
        """
        return self._of(key, lambda log, prefix: list(islice(iterate_records(log, prefix, lo, hi), most)), [])

    def _of(self, key: str, take: Callable[[Any, bytes], T], otherwise: T) -> T:
        """What is taken of a key's records in one snapshot, by a cursor over the log and their prefix."""
        with self._reading:
            self._look()
            found = self._locate(key)
            if found is None:
                return otherwise
            env, prefix = found
            with env.begin_read() as txn, txn.cursor(db=env.log) as cursor:
                return take(cursor, prefix)

    def clear_dead_readers(self) -> int:
        """Free the reader slots of processes that died inside a transaction; return how many there were.

        Raises:
            lmdb.Error: the store or reader was closed.
        """
        with self._reading:
            return int(self.hot.lmdb.reader_check()) + int(self.durable.lmdb.reader_check())

    @raising_store_errors
    def members(self, affinity: str) -> list[str]:
        """Return the keys of a declared affinity set (keys that are put together or not at all), sorted.

        Args:
            affinity: the set's name, a path such as `/model/orders`.

        Raises:
            BadKey: the name is no path, or no such set was declared.
            Closed, StoreError: the store or reader was closed, or cannot be read.
        """
        with self._reading, self.durable.begin_read() as txn:
            raw = txn.get(check_key(affinity), db=self.durable.sets)
        if raw is None:
            raise BadKey(f"affinity set {affinity!r:.120} was never declared. Declare its members first.")
        return str(raw, "ascii").split("\n")

    @raising_store_errors
    def get_meta(self, name: str, kind: str = "volatile") -> bytes | None:
        """Return the bytes that `set_meta` stored under a name; None if there are none.

        Args:
            name: as given to `set_meta`.
            kind: as given to `set_meta`: "persistent"; any other text reads the volatile ones.

        Raises:
            Closed: the store or reader was closed.
            StoreError: the name is empty or longer than 511 bytes, or the store cannot be read.
        """
        with self._reading:
            self._look()
            env = self.durable if kind == "persistent" else self.hot
            with env.begin_read() as txn:
                value: bytes | None = txn.get(name.encode(), db=env.meta)
                return value
