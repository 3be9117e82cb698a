"""The processes over a Unix socket that are measured: the fast path with jobs on it, and a bare echo."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from pipelines.bench.fastpath.champions import add_version, promote_version
from pipelines.bench.fastpath.load import JOBS, SampleFeed
from pipelines.serve.fast.server import SOCKET
from pipelines.serve.models.model_set import ModelSet
from pipelines.serve.net.client import Client
from pipelines.serve.net.wire import PutResult, read_answer
from pipelines.serve.step.keys import active_key
from pipelines.serve.step.records import ForecastValue, decode_value
from pipelines.stack.processes import Process, ProcessError
from pipelines.stack.stack import Stack

Frames = Sequence[tuple[int, bytes]]
"""(window, frame)."""
_PATIENCE_S = 120.0
_AT_ONCE = 500


def start_module(stack: Stack, name: str, module: str, *arguments: str | Path, **env: str) -> Process:
    """Start `python -m MODULE ARGUMENTS` as a process of the stack, with one thread for matrices as in serving.

    Args:
        stack: it ends with it.
        name: of the process and its log.
        module: to run.
        arguments: of its command line.
        env: further environment variables.

    Raises:
        ProcessError: the process cannot be started.
    """
    return stack.spawn(name, [sys.executable, "-m", module, *map(str, arguments)], {"OMP_NUM_THREADS": "1", **env})


def await_ready(process: Process, ready: Callable[[], bool]) -> None:
    """Block until `ready` answers True, asked 20 times a second.

    Raises:
        ProcessError: that takes over 120 s, or the process has ended; the message has the last 15 lines of its log.
        Exception: what `ready` raises.
    """
    until = time.monotonic() + _PATIENCE_S
    while not ready():
        if not process.running() or time.monotonic() > until:
            raise ProcessError(f"{process.name} does not begin:\n{process.last_lines()}")
        time.sleep(0.05)


def start_echo(stack: Stack) -> socket.socket:
    """Start a bare echo in a process of its own and connect to it.

    Raises:
        ProcessError: it does not start.
    """
    path = stack.settings.var_dir / "echo"
    return connect(path, start_module(stack, "echo", "pipelines.bench.fastpath.child.echo", path))


class ServedProcess:
    """`tidecast serve fast` in a process of its own, without a broker.

    Attributes:
        feed: continues the samples of its jobs.
        champions: folder in which champions are promoted, see `champions.promote_version`.
        store: folder of its store.
        socket: a connection to it, for the caller to close.
    """

    def __init__(self, stack: Stack, made: ModelSet, jobs: Sequence[str] = JOBS) -> None:
        """Start the server, put the jobs' history and promote the model; blocks until it serves every job.

        Raises:
            ProcessError: the server ends, or is not ready within two minutes.
            ClientError, RefusedError: a put of the history fails.
        """
        self.feed, self.champions = SampleFeed(jobs), stack.settings.var_dir / "champions"
        self.store = stack.settings.store_dir
        process = start_module(stack, "server", "pipelines.bench.fastpath.child.server", self.champions)
        self.socket = connect(self.store / SOCKET, process)
        with Client(self.store / SOCKET, 30.0) as client:
            history = [raw for _, raw in self.feed.history()]
            for at in range(0, len(history), _AT_ONCE):
                client.put_all(history[at : at + _AT_ONCE])
            add_version(self.champions, "1", made)
            promote_version(self.champions, jobs, "1")
            await_ready(process, lambda: all(client.get(active_key(job), 1) for job in jobs))


def connect(path: Path, process: Process) -> socket.socket:
    """Connect to a Unix socket as soon as the process listens there; calls on the connection time out after 10 s.

    Raises:
        ProcessError: the process has ended, or does not listen within 120 s.
        OSError: the path is too long for a socket.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    await_ready(process, lambda: connection.connect_ex(str(path)) == 0)
    connection.settimeout(10)
    return connection


def check_forecasts(frames: Frames, answers: Sequence[bytes]) -> None:
    """Check that every answer to a put is exactly one forecast, of its frame's window.

    Args:
        frames: (window index since the epoch, bytes sent).
        answers: to each of them, without the 4 bytes of its length.

    Raises:
        ValueError: an answer is something else, or there are more or fewer answers than frames.
        WireError, msgspec.DecodeError: an answer cannot be decoded.
    """
    for (window, _), raw in zip(frames, answers, strict=True):
        match read_answer(raw):
            case PutResult("applied", [one]) if (
                one.version == window and decode_value(ForecastValue, one.value).message
            ):
                pass
            case other:
                raise ValueError(f"window {window} was answered by {other!r:.300}")
