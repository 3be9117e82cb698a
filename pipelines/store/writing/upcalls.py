"""Upcalls in the thread that put: after the commit, in commit order, three attempts each."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable

from pipelines.store.disk.records import StoredRecord
from pipelines.store.disk.retention import is_under

ATTEMPTS = 3
DEAD = "/dead"
Callback = Callable[[str, StoredRecord], object]
"""Called with a key and its record; a triggered record has version -1."""
log = logging.getLogger(__name__)


class Upcalls:
    """Callbacks by key prefix, and the queue of calls that wait to be delivered to them.

    One thread delivers at a time, so that the order of commits is the order of upcalls; what is put meanwhile, also by
    a callback, waits its turn and is delivered by that thread.
    """

    def __init__(self, park: Callable[[str, StoredRecord, Exception], None]) -> None:
        self._park = park
        self._watches: tuple[tuple[str, Callback], ...] = ()
        self._by_key: dict[str, tuple[Callback, ...]] = {}
        self._waiting: deque[tuple[Callback, str, StoredRecord]] = deque()
        self._delivering = threading.Lock()

    def add(self, prefix: str, callback: Callback) -> None:
        """Register a callback for keys at or under the path, from the next commit on; needs the writer's lock."""
        self._watches += ((prefix, callback),)
        self._by_key = {}

    def callbacks_for(self, key: str) -> tuple[Callback, ...]:
        """Return the callbacks that watch a key, in the order they were added; empty if nobody does.

        A key under `/dead` (a note on an upcall that failed) is watched only by callbacks added for `/dead` or below.
        """
        if not self._watches:
            return ()
        by_key = self._by_key  # taken before the watches: `add` meanwhile throws this table away
        callbacks = by_key.get(key)
        if callbacks is None:
            dead = is_under(DEAD, key)
            callbacks = tuple(
                callback
                for prefix, callback in self._watches
                if is_under(prefix, key) and (not dead or is_under(DEAD, prefix))
            )
            by_key[key] = callbacks
        return callbacks

    def enqueue(self, key: str, record: StoredRecord, callbacks: tuple[Callback, ...]) -> None:
        """Queue one call per callback; needs the writer's lock, so that the queue has the order of commits."""
        self._waiting.extend((callback, key, record) for callback in callbacks)

    def deliver(self) -> None:
        """Call the queued callbacks in this thread until the queue is empty; return at once if another thread delivers.

        A callback that raises is called up to three times in all, for a triggered record once. What it raises is
        logged, not raised; for a stored record whose third call failed a note is put under `/dead`.
        """
        while self._waiting and self._delivering.acquire(blocking=False):
            try:
                while self._waiting:
                    self._attempt(*self._waiting.popleft())
            finally:
                self._delivering.release()

    def _attempt(self, callback: Callback, key: str, record: StoredRecord) -> None:
        """Call up to three times (once for a trigger), then park under /dead what is no trigger and not from there."""
        failure: Exception | None = None
        for _ in range(1 if record.version < 0 else ATTEMPTS):
            try:
                callback(key, record)
                return
            except Exception as error:
                failure = error
        log.warning("upcall for %s version %d failed: %r", key, record.version, failure)
        if failure is not None and record.version >= 0 and not is_under(DEAD, key):
            try:
                self._park(key, record, failure)
            except Exception:
                log.exception("%s version %d could not be parked", key, record.version)
