"""The fast path as a process with jobs on it: begun on a history, its champion in force, ready to be measured."""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from pathlib import Path

from pipelines.bench.fastpath.champions import promote, shelve
from pipelines.bench.fastpath.children import Children, connect
from pipelines.bench.fastpath.load import BEGUN, JOBS, SampleFeed, settings
from pipelines.bench.fastpath.wire import Frames
from pipelines.serve.fast.server import SOCKET
from pipelines.serve.models.model_set import ModelSet
from pipelines.serve.net.client import Client
from pipelines.serve.net.wire import Answer, Took, read_answer
from pipelines.serve.step.keys import active_key
from pipelines.serve.step.records import ForecastValue, unpacked
from pipelines.stack.processes import Process, ProcessError

_PATIENCE_S = 120.0


class ServedProcess:
    """`tidecast serve fast` in a process of its own, without a broker."""

    def __init__(self, children: Children, folder: Path, made: ModelSet, jobs: Sequence[str] = JOBS) -> None:
        """Start it; returns when the set serves every job."""
        self.jobs, self.feed, self.champions = tuple(jobs), SampleFeed(jobs), folder / "champions"
        told = settings(folder, jobs)
        self.store = told.store_dir
        self.process = children.module("server", self.champions, settings=told)
        self.socket = connect(self.store / SOCKET, self.process)
        with Client(self.store / SOCKET, 30.0) as client:
            history = [raw for _, raw in self.feed.history(jobs, BEGUN)]
            for at in range(0, len(history), 500):
                client.put_all(history[at : at + 500])
        shelve(self.champions, "1", made)
        promote(self.champions, jobs, "1")
        with Client(self.store / SOCKET) as client:
            await_generation(client, self.process, jobs, 1)

    def close(self, children: Children) -> None:
        """Leave, and end it."""
        self.socket.close()
        children.end(self.process)


def await_generation(client: Client, process: Process, jobs: Sequence[str], number: int) -> None:
    """Wait until a swap is in force for every job.

    Raises:
        ProcessError: it takes too long, or the server has ended.
    """
    until = time.monotonic() + _PATIENCE_S
    for job in jobs:
        while client.get(active_key(job), number) is None:
            if not process.running() or time.monotonic() > until:
                raise ProcessError(f"generation {number} of {job} does not serve:\n{process.last_lines()}")
            time.sleep(0.05)


def forecasts(frames: Frames, answers: Sequence[bytes]) -> list[ForecastValue]:
    """The forecast of every answer.

    Raises:
        ValueError: an answer is not the one forecast of its frame's window.
    """
    found = []
    for (window, _), raw in zip(frames, answers, strict=True):
        answer = read_answer(raw)
        if not _the_one(answer, window):
            raise ValueError(f"window {window} was answered by {answer!r:.300}")
        assert isinstance(answer, Took), "it was looked at"
        found.append(unpacked(ForecastValue, answer.forecasts[0].value))
    return found


def _the_one(answer: Answer, window: int) -> bool:
    return (
        isinstance(answer, Took)
        and answer.verdict == "applied"
        and [one.version for one in answer.forecasts] == [window]
        and bool(unpacked(ForecastValue, answer.forecasts[0].value).message)
    )


class Echo:
    """A bare echo on a Unix socket in a process of its own."""

    def __init__(self, children: Children, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.process = children.module("echo", folder / "echo")
        self.socket: socket.socket = connect(folder / "echo", self.process)

    def close(self, children: Children) -> None:
        """Leave, and end it."""
        self.socket.close()
        children.end(self.process)
