"""Two environments read as one: frontier, bound, and snapshots that span both."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from pipelines.store.disk.environment import LmdbEnvironment
from pipelines.store.disk.layout import Head
from pipelines.store.disk.records import StoredRecord
from pipelines.store.reading.answer import answer, below, check_stable, typed


class Cuts:
    """Two environments that together hold the objects; a key lives in one of them."""

    hot: LmdbEnvironment
    durable: LmdbEnvironment
    _reading: threading.RLock

    def _locate(self, key: str) -> tuple[LmdbEnvironment, bytes] | None:
        """Where the key lives and its id, None for a key never put."""
        raise NotImplementedError

    def _look(self) -> None:
        """See to it that the environments are the writer's present ones."""

    @typed
    def frontier(self) -> tuple[int, int]:
        """(ts, durable ts): answers up to the first never change; those up to the second survive a host crash."""
        with self._reading:
            durable, hot, heads = self._both()
            durable.abort()
            hot.abort()
        return max(head.ts for head in heads), heads[1].flushed

    @typed
    def low(self) -> int:
        """The oldest time that every key can be asked for."""
        with self._reading:
            durable, hot, heads = self._both()
            durable.abort()
            hot.abort()
        return max(head.low for head in heads)

    def _both(self) -> tuple[Any, Any, tuple[Head, Head]]:
        """Read transactions on both environments that are one cut: neither lacks a commit the other's head knows of.

        The durable one is opened first, so the hot one has all that came before it; the hot head names the newest
        durable commit before it, and if that is not in the first, a commit fell between, and we look again.
        """
        while True:
            self._look()  # each time: of two files of which one was begun anew, no cut can be had
            durable, hot = self.durable.read(), self.hot.read()
            heads = self.durable.head(durable), self.hot.head(hot)
            if heads[1].sealed <= heads[0].ts:
                return durable, hot, heads
            durable.abort()
            hot.abort()

    def _cut(self, keys: Sequence[str], t: int | None) -> dict[str, StoredRecord | None]:
        durable, hot, heads = self._both()
        with durable, hot:
            frontier, low = max(head.ts for head in heads), max(head.low for head in heads)
            check_stable(frontier if t is None else t, frontier)
            answers: dict[str, StoredRecord | None] = {}
            for key in keys:
                for txn, env, head in ((durable, self.durable, heads[0]), (hot, self.hot, heads[1])):
                    prefix = env.key_id(txn, key)
                    if prefix is not None:
                        answers[key] = answer(txn, env, head, key, prefix, frontier if t is None else t)
                        break
                else:
                    if t is not None and t < low:
                        raise below(key, t, low)
                    answers[key] = None
            return answers
