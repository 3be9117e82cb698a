"""What the parts of a stack start themselves with: ports, folders, an environment, processes, and readiness probes."""

from __future__ import annotations

import http.client
import os
import shlex
import shutil
import socket
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from configs.errors import CorrectableError
from configs.settings import Settings
from pipelines.spark.java import Java
from pipelines.stack.keeper import Keeper
from pipelines.stack.ports import HOST
from pipelines.stack.processes import Process, ProcessError, name_process, spawn

Probe = Callable[[], bool]


class StackError(CorrectableError, RuntimeError):
    """A part of the stack failed; the message names it and mostly shows its last log lines."""


class StackRunsError(StackError):
    """A stack runs on the folder already, or a process is at work on it: another start, a run, a backup, a restore.

    Attributes:
        owner: process that holds the folder; None: it has ended and what it started has not, or it is not known.
    """

    def __init__(self, var: Path, owner: int | None) -> None:
        """Say who has the folder, and what helps: `make down` ends what was left running, not what a process holds."""
        if owner is None:
            down = f"TIDECAST_VAR={shlex.quote(str(var))} make down"  # the folder may be another than a person's own
            said = f"a stack runs on {var} already. End it with `{down}`"
        else:
            said = f"{var} is in use by {name_process(owner)}. Wait until that ends, end it with `kill {owner}`"
        super().__init__(f"{said}, or set TIDECAST_VAR to another folder.")
        self.owner = owner


class AbandonedError(RuntimeError):
    """The start was given up because another part failed."""


