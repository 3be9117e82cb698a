"""The processes that a measurement needs beside its own: started in sessions of their own, ended whatever happens."""

from __future__ import annotations

import os
import socket
import sys
import time
import uuid
from pathlib import Path
from types import TracebackType

import yaml

from configs.settings import Settings
from pipelines.stack.keeper import Keeper
from pipelines.stack.processes import MARKER, Process, ProcessError, spawn

_PATIENCE_S = 60.0


class Children:
    """Started one by one, ended together; also where this process is killed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._id = uuid.uuid4().hex
        self._keeper = Keeper(self._id, folder / "keeper.log")
        self._living: list[Process] = []

    def __enter__(self) -> Children:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            for process in reversed(self._living[:]):
                self.end(process)
        finally:
            self._keeper.end()

    def program(self, name: str, argv: list[str], settings: Settings | None = None) -> Process:
        """Start a program, with these settings where it reads any."""
        env = environment({MARKER: self._id})
        if settings is not None:
            file = self._folder / f"{name}.yaml"
            file.write_text(yaml.safe_dump(settings.model_dump(mode="json"), sort_keys=False))
            env["TIDECAST_FILE"] = str(file)
        process = spawn(name, argv, env, self._folder / f"{name}.log")
        self._living.append(process)
        self._keeper.watch(process.pid)
        return process

    def module(self, name: str, *arguments: str | Path, settings: Settings | None = None) -> Process:
        """Start `python -m pipelines.bench.fastpath.child.NAME`."""
        return self.program(name, command(name, *arguments), settings)

    def end(self, process: Process) -> None:
        """End one, and everything in its session."""
        self._living.remove(process)
        process.stop()
        self._keeper.forget(process.pid)


def command(name: str, *arguments: str | Path) -> list[str]:
    """`python -m pipelines.bench.fastpath.child.NAME`, as a command line."""
    return [sys.executable, "-m", f"pipelines.bench.fastpath.child.{name}", *map(str, arguments)]


def environment(more: dict[str, str]) -> dict[str, str]:
    """What a child is told: nothing of this person's settings, and one thread for small matrices, as serving needs."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("TIDECAST_")}
    return {**own, "OMP_NUM_THREADS": "1", **more}


def connect(path: Path, process: Process) -> socket.socket:
    """A connection to a Unix socket, as soon as the process listens there.

    Raises:
        ProcessError: it ended, or does not listen in time.
    """
    until = time.monotonic() + _PATIENCE_S
    while True:
        found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            found.connect(str(path))
        except OSError as error:
            found.close()
            if not process.running() or time.monotonic() > until:
                raise ProcessError(
                    f"{process.name} does not listen at {path}: {error}\n{process.last_lines()}"
                ) from None
            time.sleep(0.05)
            continue
        found.settimeout(10)
        return found
