"""What a part of the stack is given to start itself: ports, folders, an environment, the means to spawn and wait."""

from __future__ import annotations

import os
import shutil
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from configs.errors import CorrectableError
from configs.settings import Settings
from pipelines.spark.java import Java
from pipelines.stack.keeper import Keeper
from pipelines.stack.ports import HOST
from pipelines.stack.processes import Process, spawn

Probe = Callable[[], bool]


class StackError(CorrectableError, RuntimeError):
    """A part of the stack failed; the message names it and shows its last log lines."""


class AbandonedError(RuntimeError):
    """The start was given up because another part failed."""


@dataclass
class Place:
    """Where the parts of one stack live. Parts start in threads of their own; each touches its own names only."""

    id: str
    settings: Settings
    java: Java
    ports: Mapping[str, int]
    fresh: frozenset[str]
    dags: Path  # Airflow's DAG folder
    secret: str  # what Airflow's processes sign their tokens with
    keeper: Keeper
    environment: dict[str, str] = field(default_factory=dict)  # what children are told besides this process's own
    processes: dict[str, Process] = field(default_factory=dict)
    abandoned: threading.Event = field(default_factory=threading.Event)
    _recipes: dict[str, tuple[list[str], dict[str, str], Probe | None]] = field(default_factory=dict)

    def folder(self, name: str, part: str | None = None) -> Path:
        """A folder under `var`; emptied first if the part is to start afresh."""
        path = self.settings.var_dir / name
        if part in self.fresh:
            shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True, exist_ok=True)
        return path

    def at(self, address: str) -> str:
        """An address with its ports, e.g. `{broker}`, and the folder, `{var}`, filled in."""
        return address.format(**self.ports, var=self.settings.var_dir)

    def spawn(
        self, name: str, argv: list[str], env: Mapping[str, str] | None = None, probe: Probe | None = None
    ) -> Process:
        """Start a process that ends with the stack; `probe` says when it is ready."""
        if self.abandoned.is_set():
            raise AbandonedError(name)
        # The settings in force are in the file that the environment names; a variable of ours would overrule it.
        outside = {name: value for name, value in os.environ.items() if not name.startswith("TIDECAST_")}
        log = self.settings.var_dir / "log" / f"{name}.log"
        whole = {**outside, **self.environment, **(env or {})}
        process = spawn(name, argv, whole, log, append=name in self._recipes)
        self.keeper.watch(process.pid)
        self.processes[name] = process
        self._recipes[name] = (argv, dict(env or {}), probe)
        return process

    def respawn(self, name: str) -> Process:
        """Start an ended process again as it was started, without waiting for it."""
        argv, env, probe = self._recipes[name]
        return self.spawn(name, argv, env, probe)

    def run(self, name: str, argv: list[str], env: Mapping[str, str] | None = None, timeout_s: float = 180) -> None:
        """Run a short command to its end; raises `StackError` with its last lines."""
        process = self.spawn(name, argv, env)
        self._until(lambda: not process.running(), process, timeout_s, "did not end")
        self.keeper.forget(process.pid)
        del self.processes[name]
        if code := process.wait():
            raise StackError(f"{name} failed with exit status {code}.\n{process.last_lines()}")

    def await_ready(self, name: str, timeout_s: float = 120) -> None:
        """Wait until the probe of a process holds; raises `StackError` with its last lines."""
        process, (_, _, probe) = self.processes[name], self._recipes[name]
        if probe is not None:
            self._until(lambda: probe() or not process.running(), process, timeout_s, "was not ready")
            if not process.running():
                code = process.wait()
                raise StackError(f"{name} ended with exit status {code} before it was ready.\n{process.last_lines()}")

    def _until(self, done: Probe, process: Process, timeout_s: float, what: str) -> None:
        deadline = time.monotonic() + timeout_s
        while not done():
            if self.abandoned.is_set():
                raise AbandonedError(process.name)
            if time.monotonic() > deadline:
                raise StackError(f"{process.name} {what} within {timeout_s:.0f} s.\n{process.last_lines()}")
            time.sleep(0.1)


def port_open(port: int) -> Probe:
    """Holds once something accepts connections at the port."""

    def probe() -> bool:
        try:
            with socket.create_connection((HOST, port), timeout=1):
                return True
        except OSError:
            return False

    return probe


def page(url: str, holds: Callable[[str], bool] = bool) -> Probe:
    """Holds once the page can be fetched and its text is as wanted."""

    def probe() -> bool:
        try:
            with urllib.request.urlopen(url, timeout=3) as answer:
                return holds(answer.read().decode("utf-8", "replace"))
        except (urllib.error.URLError, OSError, ValueError):
            return False

    return probe