@dataclass
class StackContext:
    """What the parts of one stack share while they start; each part starts in a thread and uses its own names only.

    Attributes:
        id: value of the environment variable `MARKER` in every process of the stack.
        settings: the settings as given, addresses of embedded parts not filled in.
        java: the Java of broker and Spark.
        ports: chosen port numbers by name (fields of `configs.sections.Ports`).
        fresh: parts whose folders are emptied before they start.
        dags: Airflow's DAG folder.
        secret: with which Airflow's processes sign their tokens.
        keeper: process that ends the children if this process dies.
        environment: variables every child gets besides this process's own.
        given: variables that overrule those that a part sets itself.
        processes: started processes by name; those of `run` leave it when they end.
        abandoned: set when the start was given up; nothing is started or waited for afterwards.
    """

    id: str
    settings: Settings
    java: Java
    ports: Mapping[str, int]
    fresh: frozenset[str]
    dags: Path
    secret: str
    keeper: Keeper
    environment: dict[str, str] = field(default_factory=dict)
    given: Mapping[str, str] = field(default_factory=dict)
    processes: dict[str, Process] = field(default_factory=dict)
    abandoned: threading.Event = field(default_factory=threading.Event)
    _recipes: dict[str, tuple[list[str], dict[str, str], Probe | None]] = field(default_factory=dict)

    def folder(self, name: str, part: str | None = None) -> Path:
        """Create the folder `var/NAME` with those above it, if need be, and return its path.

        Args:
            name: its path below `var`.
            part: the part it belongs to; where that part is to start fresh, the folder is deleted first, at every call.

        Raises:
            OSError: it cannot be created. What cannot be deleted stays, without an error.
        """
        path = self.settings.var_dir / name
        if part in self.fresh:
            shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True, exist_ok=True)
        return path

    def fill(self, address: str) -> str:
        """Fill in an address's ports, e.g. `{broker}`, and the `var` folder, `{var}`.

        Raises:
            KeyError: it names a port that was not chosen.
        """
        return address.format(**self.ports, var=self.settings.var_dir)

    def spawn(
        self, name: str, argv: list[str], env: Mapping[str, str] | None = None, probe: Probe | None = None
    ) -> Process:
        """Start a process that ends with the stack, without waiting for it; its log is `var/log/NAME.log`.

        The log is truncated at the first start under a name and appended to at later ones. `TIDECAST_` variables of
        this process are not handed on: the settings in force are in the file that `environment` names.

        Args:
            name: key in `processes`, and name of the log.
            argv: the program and its arguments.
            env: variables beyond this process's and the stack's.
            probe: what `await_ready` waits for.

        Raises:
            AbandonedError: the start of the stack was given up.
            ProcessError: the program cannot be executed, or the keeper (ends the stack if this process dies) is gone;
                nothing runs then.
            OSError: the log cannot be written.
        """
        if self.abandoned.is_set():
            raise AbandonedError(name)
        # The settings in force are in the file that the environment names; a variable of ours would overrule it.
        outside = {name: value for name, value in os.environ.items() if not name.startswith("TIDECAST_")}
        log = self.settings.var_dir / "log" / f"{name}.log"
        whole = {**outside, **self.environment, **(env or {}), **self.given}
        process = spawn(name, argv, whole, log, append=name in self._recipes)
        try:
            self.keeper.watch(process.pid)
        except ProcessError:
            process.kill()
            raise
        self.processes[name] = process
        self._recipes[name] = (argv, dict(env or {}), probe)
        return process

    def respawn(self, name: str) -> Process:
        """Start an ended process again with the same arguments, without waiting for it.

        Raises:
            KeyError: nothing was ever started under the name.
            AbandonedError: the start of the stack was given up.
            ProcessError, OSError: the program cannot be executed, the keeper is gone, or the log cannot be written.
        """
        argv, env, probe = self._recipes[name]
        return self.spawn(name, argv, env, probe)

    def run(self, name: str, argv: list[str], env: Mapping[str, str] | None = None, timeout_s: float = 180) -> None:
        """Run a command and wait for its end, checked every 0.1 to 0.5 s; its log is `var/log/NAME.log`.

        Raises:
            StackError: it ended with another status than 0, or not within `timeout_s` (then it goes on until the stack
                ends); the message shows its last 15 log lines.
            AbandonedError: the start of the stack was given up.
            ProcessError: the program cannot be executed, or the keeper (ends the stack if this process dies) is gone.
            OSError: the log cannot be written or read.
        """
        process = self.spawn(name, argv, env)
        self._until(lambda: not process.running(), process, timeout_s, "did not end")
        self.keeper.forget(process.pid)
        del self.processes[name]
        if code := process.wait():
            raise StackError(f"{name} failed with exit status {code}.\n{process.last_lines()}")

    def await_ready(self, name: str, timeout_s: float = 120) -> None:
        """Wait until a process's probe returns True; returns at once if it was started without one.

        It is asked every 0.1 s, and less often the longer it takes, up to every 0.5 s.

        Raises:
            StackError: it ended, or was not ready within `timeout_s`; the message shows its last 15 log lines.
            AbandonedError: the start of the stack was given up.
            KeyError: there is no process of the name.
            Exception: whatever the probe raises.
        """
        process, (_, _, probe) = self.processes[name], self._recipes[name]
        if probe is not None:
            self._until(lambda: probe() or not process.running(), process, timeout_s, "was not ready")
            if not process.running():
                code = process.wait()
                raise StackError(f"{name} ended with exit status {code} before it was ready.\n{process.last_lines()}")

    def _until(self, done: Probe, process: Process, timeout_s: float, what: str) -> None:
        began = time.monotonic()
        while not done():
            if self.abandoned.is_set():
                raise AbandonedError(process.name)
            if (waited_s := time.monotonic() - began) > timeout_s:
                raise StackError(f"{process.name} {what} within {timeout_s:.0f} s.\n{process.last_lines()}")
            # Airflow's server answers long before its scheduler is healthy, and each answer takes CPU from that.
            time.sleep(min(max(waited_s / 50, 0.1), 0.5))


def port_probe(port: int) -> Probe:
    """Make a function that returns whether 127.0.0.1 accepts TCP connections at the port; a call takes 1 s at most."""
    return partial(accepts, HOST, port, 1.0)


def accepts(host: str, port: int, timeout_s: float) -> bool:
    """Return whether a host accepts a TCP connection at a port within so many seconds; False also for no such host."""
    try:
        with socket.create_connection((host, port), timeout_s):
            return True
    except OSError:
        return False


def page_probe(url: str, holds: Callable[[str], bool] = bool) -> Probe:
    """Make a function that returns whether a web page can be fetched and its text is as wanted.

    Args:
        url: fetched with GET and a timeout of 3 s; an HTTP error, like no answer, counts as not ready.
        holds: judges the text; a ValueError from it (as from JSON cut off) counts as not ready, other errors of it are
            passed on. By default: not empty.
    """

    def probe() -> bool:
        try:
            with urllib.request.urlopen(url, timeout=3) as answer:
                return holds(answer.read().decode("utf-8", "replace"))
        except (http.client.HTTPException, OSError, ValueError):
            return False

    return probe
