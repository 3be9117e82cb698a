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
    """The writer; made by `Store.open`. Its calls may come from any thread, one of them writes at a time."""

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
        """Become the writer of the store in `folder`, made if absent; `clock` gives ns since the epoch.

        Raises:
            WriterPresent: another process is; its pid is in the error.
            Corrupt: the durable file is damaged. A damaged hot file is moved aside and begun anew.
            OtherSchema: another release wrote the durable file. A hot file of it is moved aside and begun anew.
        """
        return cls(open_writer(Path(folder), map_bytes, keep, clock or steady()))

    @property
    def epoch(self) -> int:
        """Which writer of this store we are, counted from 1."""
        return self.memory.epoch

    def event(self, kind: Kind = "volatile") -> Event:
        """`with store.event() as e: e.put(...); e.set_meta(...); e.outbox(...)`: one transaction, one ts."""
        return self.batch(kind).event(alone=True)

    def batch(self, kind: Kind = "volatile") -> EventBatch:
        """`with store.batch() as b: with b.event() as e: ...`: events with a ts each, in one transaction."""
        return EventBatch(self, kind == "persistent")

    def put(
        self, key: str, value: bytes, version: int, kind: Kind = "volatile", event_time: int | None = None
    ) -> Verdict:
        """Put one version of an object: "applied" above the newest, "duplicate" if stored and equal, else "stale".

        A persistent put returns once it is on the disk, a volatile one once every process sees it. `event_time` is in
        ns, by default the commit's.

        Raises:
            Conflict: the version is stored with other bytes.
            BadInput, StoreFull, Fenced: nothing was written.
        """
        with self.event(kind) as event:
            verdict = event.put(key, value, version, event_time)
        return verdict

    def put_set(self, affinity: str, items: Mapping[str, bytes], version: int, kind: Kind = "volatile") -> Verdict:
        """Put several objects with one ts, all or none.

        Raises:
            MissingMember: the set was declared, and the items are not exactly its members.
            Conflict: members would meet different verdicts.
        """
        with self.event(kind) as event:
            verdict = event.put_set(affinity, items, version)
        return verdict

    def set_meta(self, name: str, value: bytes, kind: Kind = "volatile") -> None:
        """Store bytes under a name."""
        with self.event(kind) as event:
            event.set_meta(name, value)

    def declare(self, affinity: str, members: Iterable[str]) -> None:
        """Say, for good, which keys make up an affinity set: from now on they are put together or not at all.

        Raises:
            BadKey: a name is no key, or the set or a member is declared otherwise.
        """
        with self._writing:
            declare(self.memory, affinity, members)

    def watch(self, prefix: str, callback: Callback) -> None:
        """Call back in the putting thread after each commit at or under the path, three times before it is parked."""
        with self._writing:
            self._upcalls.add(prefix, callback)

    def trigger(self, key: str, value: bytes) -> int:
        """Call who watches the key now, at most once, and store nothing; how many watch it."""
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
        """(number, entry) of what waits to be sent, in order."""
        with self._writing, self.hot.read() as txn, txn.cursor(db=self.hot.outbox) as cursor:
            sent = set(self.memory.hot.sent)
            return [(number, entry) for raw, entry in cursor if (number := ID.unpack(raw)[0]) not in sent]

    def sent(self, numbers: Iterable[int]) -> None:
        """These entries were sent; the next commit deletes them, so a crash before it has them sent again."""
        with self._writing:
            self.memory.hot.sent.extend(numbers)

    def frontier(self) -> tuple[int, int]:
        """(ts, durable ts): answers up to the first never change; those up to the second survive a host crash."""
        return self.memory.ts, self.memory.flushed

    def flush(self) -> None:
        """Move the frontier to now if nothing was committed since the last flush, and bring all to the disk."""
        with self._writing:
            self._look()
            ts, newest = advanced(self.memory), self.memory.synced.newest()
        with self._flushing:  # no put waits for it, only close
            if not self._closed:
                self.memory.synced.keep(*newest)
                self.memory.flushed = max(self.memory.flushed, ts)

    def prune(self, t: int) -> None:
        """Delete what no read at or after t (ns) needs; per key the newest version with ts ≤ t stays as an anchor."""
        check_time("prune", t)
        with self._writing:
            before = lower_bound(self.memory, t)
        for state in list(self.memory.keys.values()):
            with self._writing:
                prune_key(self.memory, state, before)

    def close(self) -> None:
        """Flush, close, and let the next writer in."""
        with self._writing, self._reading, self._flushing:
            if not self._closed:
                self._closed = True
                self._opened.close()

    def begin(self) -> None:
        """A batch takes the writer's lock."""
        self._writing.acquire()
        if self._closed or self._busy:
            problem = Closed("the store was closed") if self._closed else BadInput("an event is open; finish it first")
            self._writing.release()
            raise problem
        self._busy = True

    def end(self, events: Sequence[Event], persistent: bool, good: bool) -> None:
        """Commit the events that write something, let the lock go, and call out."""
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
