"""The thread that flushes a store every 100 ms and frees the slots of dead readers every minute."""

from __future__ import annotations

import logging
import threading
from typing import Self

from pipelines.store.disk.errors import Closed, Fenced, StoreError
from pipelines.store.writing.writer import Store

EVERY_S = 0.1
CLEAR_ROUNDS = 600
log = logging.getLogger(__name__)


class Flusher:
    """Flushes a store every 0.1 s (by default) from a thread of its own: `with Flusher(store): ...`.

    End it before the store is closed. Each 600th flush also frees the slots of dead readers. Errors are logged; after
    `Closed` or `Fenced` the thread ends.
    """

    def __init__(self, store: Store, every_s: float = EVERY_S) -> None:
        self._store, self._every_s = store, every_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="flusher", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        rounds, troubled = 0, False
        while not self._stop.wait(self._every_s):
            rounds += 1
            try:
                self._store.flush()
                if rounds % CLEAR_ROUNDS == 0:
                    self._store.clear_dead_readers()
                troubled = False
            except (Closed, Fenced) as error:
                log.error("the store is flushed no more: %s", error)
                return
            except StoreError as error:
                if not troubled:  # once per trouble, not ten times a second
                    log.error("the store could not be flushed: %s", error)
                troubled = True
