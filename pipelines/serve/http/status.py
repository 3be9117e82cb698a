"""What the server says of itself, kept in the store, so that whoever asks does not disturb it."""

from __future__ import annotations

import os

import msgspec

STATUS = "status"


class Status(msgspec.Struct, array_like=True):
    """The server as it was a tenth of a second ago.

    Attributes:
        wall_time: when that was.
        process: its id.
        epoch: its claim on `control`.
        counts: what came and what became of it, by name.
        waiting: messages that wait for the broker.
    """

    wall_time: float
    process: int
    epoch: int
    counts: dict[str, int]
    waiting: int


_DECODER = msgspec.msgpack.Decoder(Status)


def status(now: float, epoch: int, counts: dict[str, int], waiting: int) -> bytes:
    """The status as it is kept."""
    return msgspec.msgpack.encode(Status(now, os.getpid(), epoch, dict(counts), waiting))


def read_status(raw: bytes | None) -> Status | None:
    """The status that was kept; None where no server has run yet."""
    return None if raw is None else _DECODER.decode(raw)
