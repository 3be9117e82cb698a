"""The single writer of a store."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Self

from pipelines.store.disk.environment import LmdbEnvironment
from pipelines.store.disk.errors import BadInput, Closed
from pipelines.store.disk.layout import ID, PAIR
from pipelines.store.disk.limits import check_key, check_time, check_value
from pipelines.store.disk.records import TRIGGERED, Kind, StoredRecord, Verdict, packed, unpacked
from pipelines.store.disk.retention import Keep
from pipelines.store.reading.reads import Reads
from pipelines.store.writing.commit import advanced, commit, declare, lower_bound, prune_key
from pipelines.store.writing.event import Event, EventBatch
from pipelines.store.writing.memory import Clock, steady
from pipelines.store.writing.opening import Opened, open_writer
from pipelines.store.writing.upcalls import DEAD, Callback, Upcalls

MAP_BYTES = 1 << 32
"""Address space reserved per environment, not disk or memory used; the fast path has it as a setting."""


class Store(Reads):
    """The single writer of a store; made by `Store.open`. Any thread may call; one writes at a time.

    Every writing call may raise `Closed`, `Fenced` (a later writer has taken over), `StoreFull` and, for what else LMDB
    or the disk refuses, `StoreError`; then nothing of it was written.
    """

    def __init__(self, opened: Opened) -> None:
        self._opened, self.memory = opened, opened.memory
        self.hot, self.durable = self.memory.hot.env, self.memory.durable.env
        self._reading, self._writing, self._flushing = threading.RLock(), threading.RLock(), threading.Lock()
        self._busy = self._closed = False
        self._upcalls = Upcalls(self._park)

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
        return cls(open_writer(Path(folder), map_bytes, keep, clock or steady()))

    @property
    def epoch(self) -> int:
        """Number of this writer among all that have opened the store, counted from 1."""
        return self.memory.epoch

    def event(self, kind: Kind = "volatile") -> Event:
        """Return an event to use as a `with` block: its puts, meta and outbox entries are one transaction with one ts.

        `with store.event() as e: e.put(...); e.set_meta(...); e.outbox(...)`. The block holds the writer's lock; its
        end raises as `put`.
        """
        return self.batch(kind).event(alone=True)

    def batch(self, kind: Kind = "volatile") -> EventBatch:
        """Return a batch to use as a `with` block: several events with a ts each, in one transaction.

        `with store.batch() as b: with b.event() as e: ...`. The block holds the writer's lock; its end raises as `put`.
        """
        return EventBatch(self, kind == "persistent")

    def put(
        self, key: str, value: bytes, version: int, kind: Kind = "volatile", event_time: int | None = None
    ) -> Verdict:
        """Put one version of an object.

        A persistent put returns once it is on the disk, a volatile one once every process sees it. Upcalls run before
        it returns.

        Args:
            key: a path such as `/sample/orders/all/60`.
            value: at most 64 MiB.
            version: 0 to 2^63 - 1.
            kind: "volatile" or "persistent", the same for every put of a key.
            event_time: ns since the epoch; None for the commit's time.

        Returns:
            "applied" above the newest version, "duplicate" if stored with equal bytes, else "stale". Only "applied"
            writes.

        Raises:
            Conflict: the version is stored with other bytes.
            MissingMember: the key belongs to a declared affinity set; use `put_set`.
            BadInput: an argument is not valid, or this thread has an event open.
            StoreFull, Fenced, Closed, StoreError: nothing was written.
        """
        with self.event(kind) as event:
            verdict = event.put(key, value, version, event_time)
        return verdict

    def put_set(self, affinity: str, items: Mapping[str, bytes], version: int, kind: Kind = "volatile") -> Verdict:
        """Put one version of several objects with one ts, all or none; return the verdict, as `put`, of all.

        Raises:
            MissingMember: no items, or the set was declared and the items are not exactly its members.
            Conflict: the members' verdicts differ, or one is stored with other bytes.
            BadInput: a key, value or version is not valid, or this thread has an event open.
            StoreFull, Fenced, Closed, StoreError: nothing was written.
        """
        with self.event(kind) as event:
            verdict = event.put_set(affinity, items, version)
        return verdict

    def set_meta(self, name: str, value: bytes, kind: Kind = "volatile") -> None:
        """Store bytes under a name in the environment of the kind, replacing what was there; read it by `get_meta`.

        Raises:
            BadKey: the name has not 1 to 200 printable ASCII characters.
            BadValue: no bytes, or more than 64 MiB.
            StoreFull, Fenced, Closed, StoreError: nothing was written.
        """
        with self.event(kind) as event:
            event.set_meta(name, value)

    def declare(self, affinity: str, members: Iterable[str]) -> None:
        """Declare for good which keys make up an affinity set: from now on they are put together or not at all.

        Waits for the disk. The same declaration again does nothing.

        Raises:
            BadKey: a name is no path, or the set or a member is declared otherwise.
            MissingMember: no members are given.
            StoreFull, Fenced, Closed, StoreError: nothing was written.
        """
        with self._writing:
            declare(self.memory, affinity, members)

    def watch(self, prefix: str, callback: Callback) -> None:
        """Register `callback(key, record)` to be called in the putting thread after each commit at or under the path.

        A call that raises is tried three times in all; then the failure is logged and a note (key, version, error; one
        per line) is put at `/dead` + key.
        """
        with self._writing:
            self._upcalls.add(prefix, callback)

    def trigger(self, key: str, value: bytes) -> int:
        """Call the callbacks that watch the key with a record of version -1, at most once, and store nothing.

        They run in this thread before it returns, unless another thread is delivering; what they raise is logged.

        Returns:
            How many callbacks watch the key.

        Raises:
            BadKey, BadValue: no valid key or value.
            Closed: the store was closed.
        """
        if key not in self.memory.keys:
            check_key(key)
        check_value(key, value)
        if self._closed:
            raise Closed("the store was closed")
        callbacks = self._upcalls.matching(key)
        if callbacks:
            ts = self.memory.ts
            self._upcalls.add_waiting(key, StoredRecord(TRIGGERED, ts, ts, self.memory.epoch, value), callbacks)
            self._upcalls.deliver()
        return len(callbacks)

    def outbox(self) -> list[tuple[int, bytes]]:
        """Return (number, entry) of the volatile outbox entries not yet reported by `sent`, in the order they were put.

        Raises:
            Closed: the store was closed.
        """
        with self._writing, self.hot.read() as txn, txn.cursor(db=self.hot.outbox) as cursor:
            sent = set(self.memory.hot.sent)
            return [(number, entry) for raw, entry in cursor if (number := ID.unpack(raw)[0]) not in sent]

    def sent(self, numbers: Iterable[int]) -> None:
        """Report outbox entries as sent, by number; the next volatile commits or flush delete them.

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
        """Bring all commits to the disk and wait for it; then they survive a host crash.

        If nothing was committed since the last flush, the frontier moves to now first. Puts go on while the disk works.

        Raises:
            Closed: the store was closed.
            Fenced: a later writer has taken over.
            StoreFull, StoreError, OSError: the disk refuses; what was flushed before is still safe.
        """
        with self._writing:
            self._look()
            ts, newest = advanced(self.memory), self.memory.synced.newest()
        with self._flushing:  # no put waits for it, only close
            if not self._closed:
                self.memory.synced.keep(*newest)
                self.memory.flushed = max(self.memory.flushed, ts)

    def prune(self, t: int) -> None:
        """Delete the versions that no read as of t (ns since the epoch) or later needs, one transaction per key.

        Puts may come between. Per key the newest version with ts <= t stays. A t above the newest commit counts as
        that. Reads as of an earlier time raise `Pruned` from then on.

        Raises:
            BadTime: t is no int from 0 to 2^63 - 1.
            Fenced, StoreFull, Closed, StoreError: keys already visited stay pruned.
        """
        check_time("prune", t)
        with self._writing:
            before = lower_bound(self.memory, t)
        for state in list(self.memory.keys.values()):
            with self._writing:
                prune_key(self.memory, state, before)

    def close(self) -> None:
        """Sync and close the files and release the lock for the next writer; a second call does nothing.

        Waits for a running put or flush.

        Raises:
            StoreError, OSError: the disk refuses; files and lock are released all the same.
        """
        with self._writing, self._reading, self._flushing:
            if not self._closed:
                self._closed = True
                self._opened.close()

    def begin(self) -> None:
        """Take the writer's lock for a batch or event, waiting for other threads; `end` lets it go.

        Raises:
            Closed: the store was closed.
            BadInput: this thread has an event open already.
        """
        self._writing.acquire()
        if self._closed or self._busy:
            problem = Closed("the store was closed") if self._closed else BadInput("an event is open; finish it first")
            self._writing.release()
            raise problem
        self._busy = True

    def end(self, events: Sequence[Event], persistent: bool, good: bool) -> None:
        """Commit the events that write something, unless not `good`; release the writer's lock, and deliver upcalls.

        Raises:
            StoreFull, Fenced, StoreError: nothing was written; the lock is released, no upcall is made.
        """
        try:
            writing = [event for event in events if event.staged or event.meta or event.entries]
            if good and writing:
                commit(self.memory, persistent, writing, self.memory.clock())
                for event in writing:
                    self._announce(event)
        finally:
            self._busy = False
            self._writing.release()
        self._upcalls.deliver()

    def _announce(self, event: Event) -> None:
        for key, (state, version, value, event_time) in event.staged.items():
            callbacks = self._upcalls.matching(key)
            if callbacks:
                place = state.prefix + PAIR.pack(event.ts, version)
                happened = event.ts if event_time is None else event_time
                record = unpacked(place, packed(place, happened, self.memory.epoch, value))
                self._upcalls.add_waiting(key, record, callbacks)

    def _park(self, key: str, record: StoredRecord, failure: Exception) -> None:
        note = f"{key}\n{record.version}\n{failure!r}"
        self.put(DEAD + key, note.encode(), self.memory.ts)

    def _look(self) -> None:
        if self._closed:
            raise Closed("the store was closed")

    def _locate(self, key: str) -> tuple[LmdbEnvironment, bytes] | None:
        state = self.memory.keys.get(key)
        return None if state is None else (self.memory.side(state.persistent).env, state.prefix)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
