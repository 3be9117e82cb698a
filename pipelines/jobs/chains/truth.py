"""What a chain's counts come to, by the records that were sent, and what they were read to be."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, TypeVar


class ChainRecord(Protocol):
    """A record of a chain's source: a named tuple."""

    @property
    def seq(self) -> int:
        """Its number."""

    @property
    def at(self) -> float:
        """When it was made, epoch seconds."""

    def _asdict(self) -> dict[str, Any]: ...


R = TypeVar("R", bound=ChainRecord)
Counts = Mapping[str, tuple[int, int]]
"""By key of a result: records that count there, and the sum of their numbers."""


def true_counts(records: Iterable[R], keys_of: Callable[[R], Iterable[str]]) -> Counts:
    """Return what the last results say of some records.

    Args:
        records: that were sent.
        keys_of: from a record to the keys of the results at which it counts.
    """
    found: dict[str, tuple[int, int]] = {}
    for one in records:
        for key in keys_of(one):
            n, total = found.get(key, (0, 0))
            found[key] = n + 1, total + one.seq
    return found


def read_count(key: bytes | None, value: bytes | None) -> tuple[str, int, int]:
    """Return the key, the records and the sum of their numbers that a result tells, as `encoded` writes it."""
    said = json.loads(value or b"{}")
    return (key or b"").decode(), said["n"], said["seq_sum"]


def newest_counts(results: Iterable[tuple[str, int, int]]) -> Counts:
    """Return what results say in the end: counts of a key only grow.

    Args:
        results: as `read_count`.
    """
    found: dict[str, tuple[int, int]] = {}
    for key, n, total in results:
        found[key] = max(found.get(key, (0, 0)), (n, total))
    return found


def wrong_keys(found: Counts, true: Counts) -> set[str]:
    """Return the keys at which counts are not what they should be, missing and unknown ones among them."""
    return {key for key in found.keys() | true.keys() if found.get(key) != true.get(key)}
