"""Finding records of one key in the log: newest, as of a time, by version, in order.

`prefix` is the key's id as eight bytes. Per key, versions and ts rise together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pipelines.store.disk.layout import ID, LAST, PAIR
from pipelines.store.disk.records import StoredRecord, decode_record


def find_as_of(cursor: Any, prefix: bytes, t: int = LAST - 1) -> StoredRecord | None:
    """Return the key's record with the greatest commit time <= t, by default its newest; None if there is none.

    Args:
        cursor: LMDB cursor over the log; it is moved.
        prefix: the key's id, 8 bytes.
        t: ns since the epoch, 0 to 2^64 - 2.

    Raises:
        Corrupt: the record's checksum does not match.
        lmdb.Error: the log cannot be read.
    """
    on_record = cursor.prev() if cursor.set_range(prefix + ID.pack(t + 1)) else cursor.last()
    if on_record:
        place, raw = cursor.item()
        if place[:8] == prefix:
            return decode_record(place, raw)
    return None


def iterate_versions(cursor: Any, prefix: bytes, lo: int, hi: int) -> Iterator[tuple[bytes, int, int]]:
    """Yield (the log's 24-byte key, version, commit time in ns) of a key's versions lo to hi, both included, ascending.

    Values are not read. The LMDB cursor stands on the record yielded last: read its value there, do not move it.
    `prefix` is the key's id, 8 bytes. LMDB's errors (lmdb.Error: the log cannot be read) come through.
    """
    on_record = _go_to_version(cursor, prefix, lo)
    while on_record:
        place = cursor.key()
        if place[:8] != prefix:
            return
        ts, version = PAIR.unpack_from(place, 8)
        if version > hi:
            return
        yield place, version, ts
        on_record = cursor.next()


def iterate_records(cursor: Any, prefix: bytes, lo: int, hi: int) -> Iterator[StoredRecord]:
    """Yield the key's records of versions lo to hi, both included, ascending.

    Raises:
        Corrupt: a record's checksum does not match.
    """
    for place, _, _ in iterate_versions(cursor, prefix, lo, hi):
        yield decode_record(place, cursor.value())


def _go_to_version(cursor: Any, prefix: bytes, version: int) -> bool:
    """Stand on the key's first record at or above the version; False when it has none.

    Between the two known records around it, the place is guessed by the version's share of the way (windows come at a
    steady pace, so the first guess is nearly always next to it), in turn with the middle, which bounds the steps.
    """
    if not cursor.set_range(prefix) or cursor.key()[:8] != prefix:
        return False
    low_ts, low = PAIR.unpack_from(cursor.key(), 8)
    if low >= version:
        return True
    on_record = cursor.prev() if cursor.set_range(prefix + ID.pack(LAST)) else cursor.last()
    assert on_record, "the key has a record"
    high_ts, high = PAIR.unpack_from(cursor.key(), 8)
    if high < version:
        return False
    by_share = True
    # Invariant: low < version ≤ high; the record sought has a ts in (low_ts, high_ts].
    while True:
        way = high_ts - low_ts
        step = way * (version - low) // (high - low) if by_share else way // 2
        by_share = not by_share
        cursor.set_range(prefix + ID.pack(low_ts + max(1, step)))
        ts, seen = PAIR.unpack_from(cursor.key(), 8)
        if seen < version:
            low_ts, low = ts, seen
            cursor.next()
            ts, seen = PAIR.unpack_from(cursor.key(), 8)
            if seen >= version:
                return True
            low_ts, low = ts, seen
        else:
            cursor.prev()
            before_ts, before = PAIR.unpack_from(cursor.key(), 8)
            if before < version:
                return bool(cursor.next())
            high_ts, high = before_ts, before
