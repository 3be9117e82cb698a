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
    """One stored version of an object; times in ns since the epoch.

    Attributes:
        version: the writer's number, rising per key; -1 for a record that was triggered and not stored.
        ts: commit time, by which as-of reads go.
        event_time: when what it describes happened, as the putting code said.
        writer_epoch: which writer of the store put it, counted from 1.
        value: the bytes.
    """

    version: int
    ts: int
    event_time: int
    writer_epoch: int
    value: bytes


def encode_record(place: bytes, event_time: int, epoch: int, value: bytes) -> bytes:
    """Return the bytes that the log holds for a value: header, CRC-32 over place, header and value, then the value.

    Args:
        place: the record's key in the log, 24 bytes (key id, ts, version).
        event_time: ns since the epoch.
        epoch: number of the writer.
        value: the object's bytes.
    """
    header = HEADER.pack(event_time, epoch, 0)
    return header + DIGEST.pack(crc32(value, crc32(header, crc32(place)))) + value


def decode_record(place: bytes, raw: bytes) -> StoredRecord:
    """Decode one record of the log and verify its CRC-32 checksum.

    Args:
        place: its key in the log, 24 bytes (key id, ts, version).
        raw: its bytes there, as `encode_record` made them.

    Raises:
        Corrupt: `place` has not 24 bytes, `raw` is too short, or the checksum does not match.
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
