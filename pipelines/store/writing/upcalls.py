"""Upcalls in the thread that put: after the commit, in commit order, three attempts each."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from pipelines.store.disk.records import StoredRecord
from pipelines.store.disk.retention import under

ATTEMPTS = 3
DEAD = "/dead"
Callback = Callable[[str, StoredRecord], None]
"""Called with a key and its record; a triggered record has version -1."""
log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Watch:
    """A callback on the keys at or under a path."""

    prefix: str
    callback: Callback


def attempt(watch: Watch, key: str, record: StoredRecord) -> Exception | None:
    """Call up to three times (once for a trigger); the last error, None on success."""
    failure: Exception | None = None
    for _ in range(1 if record.version < 0 else ATTEMPTS):
        try:
            watch.callback(key, record)
            return None
        except Exception as error:
            failure = error
    return failure


class Upcalls:
    """The watches and what waits to be delivered to them.

    One thread delivers at a time, so that the order of commits is the order of upcalls; what is put meanwhile, also by
    a callback, waits its turn and is delivered by that thread.
    """

    def __init__(self, park: Callable[[str, StoredRecord, Exception], None]) -> None:
        self._park = park
        self._watches: tuple[Watch, ...] = ()
        self._matching: dict[str, tuple[Watch, ...]] = {}
        self._waiting: deque[tuple[Watch, str, StoredRecord]] = deque()
        self._delivering = threading.Lock()
        self._changing = threading.Lock()

    def add(self, watch: Watch) -> None:
        """Call this one, too, from the next commit on."""
        with self._changing:
            self._watches += (watch,)
            self._matching = {}

    def remove(self, watch: Watch) -> None:
        """Call this one no more."""
        with self._changing:
            self._watches = tuple(one for one in self._watches if one is not watch)
            self._matching = {}

    def matching(self, key: str) -> tuple[Watch, ...]:
        """Who watches the key; parked upcalls are seen only by who asks for them."""
        if not self._watches:
            return ()
        table = self._matching  # taken before the watches: a change meanwhile throws this table away
        found = table.get(key)
        if found is None:
            dead = under(DEAD, key)
            found = tuple(w for w in self._watches if under(w.prefix, key) and (not dead or under(DEAD, w.prefix)))
            table[key] = found
        return found

    def add_waiting(self, watch: Watch, key: str, record: StoredRecord) -> None:
        """Queue an upcall; the caller holds the writer's lock, so that the queue has the order of commits."""
        self._waiting.append((watch, key, record))

    def deliver(self) -> None:
        """Deliver all that waits, unless another thread (or a callback's caller) is at it."""
        while self._waiting and self._delivering.acquire(blocking=False):
            try:
                while self._waiting:
                    watch, key, record = self._waiting.popleft()
                    failure = attempt(watch, key, record)
                    if failure is not None:
                        self.failed(key, record, failure)
            finally:
                self._delivering.release()

    def failed(self, key: str, record: StoredRecord, failure: Exception) -> None:
        """Park what could not be delivered under /dead, unless it is a trigger or lies there already."""
        log.warning("upcall for %s version %d failed: %r", key, record.version, failure)
        if record.version >= 0 and not under(DEAD, key):
            try:
                self._park(key, record, failure)
            except Exception:
                log.exception("%s version %d could not be parked", key, record.version)
