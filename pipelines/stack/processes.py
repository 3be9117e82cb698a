"""Long-lived child processes: each in a session of its own, found again by an environment marker, ended as a whole.

A session and not only a process group, because Airflow's tasks and PySpark's workers move to groups of their own; the
marker besides, because a child may leave the session; not the marker alone, because setting a title overwrites it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from configs.errors import CorrectableError

MARKER = "TIDECAST_STACK"
GRACE_S = 8.0  # from SIGTERM to SIGKILL


class ProcessError(CorrectableError, RuntimeError):
    """A child process failed; the message holds the last lines of its log."""


@dataclass(frozen=True)
class Process:
    """A started child; its pid is also the id of its session."""

    name: str
    log: Path
    popen: subprocess.Popen[bytes]
    created: float

    @property
    def pid(self) -> int:
        """Process id, and id of its session."""
        return self.popen.pid

    def running(self) -> bool:
        """Whether the process itself (not its children) is alive."""
        return self.popen.poll() is None

    def wait(self, timeout_s: float | None = None) -> int:
        """Its exit status; raises `subprocess.TimeoutExpired`."""
        return self.popen.wait(timeout_s)

    def kill(self) -> None:
        """End it and everything in its session at once."""
        end(lambda: members([self.pid]), grace_s=0)
        self.popen.wait(10)

    def stop(self, grace_s: float = GRACE_S) -> int:
        """Ask it to end, then end what is left of its session; returns its exit status."""
        if self.running():
            _signal(self.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.popen.wait(grace_s)
        self.kill()
        return self.popen.returncode

    def last_lines(self, count: int = 15) -> str:
        """The end of its log, indented; says so when there is none."""
        try:
            with self.log.open("rb") as file:
                file.seek(max(0, self.log.stat().st_size - 65_536))
                lines = file.read().decode("utf-8", "replace").splitlines()[-count:]
        except FileNotFoundError:
            lines = []
        return f"Last lines of {self.log}:\n" + ("\n".join("  " + line for line in lines) or "  (empty)")


def spawn(name: str, argv: list[str], env: Mapping[str, str], log: Path, append: bool = False) -> Process:
    """Start a child in a session of its own; its output goes to the log, its input is empty.

    Args:
        name: what error messages call it.
        argv: the program and its arguments.
        env: the whole environment, marker included.
        log: where stdout and stderr go.
        append: keep what the log already holds.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab" if append else "wb") as sink:
        try:
            popen = subprocess.Popen(
                argv, env=dict(env), stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, start_new_session=True
            )
        except OSError as error:
            raise ProcessError(f"{name} does not start: {error}") from None
    try:
        created = psutil.Process(popen.pid).create_time()
    except psutil.Error:
        created = time.time()
    return Process(name, log, popen, created)


def members(sessions: Iterable[int], stack_id: str | None = None) -> list[psutil.Process]:
    """Living processes of these sessions, and those that carry the marker of the stack."""
    wanted = set(sessions)
    found = []
    for process in psutil.process_iter():
        try:
            mine = os.getsid(process.pid) in wanted or (
                stack_id is not None and process.environ().get(MARKER) == stack_id
            )
            if mine and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.Error, OSError):  # gone meanwhile, or another user's
            continue
    return found


def end(find: Callable[[], list[psutil.Process]], grace_s: float = GRACE_S, leaders: Iterable[int] = ()) -> None:
    """SIGTERM to the leaders, and after the grace time SIGKILL to everything found, until nothing is found any more."""
    for pid in leaders:
        _signal(pid, signal.SIGTERM)
    deadline = time.monotonic() + grace_s
    while time.monotonic() < deadline and find():
        time.sleep(0.1)
    for _ in range(50):  # again and again, because a child can be born between the look and the kill
        left = find()
        if not left:
            return
        for process in left:
            _signal(process.pid, signal.SIGKILL)
        time.sleep(0.1)


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
