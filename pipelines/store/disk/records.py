"""One version of one object: how it looks to a caller and as bytes in the log."""

from __future__ import annotations

import struct
from typing import Literal, NamedTuple
from zlib import crc32

from pipelines.store.disk.errors import Corrupt
from pipelines.store.disk.layout import DIGEST, HEADER, PLACE, VALUE_AT

Verdict = Literal["applied", "duplicate", "stale"]
Kind = Literal["volatile", "persistent"]
APPLIED: Verdict = "applied"
DUPLICATE: Verdict = "duplicate"
STALE: Verdict = "stale"
TRIGGERED = -1
"""The version of a record that was triggered, not stored."""


class StoredRecord(NamedTuple):
    """A version of an object; times in ns since the epoch.

    `ts` is when the store knew it (training and backtests read by it), `event_time` when it happened.
    """

    version: int
    ts: int
    event_time: int
    writer_epoch: int
    value: bytes


def packed(place: bytes, event_time: int, epoch: int, value: bytes) -> bytes:
    """The bytes in the log for a value at `place` (key id, ts, version).

    The digest is a CRC-32 over place, header and value: it finds torn and foreign pages, not forgers.
    """
    header = HEADER.pack(event_time, epoch, 0)
    return header + DIGEST.pack(crc32(value, crc32(header, crc32(place)))) + value


def unpacked(place: bytes, raw: bytes) -> StoredRecord:
    """The record at `place`.

    Raises:
        Corrupt: the digest is not that of the bytes.
    """
    try:
        _, ts, version = PLACE.unpack(place)
        event_time, epoch, _ = HEADER.unpack_from(raw)
        (digest,) = DIGEST.unpack_from(raw, HEADER.size)
    except struct.error as error:
        raise Corrupt(f"a record of {len(raw)} bytes at {place.hex()}: {error}") from None
    value = raw[VALUE_AT:]
    if crc32(value, crc32(raw[: HEADER.size], crc32(place))) != digest:
        raise Corrupt(f"version {version} at ts {ts}: the digest is not that of the bytes. Rebuild the environment.")
    return StoredRecord(version, ts, event_time, epoch, value)
