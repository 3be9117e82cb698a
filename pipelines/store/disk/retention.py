"""Bounded history: what a pool keeps, and the deletion of the oldest versions inside the put that outgrows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.store.disk.environment import LmdbEnvironment
from pipelines.store.disk.layout import PAIR

SLACK = 16
"""A key is looked at once in so many puts, so it may hold as many versions more than it keeps."""


@dataclass(frozen=True)
class Keep:
    """Retention rule: of each key at or under the path `prefix` the newest `versions` are kept.

    A key may hold up to `SLACK` more, because it is looked at once in so many puts.
    """

    prefix: str
    versions: int


def under(prefix: str, key: str) -> bool:
    """Return whether the key is the path `prefix` or lies below it; every key lies below "/"."""
    return prefix == "/" or key == prefix or key.startswith(prefix + "/")


def rule_for(rules: Sequence[Keep], key: str) -> Keep | None:
    """Return the rule with the longest prefix above the key; None without one."""
    return max((rule for rule in rules if under(rule.prefix, key)), key=lambda rule: len(rule.prefix), default=None)


def retire(txn: Any, env: LmdbEnvironment, prefix: bytes, surplus: int, before: int) -> int:
    """Delete a key's oldest versions within an open write transaction; its newest version always stays.

    Deleted are the oldest `surplus` versions, and further ones whose successor was committed at or before `before`: the
    newest version with ts <= `before` stays, so every read as of `before` or later keeps its answer. Reads as of a time
    before the oldest version left raise `Pruned` from then on (the key's floor is written).

    Args:
        txn: write transaction on `env`; the caller commits.
        env: where the key lives.
        prefix: the key's id, 8 bytes.
        surplus: may be 0 or less.
        before: ns since the epoch; 0 for none.

    Returns:
        How many versions were deleted.

    Raises:
        lmdb.Error: LMDB cannot write, for example because the map is full.
    """
    doomed = 0
    floor = b""
    with txn.cursor(db=env.log) as cursor:
        here = cursor.set_range(prefix) and cursor.key()
        while here and here[:8] == prefix:
            following = cursor.next() and cursor.key()
            if not following or following[:8] != prefix:
                break
            ts = PAIR.unpack_from(following, 8)[0]
            if doomed >= surplus and ts > before:
                break
            doomed += 1
            floor = here[16:] + following[8:16]
            here = following
        if doomed:
            cursor.set_range(prefix)
            for _ in range(doomed):
                cursor.delete()  # and stand on the next
            txn.put(prefix, floor, db=env.floors)
    return doomed
