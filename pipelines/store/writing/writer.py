"""The single writer of a store."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self

from pipelines.store.disk.layout import ID
from pipelines.store.disk.limits import check_key, check_time, check_value
from pipelines.store.disk.records import TRIGGERED, StoredRecord
from pipelines.store.disk.retention import Keep
from pipelines.store.writing.commit import declare_set, forbid_reads_before, next_ts, prepare_flush, prune_key
from pipelines.store.writing.memory import Clock, steady_clock
from pipelines.store.writing.opening import OpenedStore, open_writer
from pipelines.store.writing.puts import Puts
from pipelines.store.writing.upcalls import Callback

MAP_BYTES = 1 << 32
"""Address space reserved per environment, not disk or memory used; the fast path has it as a setting."""


class Store(Puts):
    """The single writer of a store; made by `Store.open`. Any thread may call; one writes at a time.

    Every writing call may raise `Closed`, `Fenced` (a later writer has taken over), `StoreFull` and, for what else LMDB
    or the disk refuses, `StoreError`; then nothing of it was written.
    """

    def __init__(self, opened: OpenedStore) -> None:
        super().__init__(opened)
        self._flushing = threading.Lock()

    @classmethod
    def open(
        cls, folder: Path, map_bytes: int = MAP_BYTES, keep: Sequence[Keep] = (), clock: Clock | None = None
    ) -> Self:
        """Become the writer of the store in `folder`, made if absent; checks files that were not closed cleanly first.

        A hot file that is damaged or of another release is moved aside and begun anew (logged). The check of a file
        takes up to 600 s.

        Args:
            folder: of the store.
            map_bytes: address space per environment, not disk or memory used.
            keep: retention rules; a key without one keeps all versions.
            clock: gives ns since the epoch; by default wall time that never falls.

        Raises:
            WriterPresent: another process is the writer; `pid` says which.
            Corrupt: the durable file is damaged; it is left as it is.
            OtherSchema: another release wrote the durable file; it is left as it is.
            StoreFull, StoreError, OSError: LMDB, the disk or the folder refuses.
        """
        return cls(open_writer(Path(folder), map_bytes, keep, clock or steady_clock()))

    @property
    def epoch(self) -> int:
        """Number of this writer among all that have opened the store, counted from 1."""
        return self.memory.epoch

    def ahead_s(self) -> float:
        """Return by how many seconds a commit's time would now be ahead of the wall clock; below 0: behind it.

        It is near 0 until the wall clock is set: the store's does not follow.
        """
        return (next_ts(self.memory.clock(), self.memory.ts) - time.time_ns()) / 1e9

    def declare(self, affinity: str, members: Iterable[str]) -> None:
        """Declare for good which keys make up an affinity set: from now on they are put together or not at all.

        Waits for the disk. The same declaration again does nothing.

        Raises:
            BadKey: a name is no path, or the set or a member is declared otherwise.
            MissingMember: no members are given.
            StoreFull, Fenced, Closed, StoreError: nothing was written.
        """
        with self._writing:
            declare_set(self.memory, affinity, members)

    def watch(self, prefix: str, callback: Callback) -> None:
        """Register `callback(key, record)` to be called in the putting thread after each commit at or under the path.

        A call that raises is tried three times in all; then the failure is logged and a note (key, version, error; one
        per line) is put at `/dead` + key.
        """
        with self._writing:
            self._upcalls.add(prefix, callback)

    def trigger(self, key: str, value: bytes) -> int:
        """Call the callbacks that watch a key, store nothing, and return how many callbacks those are.

        They get a record of version -1 with the newest commit's time. Each is called once, in this thread before it
        returns (after it, if another thread is delivering); what they raise is logged.

        Args:
            key: a path.
            value: the record's, `bytes` of at most 64 MiB.

        Raises:
            BadKey, BadValue: no valid key or value.
            Closed: the store was closed.
        """
        if key not in self.memory.keys:
            check_key(key)
        check_value(key, value)
        self._look()
        callbacks = self._upcalls.callbacks_for(key)
        if callbacks:
            ts = self.memory.ts
            self._upcalls.enqueue(key, StoredRecord(TRIGGERED, ts, ts, self.memory.epoch, value), callbacks)
            self._upcalls.deliver()
        return len(callbacks)

    def outbox(self) -> list[tuple[int, bytes]]:
        """Return (number, entry) of the outbox entries not yet named to `mark_sent`, in the order they were put.

        Raises:
            Closed: the store was closed.
        """
        with self._writing, self.hot.begin_read() as txn, txn.cursor(db=self.hot.outbox) as cursor:
            already_sent = set(self.memory.hot.sent)
            return [(number, entry) for raw, entry in cursor if (number := ID.unpack(raw)[0]) not in already_sent]

    def mark_sent(self, numbers: Iterable[int]) -> None:
        """Mark outbox entries as sent, by number; the next volatile commits or flush delete them.

        After a crash before that `outbox` returns them again.
        """
        with self._writing:
            self.memory.hot.sent.extend(numbers)

    def frontier(self) -> tuple[int, int]:
        """Return the times (ns since the epoch) of the newest commit and of the newest that survives a host crash.

        Reads as of a time up to the first never change their answer. Works on a closed store, too.
        """
        return self.memory.ts, self.memory.flushed

    def flush(self) -> None:
        """Sync all commits to the disk, so that they survive a crash of the host; blocks until they are there.

        If nothing was committed since the last flush, the frontier (newest commit's time) moves to now first. Other
        threads may put while the disk works.

        Raises:
            Closed: the store was closed before; a close meanwhile syncs by itself, and nothing is raised.
            Fenced: a later writer has taken over.
            StoreFull, StoreError: the disk refuses; what was flushed before is still safe.
        """
        with self._writing:
            self._look()
            ts, newest_commit = prepare_flush(self.memory), self.memory.synced.pin_newest()
        with self._flushing:  # no put waits for it, only close
            if not self._closed:
                self.memory.synced.sync_and_keep(*newest_commit)
                self.memory.flushed = max(self.memory.flushed, ts)

    def prune(self, t: int) -> None:
        """Delete the versions that no read as of commit time t or later needs; earlier reads then raise `Pruned`.

        Per key the newest version committed at or before t stays. Each key is a transaction of its own: other threads
        may put between them. The file does not shrink; its pages are used again.

        Args:
            t: ns since the epoch; above the newest commit it counts as that.

        Raises:
            BadTime: t is no int from 0 to 2^63 - 1.
            Fenced, StoreFull, Closed, StoreError: keys already visited stay pruned.
        """
        check_time("prune", t)
        with self._writing:
            bound = forbid_reads_before(self.memory, t)
        for state in list(self.memory.keys.values()):
            with self._writing:
                prune_key(self.memory, state, bound)

    def distrust(self) -> None:
        """Have the next writer read every record before it trusts the files; for who was told `Corrupt`.

        What is damaged of the hot file is then begun anew, from the newest synced commit where that is whole.
        """
        self._opened.suspect = True

    def close(self) -> None:
        """Sync and close the files and release the lock for the next writer; a second call does nothing.

        Waits for a running put or flush, and until all is on the disk. Later puts and gets raise `Closed`.

        Raises:
            StoreError, OSError: the disk refuses; files and lock are released all the same.
        """
        with self._writing, self._reading, self._flushing:
            if not self._closed:
                self._closed = True
                self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
