"""The writer's transactions: one event or a batch of them at a time, committed whole, then called out."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from pipelines.store.disk.environment import LmdbEnvironment
from pipelines.store.disk.errors import BadInput, BadKey, Closed
from pipelines.store.disk.layout import PAIR
from pipelines.store.disk.limits import check_key
from pipelines.store.disk.memory import KeyState, WriterMemory
from pipelines.store.disk.records import Kind, StoredRecord, packed, unpacked
from pipelines.store.disk.retention import Keep, rule_for
from pipelines.store.reading.reads import Reads
from pipelines.store.writing.clock import Clock
from pipelines.store.writing.commit import commit
from pipelines.store.writing.event import Event, Staged
from pipelines.store.writing.upcalls import DEAD, Upcalls


class Transactions(Reads):
    """Reads, and writes by events; calls may come from any thread, one of them writes at a time."""

    def __init__(self, memory: WriterMemory, keep: Sequence[Keep], clock: Clock) -> None:
        self._memory = memory
        self.hot, self.durable = memory.hot.env, memory.durable.env
        self.known = memory.keys
        self._keep = tuple(keep)
        self._clock = clock
        self._reading = threading.RLock()
        self._writing = threading.RLock()
        self._busy = False
        self._closed = False
        self._upcalls = Upcalls(self._park)

    def event(self, kind: Kind = "volatile") -> Event:
        """`with store.event() as e: e.put(...); e.set_meta(...); e.outbox(...)`: one transaction, one ts."""
        return Event(self, self, kind == "persistent", {})

    def batch(self, kind: Kind = "volatile") -> EventBatch:
        """`with store.batch() as b: with b.event() as e: ...`: events with a ts each, in one transaction."""
        return EventBatch(self, kind == "persistent")

    def now(self) -> int:
        """The time against which event times are held: that of the store, or the wall's where it was set forward."""
        return max(self._clock(), time.time_ns())

    def state_of(self, key: str, persistent: bool) -> KeyState:
        """The writer's memory of a key, a blank one for a key never put."""
        state = self._memory.keys.get(key)
        if state is None:
            check_key(key)
            return KeyState(key, persistent, rule_for(self._keep, key), self._memory.affinity_of(key))
        if state.persistent != persistent:
            kinds = ("persistent", "volatile") if state.persistent else ("volatile", "persistent")
            raise BadKey(f"{key} was put as {kinds[0]} before and cannot be put as {kinds[1]}; use another key")
        return state

    def members_of(self, affinity: str) -> frozenset[str] | None:
        """The members of a declared set, None for one never declared."""
        return self._memory.sets.get(affinity)

    def begin(self) -> None:
        """An event or batch takes the writer's lock."""
        self._writing.acquire()
        if self._closed or self._busy:
            problem = Closed("the store was closed") if self._closed else BadInput("an event is open; finish it first")
            self._writing.release()
            raise problem
        self._busy = True

    def finish(self, event: Event, good: bool) -> None:
        """An event ends: commit it, or drop it."""
        self.end((event,), event.persistent, good)

    def end(self, events: Sequence[Event], persistent: bool, good: bool) -> None:
        """Commit the events that write something, let the lock go, and call out."""
        try:
            writing = [event for event in events if event.staged or event.meta or event.entries]
            if good and writing:
                commit(self._memory, persistent, writing, self._clock())
                for event in writing:
                    self._announce(event)
        finally:
            self._busy = False
            self._writing.release()
        self._upcalls.deliver()

    def _announce(self, event: Event) -> None:
        ts, epoch = event.ts, self._memory.epoch
        for key, (state, version, value, event_time, flags) in event.staged.items():
            watches = self._upcalls.matching(key)
            if watches:
                when = ts if event_time is None else event_time
                place = state.prefix + PAIR.pack(ts, version)
                record = unpacked(place, packed(place, when, epoch, flags, value))
                for watch in watches:
                    self._upcalls.add_waiting(watch, key, record)

    def _park(self, key: str, record: StoredRecord, failure: Exception) -> None:
        note = f"{key}\n{record.version}\n{failure!r}"
        with self.event() as event:
            event.put(DEAD + key, note.encode(), self._memory.ts)

    def _look(self) -> None:
        if self._closed:
            raise Closed("the store was closed")

    def _locate(self, key: str) -> tuple[LmdbEnvironment, bytes] | None:
        state = self._memory.keys.get(key)
        return None if state is None else (self._memory.side(state.persistent).env, state.prefix)


class EventBatch:
    """Several events that one transaction commits; an event left by an exception is dropped, the others stay."""

    def __init__(self, store: Transactions, persistent: bool) -> None:
        self._store = store
        self._persistent = persistent
        self._events: list[Event] = []
        self._earlier: dict[str, list[Staged]] = {}
        self._busy = False

    def event(self) -> Event:
        """The next event, to be used as a `with` block."""
        return Event(self._store, self, self._persistent, self._earlier)

    def begin(self) -> None:
        """An event of the batch begins."""
        if self._busy:
            raise BadInput("an event of the batch is open; finish it first")
        self._busy = True

    def finish(self, event: Event, good: bool) -> None:
        """An event of the batch ends."""
        self._busy = False
        if good:
            self._events.append(event)
            for key, staged in event.staged.items():
                self._earlier.setdefault(key, []).append(staged)

    def __enter__(self) -> Self:
        self._store.begin()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._store.end(self._events, self._persistent, kind is None)
        self._events, self._earlier = [], {}  # they know the batch: a circle would wait for the collector
