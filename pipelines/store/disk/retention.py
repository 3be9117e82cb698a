"""Bounded history: what a pool keeps, and the deletion of the oldest versions inside the put that outgrows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.store.disk.environment import LmdbEnvironment
from pipelines.store.disk.layout import PAIR

SLACK = 16
"""A key is looked at once in so many puts at most, so it may hold as many versions more than it keeps."""


@dataclass(frozen=True)
class Keep:
    """Retention rule: of each key at or under the path `prefix` the newest `versions` are kept.

    A key may hold up to `slack` more, because it is looked at once in so many puts: no more than it keeps, as of few
    versions each may be large (a forecaster's state is 1.5 MB).
    """

    prefix: str
    versions: int

    @property
    def slack(self) -> int:
        """Puts of a key after which it is looked at."""
        return min(SLACK, max(self.versions, 1))


def is_under(prefix: str, key: str) -> bool:
    """Return whether the key is the path `prefix` or lies below it; every key lies below "/"."""
    return prefix == "/" or key == prefix or key.startswith(prefix + "/")


def rule_for(rules: Sequence[Keep], key: str) -> Keep | None:
    """Return the rule with the longest prefix above the key; None without one."""
    return max((rule for rule in rules if is_under(rule.prefix, key)), key=lambda rule: len(rule.prefix), default=None)


def delete_oldest(txn: Any, env: LmdbEnvironment, prefix: bytes, surplus: int, before: int) -> int:
    """Delete a key's oldest versions in an open write transaction, and return how many; the newest one always stays.

    A version goes if it is among the oldest `surplus`, or if its successor was committed at or before `before`. So
    reads as of `before` or later keep their answers; reads as of a time before the oldest version left raise `Pruned`.

    Args:
        txn: LMDB write transaction on `env`; the caller commits, or aborts it after an error.
        env: where the key lives.
        prefix: the key's id, 8 bytes.
        surplus: number of versions to delete whatever their age; 0 or less for none.
        before: commit time, ns since the epoch; 0 for none.

    Raises:
        lmdb.Error: LMDB cannot read or write, for example because the map is full.
    """
    count = 0
    floor = b""
    with txn.cursor(db=env.log) as cursor:
        place = cursor.set_range(prefix) and cursor.key()
        while place and place[:8] == prefix:
            successor = cursor.next() and cursor.key()
            if not successor or successor[:8] != prefix:
                break
            successor_ts = PAIR.unpack_from(successor, 8)[0]
            if count >= surplus and successor_ts > before:
                break
            count += 1
            floor = place[16:] + successor[8:16]  # newest version deleted, ts of the oldest left
            place = successor
        if count:
            cursor.set_range(prefix)
            for _ in range(count):
                cursor.delete()  # and stand on the next
            txn.put(prefix, floor, db=env.floors)
    return count
