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
    """Of each key under the path `prefix` the newest `versions` are kept."""

    prefix: str
    versions: int


def under(prefix: str, key: str) -> bool:
    """Whether the key is the path `prefix` or lies below it; all keys lie below /."""
    return prefix == "/" or key == prefix or key.startswith(prefix + "/")


def rule_for(rules: Sequence[Keep], key: str) -> Keep | None:
    """The rule with the longest prefix above the key."""
    return max((rule for rule in rules if under(rule.prefix, key)), key=lambda rule: len(rule.prefix), default=None)


def retire(txn: Any, env: LmdbEnvironment, prefix: bytes, surplus: int, before: int) -> int:
    """Delete the key's oldest `surplus` versions, and further ones that were no longer the newest at `before` (ns).

    The newest version with ts ≤ before stays: it is the anchor, from which every read at or after `before` still has
    its answer. The floor says from which time on the key can be asked.

    Returns:
        How many went.
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
