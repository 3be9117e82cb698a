"""One client of a Unix socket that takes the time of every frame: in a closed loop, and on a fixed schedule.

The same for the fast path and for the bare echo. Span: bytes leave the client until the whole answer is back.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Sequence
from time import perf_counter_ns

Frames = Sequence[tuple[int, bytes]]
"""(window, frame)."""
_LENGTH = struct.Struct("<I")
_SPIN_S = 0.0002
"""Before a send is due the client stops sleeping, because a sleep ends late."""


def closed(client: socket.socket, frames: Frames) -> tuple[list[int], list[bytes]]:
    """Send each frame when the one before is answered: nanoseconds and answers."""
    took, answers = [], []
    for _, frame in frames:
        began = perf_counter_ns()
        client.sendall(frame)
        data = client.recv(1 << 18)
        while len(data) < 4 or len(data) < 4 + _LENGTH.unpack_from(data)[0]:
            data += _more(client)
        took.append(perf_counter_ns() - began)
        answers.append(data[4:])
    return took, answers


def scheduled(client: socket.socket, frames: Frames, per_s: float) -> tuple[list[int], list[bytes], list[int]]:
    """Send at fixed moments, answered or not (seed 9.6).

    Returns:
        Nanoseconds from the moment a frame was due until its answer, the answers, and when they came.
    """
    period, start = int(1e9 / per_s), perf_counter_ns() + 10_000_000
    took: list[int] = []
    answers: list[bytes] = []
    came: list[int] = []
    coming, sent, count = bytearray(), 0, len(frames)
    while len(answers) < count:
        due_s = (start + sent * period - perf_counter_ns()) / 1e9 if sent < count else 10.0
        if due_s <= 0:
            client.sendall(frames[sent][1])
            sent += 1
        elif sent == len(answers):
            if due_s > _SPIN_S:
                time.sleep(due_s - _SPIN_S)
        elif select.select([client], [], [], max(due_s - _SPIN_S, 0))[0]:
            coming += _more(client)
            now = perf_counter_ns()
            for answer in _whole(coming):
                took.append(now - (start + len(answers) * period))
                answers.append(answer)
                came.append(now)
        elif sent == count:
            raise TimeoutError(f"{count - len(answers)} of {count} frames were not answered in 10 s")
    return took, answers, came


def _more(client: socket.socket) -> bytes:
    data = client.recv(1 << 18)
    if not data:
        raise ConnectionError("the other side closed the connection; its log says why")
    return data


def _whole(coming: bytearray) -> list[bytes]:
    found, at = [], 0
    while len(coming) - at >= 4:
        (length,) = _LENGTH.unpack_from(coming, at)
        if len(coming) - at - 4 < length:
            break
        found.append(bytes(coming[at + 4 : at + 4 + length]))
        at += 4 + length
    del coming[:at]
    return found
