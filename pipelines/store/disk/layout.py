"""Where each byte lies: the trees of one LMDB environment and their keys and values, all integers big-endian.

`log`     (key id, ts, version)  -> event time, writer epoch, 0, digest, then the value
`keys`    key string             -> key id
`floors`  key id                 -> newest version pruned, ts of the oldest version kept
`sets`    name of affinity set   -> its members, one per line
`meta`    name                   -> bytes; the empty-byte name is the head: ts, durable ts, low, epoch, seal
`outbox`  number                 -> an entry that waits to be sent

A design with a `log` by version and a second tree by time was considered. One is enough, as per key versions and ts
rise together: the newest and an as-of read are one seek, and a version is found by its place between two others.
That halves what a put writes.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

SCHEMA = b"tidecast-store-2"
"""Counted up with every change of a tree, or of a value that the fast path keeps: what is older would be misread."""
TREES = ("log", "keys", "floors", "sets", "meta", "outbox")
HEAD = b"\x00head"
SCHEMA_NAME = b"\x00schema"
LAST = (1 << 64) - 1

PLACE = struct.Struct(">QQQ")
"""Key of the log: key id, ts, version."""
ID = struct.Struct(">Q")
PAIR = struct.Struct(">QQ")
HEADER = struct.Struct(">QIH")
"""Before each value: event time (ns), writer epoch, 0; then the digest."""
DIGEST = struct.Struct(">I")
VALUE_AT = HEADER.size + DIGEST.size
_HEAD = struct.Struct(">QQQQQ")


class Head(NamedTuple):
    """The head record of one environment; times in ns since the epoch, 0 before any.

    Attributes:
        ts: newest commit this environment knows of.
        flushed: newest commit that survives a crash of the host.
        low: oldest time that an as-of read may ask for.
        epoch: number of the writer that wrote it, counted from 1.
        sealed: newest commit to the durable environment before it; by it a reader of both environments sees whether its
            two snapshots belong together.
    """

    ts: int = 0
    flushed: int = 0
    low: int = 0
    epoch: int = 0
    sealed: int = 0


def pack_head(head: Head) -> bytes:
    """Return the head as 40 bytes, big-endian."""
    return _HEAD.pack(*head)


def unpack_head(raw: bytes) -> Head:
    """Return the head that `pack_head` made.

    Raises:
        struct.error: other than 40 bytes.
    """
    return Head(*_HEAD.unpack(raw))
