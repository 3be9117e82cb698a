"""A subscriber with a thread of its own, which reads behind the log: however slow it is, no put waits for it."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from pipelines.store.disk.errors import StoreError
from pipelines.store.disk.records import StoredRecord
from pipelines.store.writing.upcalls import Upcalls, Watch, attempt

if TYPE_CHECKING:
    from pipelines.store.reading.reads import Reads

Mode = Literal["all", "latest"]
TRIGGERS = 1024
"""Triggers that wait for a slow subscriber; older ones are lost, as a trigger may be."""
log = logging.getLogger(__name__)


class Subscription(threading.Thread):
    """Delivers to one callback; `failure` says why it ended by itself, None while all is well.

    Only the names of changed keys and the last version delivered of each are held, never values.
    """

    def __init__(
        self,
        store: Reads,
        upcalls: Upcalls,
        watch: Watch,
        mode: Mode,
        newest: Mapping[str, int],
        from_version: int | None,
    ) -> None:
        super().__init__(name=f"subscription {watch.prefix}", daemon=True)
        self.intake = Watch(watch.prefix, self._take)
        self.failure: StoreError | None = None
        self._store, self._upcalls, self._watch, self._mode = store, upcalls, watch, mode
        self._news = threading.Condition()
        self._ended = False
        self._triggers: deque[tuple[str, StoredRecord]] = deque(maxlen=TRIGGERS)
        self._before = -1 if from_version is None else from_version - 1
        self._delivered = dict(newest) if from_version is None else dict.fromkeys(newest, self._before)
        self._changed: dict[str, None] = {} if from_version is None else dict.fromkeys(newest)
        if mode == "all":
            for key in self._changed:
                store.replay(key, self._before, 0)

    def run(self) -> None:
        """Deliver until ended."""
        while (work := self._next()) is not None:
            key, record = work
            try:
                if record is not None:
                    self._call(key, record)
                elif self._mode == "latest":
                    self._deliver_newest(key)
                else:
                    self._deliver_all(key)
            except StoreError as error:
                if not self._ended:
                    self.failure = error
                    log.error("subscription to %s ended: %s", self._watch.prefix, error)
                    self._upcalls.remove(self.intake)
                return

    def end(self) -> None:
        """Deliver no more; returns once the callback is not running."""
        self._upcalls.remove(self.intake)
        with self._news:
            self._ended = True
            self._news.notify()
        if threading.current_thread() is not self and self.is_alive():
            self.join()

    def _take(self, key: str, record: StoredRecord) -> None:
        with self._news:
            if record.version < 0:
                self._triggers.append((key, record))
            else:
                self._changed[key] = None
            self._news.notify()

    def _next(self) -> tuple[str, StoredRecord | None] | None:
        with self._news:
            self._news.wait_for(lambda: self._ended or self._triggers or self._changed)
            if self._ended:
                return None
            if self._triggers:
                return self._triggers.popleft()
            key = next(iter(self._changed))
            del self._changed[key]
            return key, None

    def _deliver_newest(self, key: str) -> None:
        record = self._store.get(key)
        if record is not None and record.version > self._delivered.get(key, self._before):
            self._call(key, record)

    def _deliver_all(self, key: str) -> None:
        while not self._ended:
            records = self._store.replay(key, self._delivered.get(key, self._before), 64)
            if not records:
                return
            for record in records:
                if self._ended:
                    return
                self._call(key, record)

    def _call(self, key: str, record: StoredRecord) -> None:
        failure = attempt(self._watch, key, record)
        if failure is not None:
            self._upcalls.failed(key, record, failure)
        if record.version >= 0:
            self._delivered[key] = record.version
