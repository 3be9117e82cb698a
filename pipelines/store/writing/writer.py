"""The single writer of a store."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Self

from pipelines.store.disk.errors import Closed
from pipelines.store.disk.layout import ID
from pipelines.store.disk.limits import check_key, check_time, check_value
from pipelines.store.disk.records import TRIGGERED, Kind, StoredRecord, Verdict
from pipelines.store.disk.retention import Keep, under
from pipelines.store.writing import upkeep
from pipelines.store.writing.clock import Clock, steady
from pipelines.store.writing.opening import Opened, open_writer
from pipelines.store.writing.subscription import Mode, Subscription
from pipelines.store.writing.transactions import Transactions
from pipelines.store.writing.upcalls import Callback, Watch

MAP_BYTES = 1 << 32
"""Address space reserved per environment, not disk or memory used; the fast path has it as a setting."""


class Store(Transactions):
    """The writer; made by `Store.open`. Its calls may come from any thread, one of them writes at a time."""

    def __init__(self, opened: Opened, keep: Sequence[Keep], clock: Clock) -> None:
        super().__init__(opened.memory, keep, clock)
        self._opened = opened
        self._subscriptions: list[Subscription] = []
        self._flushing = threading.Lock()

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
        clock = clock or steady()
        return cls(open_writer(Path(folder), map_bytes, keep, clock()), keep, clock)

    @property
    def epoch(self) -> int:
        """Which writer of this store we are, counted from 1."""
        return self._memory.epoch

    def put(
        self,
        key: str,
        value: bytes,
        version: int,
        kind: Kind = "volatile",
        event_time: int | None = None,
        flags: int = 0,
    ) -> Verdict:
        """Put one version of an object: "applied" above the newest, "duplicate" if stored and equal, else "stale".

        A persistent put returns once it is on the disk, a volatile one once every process sees it.

        Raises:
            Conflict: the version is stored with other bytes.
            BadInput, StoreFull, Fenced: nothing was written.
        """
        with self.event(kind) as event:
            verdict = event.put(key, value, version, event_time, flags)
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
            upkeep.declare(self._memory, affinity, members)

    def trigger(self, key: str, value: bytes) -> int:
        """Call who watches the key now, at most once, and store nothing; how many watch it."""
        if key not in self._memory.keys:
            check_key(key)
        check_value(key, value)
        if self._closed:
            raise Closed("the store was closed")
        watches = self._upcalls.matching(key)
        if watches:
            ts = self._memory.ts
            record = StoredRecord(TRIGGERED, ts, ts, self._memory.epoch, 0, 0, value)
            for watch in watches:
                self._upcalls.add_waiting(watch, key, record)
            self._upcalls.deliver()
        return len(watches)

    def watch(self, prefix: str, callback: Callback) -> Watch:
        """Call back in the putting thread after each commit at or under the path; `unwatch` ends it."""
        watch = Watch(prefix, callback)
        with self._writing:
            self._upcalls.add(watch)
        return watch

    def unwatch(self, watch: Watch) -> None:
        """End a watch."""
        with self._writing:
            self._upcalls.remove(watch)

    def subscribe(
        self, prefix: str, callback: Callback, from_version: int | None = None, mode: Mode = "all"
    ) -> Subscription:
        """Call back in a thread of its own, per key in version order, at least once; `Subscription.end` ends it.

        `all` sees every version from `from_version` on (None: from now on) and reads behind the log when it is slow;
        `latest` may skip to the newest. The writer waits for neither.

        Raises:
            Pruned: mode `all`, and versions from `from_version` on are no longer kept.
        """
        with self._writing:
            newest = {key: state.version for key, state in self._memory.keys.items() if under(prefix, key)}
            subscription = Subscription(self, self._upcalls, Watch(prefix, callback), mode, newest, from_version)
            self._upcalls.add(subscription.intake)
            self._subscriptions.append(subscription)
        subscription.start()
        return subscription

    def outbox(self) -> list[tuple[int, bytes]]:
        """(number, entry) of what waits to be sent, in order."""
        env = self.hot
        with self._writing, env.read() as txn, txn.cursor(db=env.outbox) as cursor:
            sent = set(self._memory.hot.sent)
            waiting = [(ID.unpack(number)[0], entry) for number, entry in cursor]
        return [(number, entry) for number, entry in waiting if number not in sent]

    def sent(self, numbers: Iterable[int]) -> None:
        """These entries were sent; the next commit deletes them, so a crash before it has them sent again."""
        with self._writing:
            self._memory.hot.sent.extend(numbers)

    def frontier(self) -> tuple[int, int]:
        """(ts, durable ts): answers up to the first never change; those up to the second survive a host crash."""
        return self._memory.ts, self._memory.flushed

    def flush(self) -> None:
        """Move the frontier to now if nothing was committed since the last flush, and bring all to the disk."""
        with self._writing:
            if self._closed:
                raise Closed("the store was closed")
            ts = upkeep.advanced(self._memory, self._clock())
            newest = self._memory.synced.newest()
        with self._flushing:  # no put waits for it, only close
            if not self._closed:
                self._memory.synced.keep(*newest)
                self._memory.flushed = max(self._memory.flushed, ts)

    def prune(self, t: int) -> None:
        """Delete what no read at or after t (ns) needs; per key the newest version with ts ≤ t stays as an anchor."""
        check_time("prune", t)
        with self._writing:
            before = upkeep.lower_bound(self._memory, t)
        for state in list(self._memory.keys.values()):
            with self._writing:
                upkeep.prune_key(self._memory, state, before)

    def close(self) -> None:
        """End the subscriptions, flush, close, and let the next writer in."""
        for subscription in self._subscriptions:
            subscription.end()
        with self._writing, self._reading, self._flushing:
            if not self._closed:
                self._closed = True
                self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
