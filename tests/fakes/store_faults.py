"""Faults that a hurried author of a store could make, each planted by patching the real one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipelines.store import Store, StoreError
from pipelines.store.disk.layout import PAIR
from pipelines.store.disk.seek import find_as_of, iterate_versions
from pipelines.store.reading import cuts
from pipelines.store.reading.check import check_environment
from pipelines.store.writing import commit
from pipelines.store.writing.event import Event


def in_process(folder: Path, name: str) -> str:
    """The same check as after a crash, without the process of its own that keeps a damaged page from ending us."""
    if (folder / name / "data.mdb").exists():
        check_environment(folder / name, deep=True)
    return ""


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except StoreError as error:
        return type(error).__name__


def as_of_off_by_one(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cuts, "find_as_of", lambda cursor, prefix, t: find_as_of(cursor, prefix, t - 1) if t else None)


def ts_not_monotone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(commit, "next_ts", lambda now, last: now)


def prune_without_anchor(patch: pytest.MonkeyPatch) -> None:
    def all_of_it(txn: Any, env: Any, prefix: bytes, surplus: int, before: int) -> int:
        with txn.cursor(db=env.log) as cursor:
            doomed = [place for place, _, ts in iterate_versions(cursor, prefix, 0, 99) if ts <= before]
        for place in doomed:
            txn.delete(place, db=env.log)
            txn.put(prefix, PAIR.pack(0, 0), db=env.floors)
        return len(doomed)

    patch.setattr(commit, "delete_oldest", all_of_it)


def stale_accepted(patch: pytest.MonkeyPatch) -> None:
    real = Event._verdict

    def hurried(self: Event, staged: Any) -> Any:
        verdict = real(self, staged)
        return "applied" if verdict == "stale" else verdict

    patch.setattr(Event, "_verdict", hurried)


def duplicate_not_compared(patch: pytest.MonkeyPatch) -> None:
    real = Event._verdict

    def hurried(self: Event, staged: Any) -> Any:
        verdict = outcome(lambda: real(self, staged))
        return "duplicate" if verdict == "Conflict" else verdict

    patch.setattr(Event, "_verdict", hurried)


def event_on_duplicate(patch: pytest.MonkeyPatch) -> None:
    real = Store.put

    def hurried(self: Store, key: str, value: bytes, version: int, kind: Any = "volatile") -> Any:
        verdict = real(self, key, value, version, kind)
        if verdict == "duplicate":
            for callback in self._upcalls.callbacks_for(key):
                callback(key, self.get(key, version))  # type: ignore[arg-type]
        return verdict

    patch.setattr(Store, "put", hurried)


def no_stability_check(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cuts, "check_stable", lambda t, frontier: None)


FAULTS = (
    as_of_off_by_one,
    ts_not_monotone,
    prune_without_anchor,
    stale_accepted,
    duplicate_not_compared,
    event_on_duplicate,
    no_stability_check,
)
