"""Two environments read as one: frontier, bound, and snapshots that span both."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import lmdb

from pipelines.store.disk.environment import LmdbEnvironment, as_store_error
from pipelines.store.disk.errors import NotStable, Pruned
from pipelines.store.disk.layout import PAIR, Head
from pipelines.store.disk.records import StoredRecord
from pipelines.store.disk.seek import find_as_of

P = ParamSpec("P")
R = TypeVar("R")


def raising_store_errors(call: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function so that an `lmdb.Error` raised in it comes out as a `StoreError` (see `as_store_error`).

    Every other exception passes unchanged. Not for generators, whose errors come after the call.
    """

    @wraps(call)
    def call_and_convert(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return call(*args, **kwargs)
        except lmdb.Error as error:
            raise as_store_error(error, "store") from error

    return call_and_convert


class Cuts:
    """Consistent reads over a hot and a durable environment; each key lives in one of the two."""

    hot: LmdbEnvironment
    durable: LmdbEnvironment
    _reading: threading.RLock

    def _look(self) -> None:
        """See to it that the environments are the writer's present ones."""

    @raising_store_errors
    def frontier(self) -> tuple[int, int]:
        """Return the times (ns since the epoch) of the newest commit and of the newest that survives a host crash.

        Reads as of a time up to the first never change their answer.

        Raises:
            Closed: the store or reader was closed.
        """
        with self._both() as sides:
            return max(head.ts for _, _, head in sides), sides[1][2].flushed

    @raising_store_errors
    def low(self) -> int:
        """Return the oldest time (ns since the epoch) that every key can be asked for; 0 if nothing was pruned.

        Raises:
            Closed: the store or reader was closed.
        """
        with self._both() as sides:
            return max(head.low for _, _, head in sides)

    @contextmanager
    def _both(self) -> Iterator[list[tuple[LmdbEnvironment, Any, Head]]]:
        """Durable and hot environment, transaction and head, as one cut: neither lacks a commit the other knows of.

        The durable one is opened first, so the hot one has all that came before it; the hot head names the newest
        durable commit before it, and if that is not in the first, a commit fell between, and we look again.
        """
        with self._reading:
            while True:
                self._look()  # each time: of two files of which one was begun anew, no cut can be had
                with self.durable.begin_read() as durable, self.hot.begin_read() as hot:
                    heads = self.durable.read_head(durable), self.hot.read_head(hot)
                    if heads[1].sealed <= heads[0].ts:
                        yield [(self.durable, durable, heads[0]), (self.hot, hot, heads[1])]
                        return

    def _cut(self, keys: Sequence[str], t: int | None) -> dict[str, StoredRecord | None]:
        """The records of keys as of t (ns), or as of the newest commit."""
        with self._both() as sides:
            frontier = max(head.ts for _, _, head in sides)
            check_stable(frontier if t is None else t, frontier)
            return {key: _answer(sides, key, frontier if t is None else t) for key in keys}


def check_stable(t: int, frontier: int) -> None:
    """Check that a commit time `t` is not above the frontier (newest commit), both ns since the epoch.

    Above it a later commit could still change what a read as of `t` answers.

    Raises:
        NotStable: t is above the frontier.
    """
    if t > frontier:
        raise NotStable(f"time {t} is {t - frontier} ns above the frontier {frontier}; ask again later")


def _answer(sides: Sequence[tuple[LmdbEnvironment, Any, Head]], key: str, t: int) -> StoredRecord | None:
    """The record as of t, None if there was none.

    Raises:
        Pruned: t is below the bound of the key's environment, or of the key, whose own retention took older versions.
    """
    for env, txn, head in sides:
        prefix = env.key_id(txn, key)
        if prefix is None:
            continue
        if t < head.low:
            raise _below(key, t, head.low)
        with txn.cursor(db=env.log) as cursor:
            record = find_as_of(cursor, prefix, t)
        if record is None and (floor := txn.get(prefix, db=env.floors)) is not None:
            raise _below(key, t, PAIR.unpack(floor)[1])
        return record
    low = max(head.low for _, _, head in sides)
    if t < low:
        raise _below(key, t, low)
    return None


def _below(key: str, t: int, low: int) -> Pruned:
    return Pruned(f"{key}: time {t} is below {low}, the oldest that is kept")
