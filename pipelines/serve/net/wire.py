"""What goes over the fast path's Unix socket: frames of a length (u32, little-endian) and a msgpack message.

A sample travels as the very bytes it has on `metrics`, a forecast as the record it is in the store. Answers come in the
order of the requests of a connection, so that a client may send several before it reads.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Self

import msgspec

if TYPE_CHECKING:
    from pipelines.store import StoredRecord

MOST = 1 << 20
"""Longest frame, bytes."""
ROOM = MOST - 64
"""Longest value that a frame has room for."""
MOST_VERSIONS = 10_000
"""Versions in one answer; a client that wants more asks again from the last one on."""
_LENGTH = struct.Struct("<I")


class WireError(ValueError):
    """Bytes that are no frame ("oversized") or no message ("frame") of this protocol; `code` says which."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class _Message(msgspec.Struct, array_like=True):
    """Its tag and its fields in a row."""


class Put(_Message, tag=1):
    """Bring a sample (JSON, as on `metrics`); answered by `PutResult`."""

    sample: bytes


class Get(_Message, tag=2):
    """Ask for the newest version of a key, or the one named; answered by `Found` or `Absent`."""

    key: str
    version: int | None = None


class AsOf(_Message, tag=3):
    """Ask for a key as of a commit time t, ns since the epoch; answered by `Found` or `Absent`."""

    key: str
    t: int


class Versions(_Message, tag=4):
    """Ask for the kept versions of a key from `lo` to `hi`, both included; answered by `VersionList`."""

    key: str
    lo: int = 0
    hi: int = 2**63 - 1


class Frontier(_Message, tag=5):
    """Ask for the times of the newest commit and of the newest flushed; answered by `FrontierTimes`."""


class Ping(_Message, tag=6):
    """Ask for the same payload back, as `Pong`; nothing else happens."""

    payload: bytes = b""


class WhatIf(_Message, tag=7):
    """Ask for the forecast if the next window had this rate, records/s; answered by `WireForecast`. Writes nothing."""

    job: str
    rate: float


class Found(_Message, tag=16):
    """One version of a key: its number, commit and event time (ns since the epoch), and value."""

    version: int
    ts: int
    event_time: int
    value: bytes

    @classmethod
    def of(cls, record: StoredRecord) -> Self:
        """Copy version, times and value of a store's record."""
        return cls(record.version, record.ts, record.event_time, record.value)


class PutResult(_Message, tag=17):
    """What a sample did.

    Attributes:
        verdict: "applied" (it closed windows), "pending" (none yet), "duplicate" or "stale".
        forecasts: records of `/forecast`: what it caused, or for a duplicate what it had caused; the newest, where a
            sample closed more windows than a frame has room for.
        left_out: how many older ones that are; they are in the store.
    """

    verdict: str
    forecasts: list[Found]
    left_out: int = 0


def fit_put_result(verdict: str, forecasts: list[Found]) -> PutResult:
    """Build the answer to a sample, with as many of its newest forecasts as fit a frame (1 MiB).

    Args:
        verdict: as in `PutResult`.
        forecasts: oldest first; those left out are counted in `left_out`.
    """
    room, first = ROOM, len(forecasts)
    while first and (room := room - len(forecasts[first - 1].value) - 64) >= 0:
        first -= 1
    return PutResult(verdict, forecasts[first:], first)


class Absent(_Message, tag=18):
    """There is no such version."""


class VersionList(_Message, tag=19):
    """(version, commit time in ns) of at most 10,000 versions, rising in both."""

    versions: list[tuple[int, int]]


class FrontierTimes(_Message, tag=20):
    """Times (ns since the epoch) of the newest commit and of the newest that is flushed to the disk."""

    ts: int
    durable_ts: int


class Pong(_Message, tag=21):
    """A ping's payload."""

    payload: bytes


class WireForecast(_Message, tag=22):
    """Quantiles (horizon, levels) in records/s, and the levels between 0 and 1; both empty where no model serves."""

    quantiles: list[list[float]]
    levels: list[float]


class Refused(_Message, tag=23):
    """The server's refusal: a code (see the client's `RefusedError`), and what is wrong and would be right."""

    code: str
    message: str


Request = Put | Get | AsOf | Versions | Frontier | Ping | WhatIf
Answer = Found | PutResult | Absent | VersionList | FrontierTimes | Pong | WireForecast | Refused
_ENCODER = msgspec.msgpack.Encoder()
_REQUEST, _ANSWER = msgspec.msgpack.Decoder(Request), msgspec.msgpack.Decoder(Answer)


def encode_frame(message: Request | Answer) -> bytes:
    """Encode a message as a frame: its length (u32, little-endian), then the message as MessagePack.

    Raises:
        WireError: the message is longer than 1 MiB ("oversized").
        TypeError, OverflowError: a field holds what MessagePack cannot, such as an int above 2^64 - 1.
    """
    body = _ENCODER.encode(message)
    if len(body) > MOST:
        raise WireError("oversized", f"a message of {len(body)} bytes; at most {MOST} fit a frame")
    return _LENGTH.pack(len(body)) + body


def take_frames(buffer: bytearray) -> list[bytes]:
    """Remove the complete frames from the front of a buffer, and return their bodies in order; empty if there is none.

    What is left in the buffer is the beginning of the next frame. If that announces more than 1 MiB, the frames before
    it are returned and the next call raises.

    Raises:
        WireError: the first frame announces more than 1 MiB ("oversized"); close the connection, because the next
            frame cannot be found.
    """
    bodies: list[bytes] = []
    at = 0
    while len(buffer) - at >= 4:
        (length,) = _LENGTH.unpack_from(buffer, at)
        if length > MOST and not bodies:
            raise WireError("oversized", f"a frame of {length} bytes is announced; at most {MOST} are taken")
        if length > MOST or len(buffer) - at - 4 < length:
            break  # those before it are whole
        bodies.append(bytes(buffer[at + 4 : at + 4 + length]))
        at += 4 + length
    del buffer[:at]
    return bodies


def read_request(frame: bytes) -> Request:
    """Decode the request in a frame's body.

    Raises:
        WireError: it is none ("frame").
    """
    request: Request = _read(_REQUEST, frame, "request", "")
    return request


def read_answer(frame: bytes) -> Answer:
    """Decode the answer in a frame's body.

    Raises:
        WireError: it is none ("frame").
    """
    answer: Answer = _read(_ANSWER, frame, "answer", ". Is the server older?")
    return answer


def _read(decoder: msgspec.msgpack.Decoder[Any], frame: bytes, what: str, remedy: str) -> Any:
    try:
        return decoder.decode(frame)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise WireError("frame", f"{len(frame)} bytes are no {what}: {error}{remedy}") from None
