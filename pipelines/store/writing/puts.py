"""What a writer puts: single objects, sets, events and batches of events; each call or block is one transaction."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from pipelines.store.disk.environment import LmdbEnvironment
from pipelines.store.disk.errors import BadInput, Closed
from pipelines.store.disk.records import Kind, StoredRecord, Verdict
from pipelines.store.reading.reads import Reads
from pipelines.store.writing.commit import commit_events
from pipelines.store.writing.event import Event, EventBatch
from pipelines.store.writing.opening import OpenedStore
from pipelines.store.writing.upcalls import DEAD, Upcalls


class Puts(Reads):
    """The puts of a store's writer, with the lock that they share; the base of `Store`. One thread writes at a time."""

    def __init__(self, opened: OpenedStore) -> None:
        self._opened, self.memory = opened, opened.memory
        self.hot, self.durable = self.memory.hot.env, self.memory.durable.env
        self._reading, self._writing = threading.RLock(), threading.RLock()
        self._event_open = self._closed = False
        self._upcalls = Upcalls(self._put_note_on_failure)

    def event(self, kind: Kind = "volatile") -> Event:
        """Return an event for use as a `with` block: its puts, meta and outbox entries are one transaction with one ts.

        `with store.event() as e: e.put(...); e.set_meta(...); e.outbox(...)`. The block holds the writer's lock; its
        end raises as `put`.
        """
        return self.batch(kind).event(alone=True)

    def batch(self, kind: Kind = "volatile") -> EventBatch:
        """Return a batch for use as a `with` block: several events with a ts each, in one transaction.

        `with store.batch() as b: with b.event() as e: ...`. The block holds the writer's lock; its end raises as `put`.
        """
        return EventBatch(self, kind == "persistent")

    def put(
        self, key: str, value: bytes, version: int, kind: Kind = "volatile", event_time: int | None = None
    ) -> Verdict:
        """Put one version of an object.

        A persistent put returns once it is on the disk, a volatile one once every process sees it. Callbacks that
        watch the key have run when it returns.

        Args:
            key: a path such as `/sample/orders/all/60`.
            value: at most 64 MiB.
            version: 0 to 2^63 - 1.
            kind: "volatile" or "persistent", the same for every put of a key.
            event_time: ns since the epoch; None for the commit's time.

        Returns:
            "applied" if the version is above the newest, "duplicate" if it is stored with equal bytes, else "stale".
            Only "applied" writes.

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
        """Put one version of several objects with one ts, all or none; return the verdict they share, as `put` does.

        Args:
            affinity: name of the set; if it was declared, `items` must have exactly its members.
            items: value (at most 64 MiB) by key.
            version: the same for all, 0 to 2^63 - 1.
            kind: "volatile" or "persistent", the same for every put of a key.

        Raises:
            MissingMember: no items, not exactly the declared members, or a key of another declared set.
            Conflict: the members' verdicts differ, or one is stored with other bytes.
            BadInput: a key, value or version is not valid, or this thread has an event open.
            StoreFull, Fenced, Closed, StoreError: nothing was written.
        """
        with self.event(kind) as event:
            verdict = event.put_set(affinity, items, version)
        return verdict

    def set_meta(self, name: str, value: bytes, kind: Kind = "volatile") -> None:
        """Store an unversioned value under a name, replacing what was there; read it by `get_meta`.

        Raises:
            BadKey: the name has not 1 to 200 printable ASCII characters.
            BadValue: no bytes, or more than 64 MiB.
            BadInput: this thread has an event open.
            StoreFull, Fenced, Closed, StoreError: nothing was written.
        """
        with self.event(kind) as event:
            event.set_meta(name, value)

    def begin(self) -> None:
        """Take the writer's lock for a batch or event, waiting for other threads; `end` releases it.

        Raises:
            Closed: the store was closed; the lock is not held then.
            BadInput: this thread has an event open already.
        """
        self._writing.acquire()
        if self._closed or self._event_open:
            problem = Closed("the store was closed") if self._closed else BadInput("an event is open; finish it first")
            self._writing.release()
            raise problem
        self._event_open = True

    def end(self, events: Sequence[Event], persistent: bool, good: bool) -> None:
        """Commit events in one transaction, release the writer's lock of `begin`, and call the watching callbacks.

        Args:
            events: in their order; those that wrote nothing are left out.
            persistent: into the durable environment (waits for the disk), else into the hot one.
            good: False to drop all of them.

        Raises:
            StoreFull, Fenced, Closed, StoreError: nothing was written; the lock is released, no callback runs.
        """
        try:
            writing = [event for event in events if event.staged or event.meta or event.entries]
            if good and writing:
                commit_events(self.memory, persistent, writing, self.memory.clock())
                for event in writing:
                    self._queue_upcalls(event)
        finally:
            self._event_open = False
            self._writing.release()
        self._upcalls.deliver()

    def _queue_upcalls(self, event: Event) -> None:
        for key, (_, version, value, event_time) in event.staged.items():
            if callbacks := self._upcalls.callbacks_for(key):
                when = event.ts if event_time is None else event_time
                record = StoredRecord(version, event.ts, when, self.memory.epoch, value)
                self._upcalls.enqueue(key, record, callbacks)

    def _put_note_on_failure(self, key: str, record: StoredRecord, failure: Exception) -> None:
        note = f"{key}\n{record.version}\n{failure!r}"
        self.put(DEAD + key, note.encode(), self.memory.ts)

    def _look(self) -> None:
        if self._closed:
            raise Closed("the store was closed")

    def _locate(self, key: str) -> tuple[LmdbEnvironment, bytes] | None:
        state = self.memory.keys.get(key)
        return None if state is None else (self.memory.side(state.persistent).env, state.prefix)
