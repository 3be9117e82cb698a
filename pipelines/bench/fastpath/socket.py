"""Put over the Unix socket until the forecast is back, in turn with a bare echo and with a Redis stream.

One client takes the time of every frame: from its bytes leaving until the whole answer is back.
"""

from __future__ import annotations

import select
import socket
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter_ns

from pipelines.bench.fastpath.load import JOBS, settings
from pipelines.bench.fastpath.local import frozen
from pipelines.bench.fastpath.peers.redis import RedisPeer
from pipelines.bench.fastpath.served import Frames, ServedProcess, check_forecasts, echo
from pipelines.serve.models.model_set import ModelSet
from pipelines.serve.net.wire import unframe
from pipelines.stack.stack import Stack

PER_S = 1000.0
_SPIN_S = 0.0002
"""Before a send is due the client stops sleeping, because a sleep ends late."""


def in_turn(
    folder: Path, made: ModelSet, runs: int, events: int, warm: int, scheduled_events: int = 0,
    peers: Mapping[str, bool] | None = None,
) -> dict[str, list[list[int]]]:  # fmt: skip
    """Nanoseconds of every event, a list per run, of what runs in turn.

    Args:
        folder: for store and sockets.
        made: the champion.
        runs: of each.
        events: per run, in a closed loop, of one job.
        warm: events before those that count.
        scheduled_events: per run at 1,000 a second over 16 jobs; none: not measured.
        peers: Redis streams measured besides, by name, and whether each is as durable as ours.

    Returns:
        `floor` and `socket`; `floor_scheduled` and `socket_scheduled`; the peers by name.
    """
    jobs = JOBS[: scheduled_events or 1]  # no more of them than samples
    found: dict[str, list[list[int]]] = defaultdict(list)
    with Stack(settings(folder, jobs), ()) as stack:
        theirs = {name: RedisPeer(stack, name, made, durable) for name, durable in (peers or {}).items()}
        server = ServedProcess(stack, made, jobs)
        with server.socket, echo(stack) as floor:
            for count in (warm, *[events] * runs):
                frames = server.feed.frames(count, jobs[:1])
                with frozen():
                    found["floor"].append(closed(floor, frames)[0])
                    took, answers = closed(server.socket, frames)
                    for name, peer in theirs.items():
                        found[name].append(peer.closed(count))
                check_forecasts(frames, answers)
                found["socket"].append(took)
                frames = server.feed.frames(scheduled_events, jobs)
                with frozen():
                    found["floor_scheduled"].append(scheduled(floor, frames, PER_S)[0])
                    took, answers, _ = scheduled(server.socket, frames, PER_S)
                check_forecasts(frames, answers)
                found["socket_scheduled"].append(took)
    return {name: lists[1:] for name, lists in found.items()}


def closed(client: socket.socket, frames: Frames) -> tuple[list[int], list[bytes]]:
    """Send each frame when the one before is answered: nanoseconds and answers."""
    took, answers = [], []
    for _, frame in frames:
        began = perf_counter_ns()
        client.sendall(frame)
        data = _more(client)
        while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "little"):
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
            found = unframe(coming)
            answers += found
            came += [perf_counter_ns()] * len(found)
        elif sent == count:
            raise TimeoutError(f"{count - len(answers)} of {count} frames were not answered in 10 s")
    return [at - (start + number * period) for number, at in enumerate(came)], answers, came


def _more(client: socket.socket) -> bytes:
    data = client.recv(1 << 18)
    if not data:
        raise ConnectionError("the other side closed the connection; its log says why")
    return data
