"""Where each byte lies: the trees of one LMDB environment and their keys and values, all integers big-endian.

`log`     (key id, ts, version)  -> event time, writer epoch, 0, digest, then the value
`keys`    key string             -> key id
`floors`  key id                 -> newest version pruned, ts of the oldest version kept
`sets`    name of affinity set   -> its members, one per line
`meta`    name                   -> bytes; the empty-byte name is the head: ts, durable ts, low, epoch, seal
`outbox`  number                 -> an entry that waits to be sent

Seed section 7 has a `log` by version and a second tree by time. One tree is enough, because per key versions and ts
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
    """What one environment says of itself: times in ns.

    `ts` is the newest commit it knows of, `flushed` the newest that a host crash cannot take, `low` the oldest time
    an as-of read may ask for, `epoch` counts writers, `sealed` is the newest commit to the durable environment that
    came before: by it a reader of both sees whether its two snapshots are one cut.
    """

    ts: int = 0
    flushed: int = 0
    low: int = 0
    epoch: int = 0
    sealed: int = 0


def pack_head(head: Head) -> bytes:
    """The head as bytes."""
    return _HEAD.pack(*head)


def unpack_head(raw: bytes) -> Head:
    """The head from bytes; struct.error if they are no head."""
    return Head(*_HEAD.unpack(raw))
