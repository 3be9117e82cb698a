"""One key's answer as of a time, inside a read transaction."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import lmdb

from pipelines.store.disk.environment import LmdbEnvironment, translated
from pipelines.store.disk.errors import NotStable, Pruned
from pipelines.store.disk.layout import PAIR, Head
from pipelines.store.disk.records import StoredRecord
from pipelines.store.disk.seek import as_of

P = ParamSpec("P")
R = TypeVar("R")


def answer(txn: Any, env: LmdbEnvironment, head: Head, key: str, prefix: bytes, t: int) -> StoredRecord | None:
    """The record as of t (ns, not above the frontier), None if there was none.

    Raises:
        Pruned: t is below the bound of the environment, or of the key, whose own retention took older versions.
    """
    if t < head.low:
        raise below(key, t, head.low)
    with txn.cursor(db=env.log) as cursor:
        record = as_of(cursor, prefix, t)
    if record is None:
        floor = txn.get(prefix, db=env.floors)
        if floor is not None:
            raise below(key, t, PAIR.unpack(floor)[1])
    return record


def check_stable(t: int, frontier: int) -> None:
    """Refuse a time whose answer a later commit could still change.

    Raises:
        NotStable: t is above the frontier.
    """
    if t > frontier:
        raise NotStable(f"time {t} is {t - frontier} ns above the frontier {frontier}; ask again later")


def below(key: str, t: int, low: int) -> Pruned:
    """The error for a time below what is kept."""
    return Pruned(f"{key}: time {t} is below {low}, the oldest that is kept")


def typed(call: Callable[P, R]) -> Callable[P, R]:
    """The call with LMDB's errors as the store's."""

    @wraps(call)
    def typed_call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return call(*args, **kwargs)
        except lmdb.Error as error:
            raise translated(error, "store") from error

    return typed_call
