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

from pipelines.bench.fastpath.load import JOBS, bench_settings
from pipelines.bench.fastpath.local import frozen_heap
from pipelines.bench.fastpath.peers.redis import RedisPeer
from pipelines.bench.fastpath.served import Frames, ServedProcess, check_forecasts, start_echo
from pipelines.serve.models.model_set import ModelSet
from pipelines.serve.net.wire import take_frames
from pipelines.stack.stack import Stack

PER_S = 1000.0  # frames per second
_SPIN_S = 0.0002
"""Before a send is due the client stops sleeping, because a sleep ends late."""


def time_by_socket(
    folder: Path, model: ModelSet, runs: int, events: int, warm: int, scheduled_events: int = 0,
    peers: Mapping[str, bool] | None = None,
) -> dict[str, list[list[int]]]:  # fmt: skip
    """Time puts over the Unix socket until the forecast is back, in turn with a bare echo and with Redis streams.

    Args:
        folder: for settings, store and sockets, which stay; a new one with a short path.
        model: that serves every job.
        runs: of every path.
        events: per run, of one job, each sent when the one before is answered.
        warm: events before the first run, which do not count.
        scheduled_events: per run at 1,000 a second over 16 jobs; 0 for none.
        peers: Redis streams measured besides: by name, whether its consumer keeps state and place with each forecast.

    Returns:
        Nanoseconds of every event, a list per run: `floor` (the echo) and `socket`; `floor_scheduled` and
        `socket_scheduled`, whose lists are empty without scheduled events; the peers by name.

    Raises:
        SettingsError, StackError, ProcessError, JavaError, ClientError, RefusedError: a process does not start or
            serve.
        ValueError, WireError: an answer is not the forecast of its sample's window.
        OSError: a file cannot be written; TimeoutError, ConnectionError: no answer in 10 s, or the connection was
            closed.
        redis.RedisError: a Redis server is gone.
    """
    jobs = JOBS[: scheduled_events or 1]  # at least one, at most one per sample
    took_ns: dict[str, list[list[int]]] = defaultdict(list)
    with Stack(bench_settings(folder, jobs), ()) as stack:
        theirs = {name: RedisPeer(stack, name, model, durable) for name, durable in (peers or {}).items()}
        server = ServedProcess(stack, model, jobs)
        with server.socket, start_echo(stack) as floor:
            for count in (warm, *[events] * runs):
                frames = server.feed.frames(count, jobs[:1])
                with frozen_heap():
                    took_ns["floor"].append(time_closed_loop(floor, frames)[0])
                    took, answers = time_closed_loop(server.socket, frames)
                    for name, peer in theirs.items():
                        took_ns[name].append(peer.time_closed_loop(count))
                check_forecasts(frames, answers)
                took_ns["socket"].append(took)
                frames = server.feed.frames(scheduled_events, jobs)
                with frozen_heap():
                    took_ns["floor_scheduled"].append(time_open_loop(floor, frames, PER_S)[0])
                    took, answers, _ = time_open_loop(server.socket, frames, PER_S)
                check_forecasts(frames, answers)
                took_ns["socket_scheduled"].append(took)
    return {name: lists[1:] for name, lists in took_ns.items()}


def time_closed_loop(client: socket.socket, frames: Frames) -> tuple[list[int], list[bytes]]:
    """Send frames in a closed loop, each when the one before it is answered, and time them.

    Args:
        client: a connection with a timeout.
        frames: (window index, bytes to send), N of them.

    Returns:
        (N,) nanoseconds from sending a frame until its whole answer is there, and the answers without the 4 bytes of
        length.

    Raises:
        TimeoutError: no answer in the socket's timeout.
        OSError: the connection broke; ConnectionError where the other side closed it.
    """
    took_ns, answers = [], []
    for _, frame in frames:
        began = perf_counter_ns()
        client.sendall(frame)
        data = _receive(client)
        while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "little"):
            data += _receive(client)
        took_ns.append(perf_counter_ns() - began)
        answers.append(data[4:])
    return took_ns, answers


def time_open_loop(client: socket.socket, frames: Frames, per_s: float) -> tuple[list[int], list[bytes], list[int]]:
    """Send frames in an open loop, at fixed moments whether or not those before are answered, and time them.

    Args:
        client: a connection.
        frames: (window index, bytes to send), N of them.
        per_s: frames per second, above 0.

    Returns:
        (N,) nanoseconds from the moment a frame was due until its answer, so that a stall counts for all that wait; the
        answers without their length; and when each came (`perf_counter_ns`).

    Raises:
        TimeoutError: all is sent and nothing comes for 10 s, or a send takes longer than the socket's timeout.
        OSError: the connection broke; ConnectionError where the other side closed it.
    """
    period, start = int(1e9 / per_s), perf_counter_ns() + 10_000_000
    answers: list[bytes] = []
    answered_ns: list[int] = []
    buffer, sent, count = bytearray(), 0, len(frames)
    while len(answers) < count:
        due_s = (start + sent * period - perf_counter_ns()) / 1e9 if sent < count else 10.0
        if due_s <= 0:
            client.sendall(frames[sent][1])
            sent += 1
        elif sent == len(answers):
            if due_s > _SPIN_S:
                time.sleep(due_s - _SPIN_S)
        elif select.select([client], [], [], max(due_s - _SPIN_S, 0))[0]:
            buffer += _receive(client)
            complete = take_frames(buffer)
            answers += complete
            answered_ns += [perf_counter_ns()] * len(complete)
        elif sent == count:
            raise TimeoutError(f"{count - len(answers)} of {count} frames were not answered in 10 s")
    return [at - (start + number * period) for number, at in enumerate(answered_ns)], answers, answered_ns


def _receive(client: socket.socket) -> bytes:
    data = client.recv(1 << 18)
    if not data:
        raise ConnectionError("the other side closed the connection; its log says why")
    return data
